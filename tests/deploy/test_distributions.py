"""The wheel and the source archive, installed into fresh environments."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile

import pytest

import vedette as vd
from tests.deploy.environments import run
from tests.docs_pages import ROOT

CORE = """if True:
    import importlib.util
    import vedette as vd
    alerts = vd.QuerySet("symbol string, price double")
    alerts.add("cheap", "symbol = 'IBM' AND price < 40")
    print(vd.__version__, *alerts.match_one({"symbol": "IBM", "price": 3.5}))
    optional = ("duckdb", "matplotlib", "pandas", "prometheus_client", "psycopg", "py4j", "pyspark")
    print([name for name in optional if importlib.util.find_spec(name)])
    for use in ("import vedette.spark", "vd.Registry('postgresql://ann@127.0.0.1/x')"):
        try:
            exec(use)
        except (ImportError, vd.RegistryError) as error:
            print(error)
"""
SPARK = """if True:
    import vedette as vd
    from vedette import spark as vs
    alerts = vd.QuerySet("price double")
    alerts.add("cheap", "price < 40")
    spark = vs.session("installed", master="local[1]", log_level="OFF")
    rows = spark.createDataFrame([(3.5,), (41.0,)], "price double")
    print(vd.__file__)
    print([tuple(row) for row in rows.transform(vs.match(alerts)).collect()])
    spark.stop()
"""


def test_the_core_from_the_wheel_matches_and_names_what_is_missing(core, tmp_path):
    assert run(core, CORE, cwd=tmp_path) == [
        f"{vd.__version__} cheap",
        "[]",
        "vedette.spark needs PySpark, which is not installed; pip install 'vedette[spark]'",
        "a registry on PostgreSQL needs psycopg, which is not installed; pip install 'vedette[postgres]'",
    ]


def test_commands_of_the_core_run(core, tmp_path):
    (tmp_path / "alerts.csv").write_text("id,where\nhot,temp > 30\n")
    (tmp_path / "rows.csv").write_text("temp\n29.5\n31.0\n")
    command = [core.with_name("vedette"), "match", "rows.csv", "--queries", "alerts.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "hot" in done.stdout


@pytest.mark.matrix  # PySpark is installed and started: a minute
def test_the_source_archive_with_spark_runs_a_transform(environment, environments, tmp_path):
    python = environment("spark", f"{environments.source()}[spark]")

    package, answer = run(python, SPARK, cwd=tmp_path)
    assert package.startswith(str(python.parents[1]))
    assert answer == "[(3.5, 'cheap')]"


def test_the_wheel_has_the_package_and_the_license_and_nothing_else(environments):
    with zipfile.ZipFile(environments.wheel()) as wheel:
        names = wheel.namelist()

    assert {name.split("/")[0] for name in names} == {"vedette", f"vedette-{vd.__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    for wanted in ("py.typed", "spark/log4j2.properties"):
        assert f"vedette/{wanted}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_archive_has_all_that_make_test_needs(environments):
    with tarfile.open(environments.source()) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    for wanted in ("Makefile", "constraints.txt", "scripts/set-up", "src/vedette/__init__.py", "tests/conftest.py"):
        assert wanted in names
        assert (ROOT / wanted).exists()
    assert not [name for name in names if name.startswith((".venv", "dist", "site"))]
