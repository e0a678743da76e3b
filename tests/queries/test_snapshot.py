from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
import zlib

import numpy as np
import pytest

import vedette as vd
from vedette.host_files import private_files
from vedette.native.damage import DamageError
from vedette.queries import snapshot
from vedette.queries.match import Part


@pytest.fixture
def file(tmp_path):
    queries = vd.QuerySet("x double")
    queries.add_boxes(np.arange(5000), {"x": (np.arange(5000.0), np.arange(5000.0) + 3)})
    path = tmp_path / "queries.vedette"
    queries.save(path)
    return path


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"something else, and long enough to look at")
    empty = tmp_path / "empty"
    empty.touch()

    with pytest.raises(vd.SnapshotError, match="is not a saved query set"):
        vd.QuerySet.load(other)
    with pytest.raises(vd.SnapshotError, match="is empty; it is not a saved query set"):
        vd.QuerySet.load(empty)
    with pytest.raises(vd.FileError, match=r"cannot read the query set .*: No such file"):
        vd.QuerySet.load(tmp_path / "none")


@pytest.mark.parametrize("harm", ["cut", "changed", "length changed"])
def test_a_damaged_file_is_refused(file, harm):
    data = bytearray(file.read_bytes())
    if harm == "cut":
        data = data[: len(data) // 2]
    else:
        data[16 if harm == "length changed" else len(data) // 2] ^= 1
    file.write_bytes(data)

    with pytest.raises(vd.SnapshotError, match="is damaged: its checksum is wrong; save the set again"):
        vd.QuerySet.load(file)


def test_a_file_of_another_format_is_refused(file):
    data = bytearray(file.read_bytes())
    data[8] = 99
    file.write_bytes(data)

    with pytest.raises(vd.SnapshotError, match="has format 99; this Vedette reads format 4: save the set again"):
        vd.QuerySet.load(file)


def test_bytes_of_another_format_are_refused():
    queries = bytearray(vd.BandQuerySet().to_bytes())
    queries[8] = 2
    with pytest.raises(vd.SnapshotError, match=r"^the saved query set has format 2; .* format 4: save the set again$"):
        vd.BandQuerySet.from_bytes(bytes(queries))


@pytest.mark.parametrize("known", [{}, {"Part": vd.Schema}])
def test_a_file_with_what_another_vedette_knew_is_refused(file, monkeypatch, known):
    monkeypatch.setattr(snapshot, "_CLASSES", known)

    with pytest.raises(
        vd.SnapshotError, match="has content that is unknown to this version of Vedette: save the set again"
    ):
        vd.QuerySet.load(file)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(file):
    queries = vd.QuerySet.load(file)
    with pytest.raises(vd.FileError, match="cannot write the query set"):
        queries.save(file.parent / "no such folder" / "queries.vedette")

    assert os.listdir(file.parent) == [file.name]


def test_a_file_is_for_its_owner_alone_unless_the_settings_say_otherwise(file, monkeypatch):
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.setattr(private_files, "settings", lambda: vd.settings.Settings(file_mode=0o640))
    vd.QuerySet.load(file).save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_changes_of_a_loaded_set_do_not_reach_the_file(file):
    before = file.read_bytes()
    loaded = vd.QuerySet.load(file)
    loaded.remove_many(np.arange(2000))
    loaded.add("new" if loaded.ids.type == "string" else 99_999, "x > 4")

    assert loaded.match({"x": [2500.0]}).counts.tolist() == [5]
    assert file.read_bytes() == before
    assert vd.QuerySet.load(file).match({"x": [100.0]}).counts.tolist() == [4]


def resealed(data, header=None, body=None):
    """Saved bytes with another header or body, and a checksum that fits."""
    length = int.from_bytes(data[16:24], "little")
    header = data[24 : 24 + length] if header is None else header
    header += b" " * (-(len(header) + 24) % 64)
    rest = len(header).to_bytes(8, "little") + header + (data[24 + length :] if body is None else body)
    return data[:12] + zlib.crc32(rest).to_bytes(4, "little") + rest


def with_header(data, change):
    length = int.from_bytes(data[16:24], "little")
    tree = json.loads(data[24 : 24 + length])
    change(tree)
    return resealed(data, json.dumps(tree).encode())


def names_of(tree):
    """The content of a set by name."""
    return dict(tree["content"]["dict"])


@pytest.mark.parametrize(
    "header",
    [
        b"\xff\xfe", b"{", b"null", b"[]", b'{"arrays": [], "content": 1}', b"[" * 100_000,
        b'{"arrays": 7, "content": {"dict": []}}', b'{"arrays": [["|O", [1], 0]], "content": {"dict": []}}',
        b'{"arrays": [["<i8", [4611686018427387904], 0]], "content": {"dict": []}}',
        b'{"arrays": [["<i8", [-1], 0]], "content": {"dict": []}}', b'{"arrays": [], "content": {"dict": []}}',
        b'{"arrays": [], "content": {"dict": [["kind", "queries"], ["schema", 7]]}}',
        b'{"arrays": [], "content": ' + b'{"list": [' * 5000 + b"]}" * 5000 + b"}",
        b'{"arrays": [], "content": {"dict": [["kind", ' + b"9" * 5000 + b"]]}}",
    ],
)  # fmt: skip
def test_a_header_that_is_none_is_refused_with_a_sentence(file, header):
    file.write_bytes(resealed(file.read_bytes(), header))

    with pytest.raises(vd.SnapshotError) as caught:
        vd.QuerySet.load(file)
    assert len(str(caught.value)) < 300


def test_an_array_that_two_would_write_to_is_refused(file):
    def share(tree):
        _, arrays, _ = names_of(tree)["ids"]["tuple"]
        arrays["list"][0] = arrays["list"][1]

    data = with_header(file.read_bytes(), share)
    with pytest.raises(vd.SnapshotError, match="an array has two owners; save the set again"):
        vd.QuerySet.from_bytes(data)


def test_arrays_that_overlap_or_leave_a_gap_are_refused(file):
    def move(tree):
        tree["arrays"][1][2] = 0

    with pytest.raises(vd.SnapshotError, match="its arrays are not complete"):
        vd.QuerySet.from_bytes(with_header(file.read_bytes(), move))
    with pytest.raises(vd.SnapshotError, match="its arrays are not complete"):
        vd.QuerySet.from_bytes(resealed(file.read_bytes() + bytes(64)))


@pytest.mark.parametrize(("field", "place", "value"), [
    ("entries", 2, 1 << 20), ("entries", 9, -7), ("entries", 0, 5), ("slot_blocks", 3, 1), ("slot_blocks", 0, 1 << 30),
    ("cell_counts", 2000, 9999),
])  # fmt: skip
def test_an_index_that_would_read_beyond_its_arrays_is_refused(field, place, value):
    queries = vd.QuerySet("x double", index="Buckets")
    queries.add_boxes(np.arange(5000), {"x": (np.arange(5000.0), np.arange(5000.0) + 30)})
    (part,) = queries.view().parts.compiled
    getattr(part.groups[0].index, field)[place] = value

    with pytest.raises(vd.SnapshotError, match=r"^the saved query set is damaged: the blocks of buckets are invalid"):
        vd.QuerySet.from_bytes(queries.to_bytes())


def test_a_set_whose_ids_are_not_distinct_or_not_utf8_is_refused():
    queries = vd.QuerySet("x double")
    queries.add_many([f"q{number}" for number in range(10, 99)], [f"x > {number}" for number in range(10, 99)])
    data = queries.to_bytes()

    assert len(vd.QuerySet.from_bytes(data)) == 89
    with pytest.raises(vd.SnapshotError, match="the hash table is not that of the ids"):
        vd.QuerySet.from_bytes(resealed(data, body=body_of(data).replace(b"q10q11", b"q10q10")))
    with pytest.raises(vd.SnapshotError, match="strings overlap, or are not UTF-8"):
        vd.QuerySet.from_bytes(resealed(data, body=body_of(data).replace(b"q10q11", b"q10\xff11")))


def body_of(data):
    return data[24 + int.from_bytes(data[16:24], "little") :]


def test_a_residual_of_unknown_nodes_or_without_its_constants_is_refused():
    queries = vd.QuerySet("x double, y double")
    queries.add("a", "x * 3 > y")
    (part,) = queries.view().parts.compiled
    (residual,) = part.residuals
    times = residual.expression.args[0]
    for harmed in (
        dataclasses.replace(residual, expression=dataclasses.replace(residual.expression, op="eval")),
        dataclasses.replace(residual, expression=dataclasses.replace(residual.expression, args=(times,))),
        dataclasses.replace(residual, expression=dataclasses.replace(times, op="upper", args=times.args[:1])),
        dataclasses.replace(residual, constants=()),
        dataclasses.replace(residual, constants=(residual.constants[0][:0],)),
        dataclasses.replace(residual, time_zone="Nowhere/Else"),
    ):
        with pytest.raises((DamageError, vd.SchemaError)):
            harmed.validate(queries.schema, range(1))


def test_an_integer_and_a_decimal_of_many_digits_are_compared_after_loading_too():
    queries = vd.QuerySet("i bigint, x double")
    queries.add("above", "i > 1.0000000000000000000000000001 OR x + 1 > 3")

    loaded = vd.QuerySet.from_bytes(queries.to_bytes())

    assert [loaded.match_one({"i": i, "x": 0.0}) for i in (1, 2)] == [[], ["above"]]


def test_a_file_is_validated_once_per_host_and_state_of_the_file(file, monkeypatch):
    validated = []
    validate = Part.validate
    monkeypatch.setattr(Part, "validate", lambda *given: validated.append(1) or validate(*given))
    for _ in range(3):
        vd.QuerySet.load(file)
    assert len(validated) == 1

    file.write_bytes(file.read_bytes())
    vd.QuerySet.load(file)
    assert len(validated) == 2
    data = file.read_bytes()
    vd.QuerySet.from_bytes(data)
    vd.QuerySet.from_bytes(data)
    assert len(validated) == 4


@pytest.mark.parametrize("index", ["IBS", "R-tree", "VCR", "MLGF"])
def test_an_index_of_the_literature_is_saved_as_its_boxes_unless_it_can_be_validated(index):
    queries = vd.QuerySet("x double, y double", index=index)
    lows = np.arange(500.0)
    queries.add_boxes(np.arange(500), {"x": (lows, lows + 3), "y": (lows, lows + 5)})
    data = queries.to_bytes()
    loaded = vd.QuerySet.from_bytes(data)
    rows = {"x": lows, "y": lows + 2}

    assert loaded.match(rows).counts.tolist() == queries.match(rows).counts.tolist()
    assert f": {index}, " in loaded.explain()
    assert (b"KeptAsBoxes" in data) == (index != "MLGF")


def test_a_polygon_that_would_overflow_the_stack_is_refused_at_every_place_of_a_residual():
    program = (
        "import dataclasses, pyarrow as pa, vedette as vd\n"
        "queries = vd.QuerySet('x double, y double')\n"
        "fence = \"ST_Contains(ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))'), ST_Point(x, y))\"\n"
        "queries.add_many(['a', 'b', 'c'], [fence] * 3)\n"
        "(part,) = queries.view().parts.compiled\n"
        "(residual,) = part.residuals\n"
        "texts = residual.constants[0].to_pylist()\n"
        "texts[1] = 'GEOMETRYCOLLECTION(' * 200_000 + 'POINT(1 1)' + ')' * 200_000\n"
        "harmed = dataclasses.replace(residual, constants=(pa.array(texts, pa.large_string()),))\n"
        "object.__setattr__(part, 'residuals', (harmed,))\n"
        "print(queries.match({'x': [3.0], 'y': [1.0]}).n_failed)\n"
        "try:\n    vd.QuerySet.from_bytes(queries.to_bytes())\n"
        "except vd.SnapshotError as error:\n    print('nests too deeply' in str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stdout) == (0, "1\nTrue\n"), done.stderr[-2000:]
