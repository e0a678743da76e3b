"""The package works from a zip of its sources, as `spark-submit --py-files` ships it: no metadata, no files."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import vedette as vd

SOURCES = Path(vd.__file__).parent
# The installed package and its metadata are out of reach: only the zip has vedette.
BEGIN = """if True:
    import sys
    from importlib import metadata
    def no_metadata(name):
        raise metadata.PackageNotFoundError(name)
    metadata.version = metadata.distribution = no_metadata
    import vedette as vd
    assert ".zip" in vd.__file__, vd.__file__
"""


@pytest.fixture
def run_from_zip(tmp_path):
    """Runs a script that can import the package from a zip alone; what it printed."""
    archive = tmp_path / "vedette.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in SOURCES.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(SOURCES.parent))

    def run(script):
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        places = {"PYTHONPATH": str(archive), "TMPDIR": str(scratch), "ARCHIVE": str(archive)}
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + script],
            cwd=scratch,
            env=os.environ | places,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_the_version_is_a_constant_that_the_build_reads():
    project = tomllib.loads((SOURCES.parents[1] / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/vedette/__init__.py"


def test_a_set_from_a_zip_matches_is_saved_and_is_packed_for_workers(run_from_zip):
    said = run_from_zip("""
    from vedette.spark.shipping import query_sets as shipping
    queries = vd.QuerySet("price double")
    queries.add("cheap", "price < 40")
    queries.save("set")
    parcel = shipping.pack(vd.QuerySet.load("set"), None)
    print(parcel.sender, *shipping.unpack(parcel).match_one({"price": 3.5}))
""")

    assert said == [vd.__version__, "cheap"]


def test_commands_from_a_zip_write_the_example_and_a_registry(run_from_zip):
    said = run_from_zip("""
    from vedette.cli import main
    try:
        sys.argv = ["vedette", "init", "new"]
        main()
    except SystemExit as end:
        assert not end.code
    print(len(vd.Registry("sqlite:///new/alerts.db").list("alerts")))
""")

    assert said[-1] == "4"


def test_a_spark_job_runs_from_a_zip_that_py_files_ships(run_from_zip):
    said = run_from_zip("""
    import os
    from vedette import spark as vs
    archive = os.environ.pop("ARCHIVE")
    del os.environ["PYTHONPATH"]  # of workers, which have what Spark ships
    spark = vs.session("zip", master="local[1]", log_level="OFF", **{"spark.submit.pyFiles": archive})
    queries = vd.QuerySet("price double")
    queries.add("cheap", "price < 40")
    rows = spark.createDataFrame([(3.5,), (41.0,)], "price double")
    print(*[row["query"] for row in rows.transform(vs.match(queries)).collect()])
    spark.stop()
""")

    assert said == ["cheap"]
