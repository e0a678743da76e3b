"""How query sets are sent to workers, and the errors of a worker that cannot open one."""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import accounts
import numpy as np
import pytest
from pyspark import cloudpickle

import vedette as vd
from vedette import spark as vs
from vedette.spark.match import _WORKER
from vedette.spark.shipping import query_sets as shipping
from vedette.spark.shipping import set_files


def many_queries(n=200_000):
    lows = np.arange(n, dtype=np.float64)
    queries = vd.QuerySet("price double")
    queries.add_boxes(np.arange(n), {"price": (lows, lows + 0.5)})
    return queries


def test_a_large_set_is_sent_as_a_file_and_stays_in_the_given_directory(spark, tmp_path):
    rows = spark.createDataFrame([(7.25,), (7.75,)], "price double")

    hits = rows.transform(vs.match(many_queries(), snapshot_dir=tmp_path))

    assert [(row["price"], row["query"]) for row in hits.collect()] == [(7.25, 7)]
    assert [path.suffix for path in tmp_path.iterdir()] == [".queries"]


def test_the_same_set_makes_the_same_file(tmp_path):
    queries = many_queries()

    assert shipping.pack(queries, tmp_path) == shipping.pack(queries, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


# A driver that sends a set, prints the path of its file, and ends on request.
DRIVER = """if True:
    import sys
    import numpy as np
    import vedette as vd
    from vedette.settings import settings
    from vedette.spark.shipping import query_sets as shipping
    queries = vd.QuerySet("price double")
    lows = np.arange(200_000.0)
    queries.add_boxes(np.arange(200_000), {"price": (lows, lows + 0.5)})
    queries.match_one({"price": 7.25})
    settings(), queries.to_bytes()
    become()
    parcel = shipping.pack(queries, sys.argv[1] if len(sys.argv) > 1 else None)
    print(parcel.path, flush=True)
    assert shipping.unpack(parcel).match_one({"price": 7.25}) == [7]
    sys.stdin.readline()
"""
# A new worker of any driver on this host.
WORKER = """if True:
    import sys, socket
    from pathlib import Path
    from vedette import __version__
    from vedette.spark.shipping.query_sets import Parcel, unpack
    kind = ("vedette.queries.query_set", "QuerySet")
    token = Path(sys.argv[1]).stem.split("-")[1]
    parcel = Parcel(token, None, sys.argv[1], __version__, kind, socket.gethostname())
    print(unpack(parcel).match_one({"price": 7.25})[0])
"""


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.full
def test_the_file_of_a_set_is_deleted_with_its_last_driver(tmp_path, is_killed):
    first, second = (accounts.start(DRIVER, temporary=tmp_path) for _ in range(2))
    path, same = (Path(accounts.read_line(each)) for each in (first, second))
    assert path == same
    assert path.stat().st_nlink == 1
    if is_killed:
        first.kill()
        first.communicate()
    else:
        accounts.end(first)

    assert accounts.end(accounts.start(WORKER, path, temporary=tmp_path)) == ["7"]
    accounts.end(second)
    assert list(path.parent.iterdir()) == []


def test_files_of_killed_drivers_are_deleted_by_the_next_driver(tmp_path, monkeypatch):
    killed = accounts.start(DRIVER, temporary=tmp_path)
    path = Path(accounts.read_line(killed))
    killed.kill()
    killed.communicate()
    assert path.exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(set_files, "_leases", {})
    parcel = shipping.pack(many_queries(150_000), None)

    assert list(path.parent.iterdir()) == [Path(parcel.path)]
    set_files._release_all()
    assert list(path.parent.iterdir()) == []


def test_a_driver_keeps_the_files_of_its_last_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(set_files, "_leases", {})
    monkeypatch.setattr(set_files, "_KEPT_FILES", 2)

    paths = [set_files.publish(many_queries(n), None)[1] for n in (1, 2, 1, 3, 4, 3)]

    assert set(paths[0].parent.iterdir()) == set(paths[-2:])
    assert len(set_files._leases) == 3  # one lease is on the directory
    assert set_files.publish(many_queries(1), None)[1].exists()
    set_files._release_all()
    assert list(paths[0].parent.iterdir()) == []


@pytest.mark.parametrize("place", ["the temporary directory", "a directory that both chose"])
@pytest.mark.full
def test_two_accounts_use_the_same_set_concurrently(tmp_path, place):
    accounts.open_to_all(tmp_path)
    chosen = [] if place == "the temporary directory" else [tmp_path]
    started = [accounts.start(DRIVER, *chosen, temporary=tmp_path, uid=uid) for uid in accounts.others()]
    paths = [Path(accounts.read_line(each)) for each in started]

    assert len(set(paths)) == len(paths)
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    for process in started:
        accounts.end(process)
    assert {path.exists() for path in paths} == {bool(chosen)}  # files in a chosen directory are kept


def test_a_file_of_another_account_with_the_name_of_a_set_is_neither_used_nor_replaced(tmp_path, monkeypatch):
    path = Path(shipping.pack(many_queries(), tmp_path).path)
    path.write_bytes(b"of another")
    if os.geteuid() == 0:
        os.chown(path, accounts.OTHER, accounts.OTHER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: accounts.OTHER)
    parcel = shipping.pack(many_queries(), tmp_path)

    assert Path(parcel.path) == path.with_name(f"{path.stem}-{os.geteuid()}.queries")
    assert path.read_bytes() == b"of another"


def test_a_damaged_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(set_files, "_leases", {})
    path = Path(shipping.pack(many_queries(), None).path)
    path.write_bytes(b"torn")

    assert Path(shipping.pack(many_queries(), None).path) == path
    assert len(vd.QuerySet.load(path)) == 200_000
    set_files._release_all()


def test_a_worker_refuses_a_file_that_was_changed_after_the_driver_wrote_it(tmp_path):
    parcel = shipping.pack(many_queries(), tmp_path)
    path = Path(parcel.path)
    changed = vd.QuerySet.load(path)
    (part,) = changed.view().parts.compiled
    part.axes["price"].cuts[15] = 7.25  # a constant: only the digest detects it
    changed.save(path)
    assert len(vd.QuerySet.load(path)) == 200_000

    with pytest.raises(vd.PipelineError, match="has changed since the driver wrote it; start the job again"):
        shipping.unpack(parcel)


def test_the_error_of_a_worker_of_another_account_says_how_to_share(tmp_path, monkeypatch):
    parcel = shipping.pack(many_queries(), tmp_path)

    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(shipping.FileLease, "take", refuse)
    with pytest.raises(vd.PipelineError, match=r"cannot read .*: Permission denied; .* set file_mode and"):
        shipping.unpack(parcel)


def test_a_worker_of_this_host_reports_a_deleted_file(tmp_path):
    parcel = shipping.pack(many_queries(), tmp_path)
    Path(parcel.path).unlink()
    with pytest.raises(vd.PipelineError, match=r"it was deleted, or the driver has ended; start the job again"):
        shipping.unpack(parcel)
    with pytest.raises(vd.PipelineError, match=r"the snapshot of the query set; pass snapshot_dir= with"):
        shipping.unpack(dataclasses.replace(parcel, host="another"))


def test_a_small_set_is_sent_without_a_file(tmp_path):
    queries = many_queries(10)

    assert shipping.pack(queries, tmp_path).content is not None
    assert list(tmp_path.iterdir()) == []


def test_a_worker_loads_a_set_once_and_keeps_few():
    parcels = [shipping.pack(many_queries(n), None) for n in range(1, 8)]

    assert shipping.unpack(parcels[0]) is shipping.unpack(parcels[0])
    for parcel in parcels:
        shipping.unpack(parcel)
    assert len(shipping._loaded) <= 4


def test_a_worker_that_cannot_find_the_file_says_to_share_a_directory(tmp_path):
    parcel = shipping.pack(many_queries(), tmp_path)
    Path(parcel.path).unlink()

    with pytest.raises(vd.PipelineError, match=r"cannot find .*\.queries, the snapshot.*pass snapshot_dir= .* share"):
        shipping.unpack(parcel)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(vd.PipelineError, match=r"cannot write a snapshot .* pass snapshot_dir="):
        shipping.pack(many_queries(), tmp_path / "file")


def test_a_worker_of_another_version_is_an_error(monkeypatch):
    parcel = shipping.pack(many_queries(3), None)
    monkeypatch.setattr(shipping, "_loaded", {})
    monkeypatch.setattr(shipping, "__version__", "9.9")

    with pytest.raises(vd.PipelineError, match=r"has vedette 9\.9 but the driver has .*; install the same version"):
        shipping.unpack(parcel)


def test_a_worker_without_the_package_says_what_to_install(tmp_path):
    parcel = shipping.pack(many_queries(3), None)
    function = shipping.worker_function(
        _WORKER, "match_batches", parcel.sender, vars(parcel), {"price": 0}, "pairs", 1 << 20, False
    )
    (tmp_path / "function").write_bytes(cloudpickle.dumps(function))
    script = (
        "import pickle, sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'vedette':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"pickle.load(open({str(tmp_path / 'function')!r}, 'rb'))(iter([]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert "cannot import 'vedette' with" in done.stderr
    assert "install vedette 0.1.0 there" in done.stderr
