"""How query sets reach the workers, and what a worker says that cannot open one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark import cloudpickle

import vedette as vd
from vedette import spark as vs
from vedette.spark import shipping
from vedette.spark.match import _WORKER


def many_queries(n=200_000):
    lows = np.arange(n, dtype=np.float64)
    queries = vd.QuerySet("price double")
    queries.add_boxes(np.arange(n), {"price": (lows, lows + 0.5)})
    return queries


def test_a_large_set_travels_as_a_file_and_is_left_where_it_was_asked_for(spark, tmp_path):
    rows = spark.createDataFrame([(7.25,), (7.75,)], "price double")

    hits = rows.transform(vs.match(many_queries(), snapshot_dir=tmp_path))

    assert [(row["price"], row["query"]) for row in hits.collect()] == [(7.25, 7)]
    assert [path.suffix for path in tmp_path.iterdir()] == [".queries"]


def test_the_same_set_makes_the_same_file(tmp_path):
    queries = many_queries()

    assert shipping.pack(queries, tmp_path) == shipping.pack(queries, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_small_set_travels_without_a_file(tmp_path):
    queries = many_queries(10)

    assert shipping.pack(queries, tmp_path).content is not None
    assert list(tmp_path.iterdir()) == []


def test_a_worker_loads_a_set_once_and_keeps_few():
    parcels = [shipping.pack(many_queries(n), None) for n in range(1, 8)]

    assert shipping.unpack(parcels[0]) is shipping.unpack(parcels[0])
    for parcel in parcels:
        shipping.unpack(parcel)
    assert len(shipping._loaded) <= 4


def test_a_worker_that_cannot_see_the_file_says_to_share_a_directory(tmp_path):
    parcel = shipping.pack(many_queries(), tmp_path)
    Path(parcel.path).unlink()

    with pytest.raises(vd.PipelineError, match=r"cannot see .*\.queries, the snapshot.*pass snapshot_dir= .* share"):
        shipping.unpack(parcel)


def test_a_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(vd.PipelineError, match=r"cannot put a snapshot .* pass snapshot_dir="):
        shipping.pack(many_queries(), tmp_path / "file")


def test_a_worker_of_another_version_is_told(monkeypatch):
    parcel = shipping.pack(many_queries(3), None)
    monkeypatch.setattr(shipping, "_loaded", {})
    monkeypatch.setattr(shipping, "__version__", "9.9")

    with pytest.raises(vd.PipelineError, match=r"has vedette 9\.9 but the driver has .*; install the same version"):
        shipping.unpack(parcel)


def test_a_worker_without_the_package_says_what_to_install(tmp_path):
    parcel = shipping.pack(many_queries(3), None)
    function = shipping.worker_function(_WORKER, "match_batches", parcel.sender, vars(parcel), {"price": 0}, "pairs")
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

    assert "cannot import 'vedette' by" in done.stderr
    assert "install vedette 0.1.0 there" in done.stderr
