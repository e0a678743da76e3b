"""Kernels that the driver has compiled reach workers on other hosts, which then compile nothing."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import accounts
import pytest
from numba.core import config
from pyspark import SparkFiles
from pyspark.errors import PySparkRuntimeError
from spark.test_artifacts import RemoteSession, Session

import vedette as vd
from vedette.native import kernel_bundle
from vedette.spark.shipping import artifacts
from vedette.spark.shipping import kernels as sent_kernels
from vedette.spark.shipping.kernels import receive_kernels, send_kernels

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")

# A worker of another host: a copy of the package, and empty folders. Prints how many kernels it loaded and compiled,
# and whether it imported what Numba needs for compiling.
WORK = """if True:
    import sys
    copy, root, *kernels = sys.argv[1:]
    sys.path.insert(0, copy)
    from pyspark import SparkFiles
    SparkFiles._root_directory, SparkFiles._is_running_on_worker = root, True
    from vedette.spark.shipping.query_sets import worker_function
    function = worker_function("spark_work", "match", "", kernels=tuple(kernels) or None)
    assert function() == 2
    from vedette.native.kernel_cache import counts
    print(counts["loaded"], counts["compiled"], int("numba.np.linalg" in sys.modules))
"""
MATCH = """
import vedette as vd
def match():
    assert vd.__file__.startswith(__file__.removesuffix("spark_work.py"))
    alerts = vd.QuerySet("price double")
    alerts.add_many([1, 2], ["price < 4", "price < 5"])
    return len(alerts.match({"price": [3.0]}).positions)
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """The directory in which a worker on another host has its copies."""
    directory = tmp_path / "worker"
    directory.mkdir()
    monkeypatch.setattr(SparkFiles, "_root_directory", str(directory))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(artifacts, "_links", [])
    monkeypatch.setattr(kernel_bundle, "_accepted", {})
    receive_kernels.cache_clear()
    return directory


@pytest.fixture
def warm_driver():
    """This process has the kernels of one small match."""
    alerts = vd.QuerySet("price double")
    alerts.add_many([1, 2], ["price < 4", "price < 5"])
    alerts.match({"price": [3.0]})


def run_elsewhere(tmp_path, worker, *kernels):
    """What a worker with empty folders loaded and compiled, and whether it imported what compiles."""
    copy = tmp_path / "copy"
    if not copy.exists():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(vd.__file__).parent, copy / "vedette", ignore=ignored, copy_function=shutil.copyfile)
        (copy / "spark_work.py").write_text(MATCH)
    return [int(each) for each in accounts.end(accounts.start(WORK, copy, worker, *kernels, temporary=tmp_path))]


def test_a_worker_with_empty_folders_compiles_nothing(tmp_path, worker, warm_driver):
    kernels = send_kernels(Session(worker))

    loaded, compiled, imported = run_elsewhere(tmp_path, worker, *kernels)

    assert (loaded > 0, compiled, imported) == (True, 0, 0)


@pytest.mark.full
def test_a_worker_compiles_what_was_not_sent_or_has_changed(tmp_path, worker, warm_driver):
    name, digest = send_kernels(Session(worker))
    (worker / name).write_bytes((worker / name).read_bytes() + b"x")

    loaded, compiled, imported = run_elsewhere(tmp_path, worker, name, digest)

    assert (loaded, compiled > 0, imported) == (0, True, 1)


def test_kernels_are_sent_once_per_session(worker, warm_driver):
    for kind in (Session, RemoteSession):
        session = kind(worker)
        kernels = send_kernels(session)
        assert send_kernels(session) == kernels
        assert [path.name for path in session.sent] == [kernels[0]]
        assert receive_kernels(*kernels)


def test_nothing_is_sent_to_workers_of_this_host(worker, warm_driver):
    session = Session(worker, "local[2]")

    assert send_kernels(session) is None
    assert session.sent == []


def test_a_session_that_refuses_artifacts_works_without(worker, warm_driver):
    class Refusing(Session):
        def addArtifacts(self, path, *, file):  # noqa: N802
            raise PySparkRuntimeError("not allowed")

    assert send_kernels(Refusing(worker)) is None


def test_without_kernels_nothing_is_sent(worker, monkeypatch):
    monkeypatch.setattr(sent_kernels, "current_files", lambda *_: {})
    session = Session(worker)

    assert send_kernels(session) is None
    assert session.sent == []


@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_an_artifact_that_is_not_the_drivers_is_refused_with_a_warning(worker, warm_driver, harm, caplog):
    name, digest = send_kernels(Session(worker))
    if harm == "changed":
        (worker / name).write_bytes(b"x" + (worker / name).read_bytes())
    else:
        (worker / name).unlink()

    with caplog.at_level(logging.WARNING):
        assert not receive_kernels(name, digest)
    words = {"changed": "has changed since the driver sent it", "missing": "is missing"}[harm]
    assert f"the artifact {name} {words}; kernels are compiled instead" in caplog.text
    assert not kernel_bundle._accepted
