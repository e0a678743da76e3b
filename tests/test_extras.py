"""A missing optional package is reported with the extra to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import vedette as vd
from vedette.extras import _EXTRAS, check_extra, needs_extra
from vedette.run.metrics import serve_metrics

SOURCES = Path(vd.__file__).parents[1]
# Imports of these packages fail as if they were not installed.
WITHOUT = """if True:
    import sys
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {packages!r}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    sys.meta_path.insert(0, Absent())
"""


def run_without(packages, script, *arguments, **variables):
    """A Python process without these packages: its exit code, standard output and standard error."""
    command = [sys.executable, "-c", WITHOUT.format(packages=packages) + script, *arguments]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(SOURCES)} | variables, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def packages_beside(extra):
    """Import names of installed packages that `vedette[extra]` does not bring."""
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]
    waiting, brought = [*project["dependencies"], f"vedette[{extra}]"], {"vedette", "pip", "setuptools"}
    while waiting:
        needed = Requirement(waiting.pop())
        if needed.name == "vedette":
            waiting += [each for name in needed.extras for each in project["optional-dependencies"][name]]
        elif canonicalize_name(needed.name) not in brought:
            brought.add(canonicalize_name(needed.name))
            wanted = [{"extra": name} for name in ("", *needed.extras)]
            more = map(Requirement, metadata.requires(needed.name) or ())
            waiting += [
                str(each) for each in more if any(not each.marker or each.marker.evaluate(one) for one in wanted)
            ]
    owners = metadata.packages_distributions().items()
    return sorted(name for name, by in owners if not brought & {canonicalize_name(each) for each in by})


@pytest.mark.parametrize("extra", ["serve", "demo"])
def test_the_service_starts_with_its_extra_alone(extra):
    beside = packages_beside(extra)
    assert "hypothesis" in beside
    assert "fastapi" not in beside

    code, _, err = run_without(
        beside, "    import vedette.cli.serve.run, vedette.serve.app, vedette.serve.server, vedette.serve.demo.demo"
    )

    assert code == 0, err


def test_every_extra_with_an_error_of_its_own_exists():
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]

    assert set(_EXTRAS) <= set(project["optional-dependencies"])
    core = " ".join(project["dependencies"])
    assert [name for name in ("pyspark", "matplotlib", "psycopg", "prometheus", "pandas") if name in core] == []


def test_the_core_works_without_optional_packages():
    script = """
    import vedette as vd
    alerts = vd.QuerySet("price double")
    alerts.add("cheap", "price < 40")
    print(*alerts.match_one({"price": 3.5}))
    try:
        import vedette.spark
    except ImportError as error:
        print(type(error).__name__, error)
    """
    code, out, err = run_without(["matplotlib", "pandas", "prometheus_client", "psycopg", "py4j", "pyspark"], script)

    assert code == 0, err
    assert out.splitlines() == [
        "cheap",
        "MissingPackageError vedette.spark needs PySpark, which is not installed; pip install 'vedette[spark]'",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "pipeline.toml"], "vedette run needs PySpark, which is not installed; pip install 'vedette[spark]'"),
        (["demo"], "vedette demo needs PySpark, which is not installed; pip install 'vedette[spark]'"),
    ],
)
def test_commands_that_need_spark_say_so(arguments, message, tmp_path):
    script = "\n    from vedette.cli import main\n    sys.argv[0] = 'vedette'\n    main()\n"

    code, out, err = run_without(["pyspark", "py4j"], script, *arguments, TMPDIR=str(tmp_path))

    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_demo_needs_matplotlib_before_it_starts(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    code, out, err = run("demo")

    assert (code, out) == (2, "")
    assert "the report of vedette demo needs matplotlib, which is not installed; pip install 'vedette[plots]'" in err


def test_the_service_needs_fastapi_before_it_opens_the_registry(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.chdir(tmp_path)

    code, out, err = run("serve")

    assert (code, out) == (2, "")
    assert err == "vedette: vedette serve needs FastAPI, which is not installed; pip install 'vedette[serve]'\n"
    assert list(tmp_path.iterdir()) == []


def test_metrics_without_their_package_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(vd.MissingPackageError, match=r"^--metrics needs prometheus-client, .*'vedette\[metrics\]'$"):
        serve_metrics(None, ("127.0.0.1", 0))


def test_an_old_package_is_reported_with_its_version(monkeypatch):
    old = type(sys)("pyspark")
    old.__version__, old.__spec__ = "3.5.9", type("Spec", (), {})()
    monkeypatch.setitem(sys.modules, "pyspark", old)

    with (
        pytest.raises(
            vd.MissingPackageError,
            match=r"^x needs PySpark 4\.0 or later, but 3\.5\.9 is installed; pip install 'vedette\[spark\]'$",
        ),
        needs_extra("spark", "x"),
    ):
        raise ModuleNotFoundError("No module named 'pyspark.logger'", name="pyspark.logger")


def test_an_old_pyspark_is_reported_when_the_transforms_are_imported(tmp_path):
    for package in ("pyspark", "pyspark/sql", "pyspark/sql/streaming"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("__version__ = '3.5.9'")

    code, _, err = run_without([], "\n    from vedette import spark\n", PYTHONPATH=f"{tmp_path}{os.pathsep}{SOURCES}")

    assert code == 1
    assert "vedette.spark needs PySpark 4.0 or later, but 3.5.9 is installed" in err


def test_other_missing_modules_are_not_attributed_to_an_extra(monkeypatch):
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), needs_extra("spark", "x"):
        import no_such_module  # noqa: F401
    check_extra("spark", "x")
