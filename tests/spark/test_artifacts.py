"""Query sets that Spark copies to its workers, and the errors of a worker without its copy."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from pyspark import SparkFiles
from pyspark.errors import PySparkRuntimeError

import vedette as vd
from vedette.spark.shipping import artifacts, set_files
from vedette.spark.shipping import query_sets as shipping


class Conf(dict):
    """The settings of a session."""


class Session:
    """A session that copies its artifacts to a directory, as Spark does on the host of a worker."""

    def __init__(self, directory, master="spark://127.0.0.1:7077"):
        self.directory, self.conf, self.sent = directory, Conf({"spark.master": master}), []

    def addArtifacts(self, path, *, file):  # noqa: N802
        assert file
        self.sent.append(Path(path))
        shutil.copy(path, self.directory)


class RemoteSession(Session):
    """The same, of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """The directory in which a worker on another host has its copies."""
    directory = tmp_path / "worker"
    directory.mkdir()
    monkeypatch.setattr(SparkFiles, "_root_directory", str(directory))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(shipping, "_loaded", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(set_files, "_leases", {})
    monkeypatch.setattr(artifacts, "_links", [])
    yield directory
    set_files._release_all()


def many_queries(n=150_000):
    lows = np.arange(n, dtype=np.float64)
    queries = vd.QuerySet("price double")
    queries.add_boxes(np.arange(n), {"price": (lows, lows + 0.5)})
    return queries


def pack_for_another_host(queries, session):
    return dataclasses.replace(shipping.pack(queries, None, None, session), host="another")


@pytest.mark.parametrize("kind", [Session, RemoteSession])
def test_a_worker_on_another_host_uses_its_copy(worker, kind):
    parcel = pack_for_another_host(many_queries(), kind(worker))
    Path(parcel.path).unlink()

    assert shipping.unpack(parcel).match_one({"price": 7.25}) == [7]
    assert [path.name for path in worker.iterdir()] == [parcel.artifact]


def test_a_worker_on_the_same_host_shares_the_file_of_the_driver(worker):
    parcel = shipping.pack(many_queries(), None, None, Session(worker))
    (worker / parcel.artifact).unlink()

    assert shipping.unpack(parcel).match_one({"price": 7.25}) == [7]


def test_a_worker_that_cannot_read_the_file_of_the_driver_uses_its_copy(worker, monkeypatch):
    parcel = shipping.pack(many_queries(), None, None, Session(worker))
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert shipping.unpack(parcel).match_one({"price": 7.25}) == [7]


def test_a_set_is_sent_once_per_session(worker):
    first, second = Session(worker), Session(worker)
    queries = many_queries()
    for session in (first, first, second):
        shipping.pack(queries, None, None, session)

    assert len(first.sent) == len(second.sent) == 1


def test_two_sets_and_a_changed_set_are_different_artifacts(worker):
    session, queries = Session(worker), many_queries()
    parcels = [pack_for_another_host(queries, session), pack_for_another_host(many_queries(160_000), session)]
    queries.remove(7)
    parcels.append(pack_for_another_host(queries, session))

    assert len({parcel.artifact for parcel in parcels}) == len(session.sent) == 3
    found = [shipping.unpack(parcel).match_one({"price": 7.25}) for parcel in parcels]
    assert found == [[7], [7], []]
    assert [len(shipping.unpack(parcel)) for parcel in parcels] == [150_000, 160_000, 149_999]


def test_a_copy_in_the_folder_of_a_session_is_found(worker):
    first, other = "ba521fb8-18bd-4b35-a3ba-d18a896ba927", "147cdf07-124d-4600-84d6-210de2c549d9"
    for name in (first, other, "another"):
        (worker / name).mkdir()
    parcel = pack_for_another_host(many_queries(), Session(worker / other))

    assert shipping.unpack(parcel).match_one({"price": 7.25}) == [7]

    (worker / other / parcel.artifact).rename(worker / "another" / parcel.artifact)
    assert artifacts.find(parcel.artifact) is None


def test_a_missing_copy_is_reported_with_what_to_do(worker):
    parcel = pack_for_another_host(many_queries(), Session(worker))
    (worker / parcel.artifact).unlink()

    with pytest.raises(
        vd.PipelineError, match=r"has no copy of vedette-\w+\.queries, .* on another sent .* snapshot_dir="
    ):
        shipping.unpack(parcel)


def test_a_changed_copy_is_refused(worker):
    parcel = pack_for_another_host(many_queries(), Session(worker))
    (worker / parcel.artifact).write_bytes(Path(parcel.path).read_bytes()[:-1] + b"?")

    with pytest.raises(vd.PipelineError, match="has changed since the driver wrote it; start the job again"):
        shipping.unpack(parcel)


def test_a_shared_directory_needs_no_artifact(worker, tmp_path):
    session = Session(worker)
    parcel = shipping.pack(many_queries(), tmp_path / "shared", None, session)

    assert (parcel.artifact, session.sent) == ("", [])
    assert Path(parcel.path).parent == tmp_path / "shared"


@pytest.mark.parametrize(
    ("kind", "master", "has_server", "shares"),
    [
        (Session, "local", False, True),
        (Session, "local[2]", False, True),
        (Session, "local-cluster[2,1,1024]", False, False),
        (Session, "spark://host:7077", False, False),
        (Session, "yarn", False, False),
        (RemoteSession, "local[2]", True, True),  # the server is in this process
        (RemoteSession, "local[2]", False, False),
        (RemoteSession, "spark://host:7077", True, False),
    ],
)
def test_sets_are_artifacts_unless_all_workers_are_on_this_host(
    tmp_path, monkeypatch, kind, master, has_server, shares
):
    monkeypatch.delenv("SPARK_LOCAL_REMOTE", raising=False)
    if has_server:
        monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")

    assert artifacts.shares_files(kind(tmp_path, master)) == shares


def test_the_file_of_an_artifact_is_kept_until_the_driver_ends(worker, monkeypatch):
    session = Session(worker)
    monkeypatch.setattr(set_files, "_KEPT_FILES", 1)
    first = shipping.pack(many_queries(), None, None, session)
    shipping.pack(many_queries(160_000), None, None, session)

    assert not Path(first.path).exists()  # executors that start later fetch the link
    assert session.sent[0].read_bytes() == (worker / first.artifact).read_bytes()


def test_a_session_that_refuses_the_artifact_is_an_error_with_a_way_out(worker, monkeypatch):
    def refuse(self, path, *, file):
        raise PySparkRuntimeError("[DUPLICATED_ARTIFACT] Duplicate Artifact")

    monkeypatch.setattr(Session, "addArtifacts", refuse)

    with pytest.raises(vd.PipelineError, match=r"cannot send .*: \[DUPLICATED_ARTIFACT\] .*; pass snapshot_dir= with"):
        shipping.pack(many_queries(), None, None, Session(worker))


def test_spark_refuses_another_file_with_the_name_of_an_artifact(spark, tmp_path):
    name = f"vedette-{os.getpid()}.queries"
    for place, content in (("one", b"a"), ("two", b"b")):
        (tmp_path / place).mkdir()
        (tmp_path / place / name).write_bytes(content)
    spark.addArtifacts(str(tmp_path / "one" / name), file=True)

    with pytest.raises(vd.PipelineError, match=r"cannot send .*; pass snapshot_dir="):
        artifacts.send(spark, tmp_path / "two" / name)
