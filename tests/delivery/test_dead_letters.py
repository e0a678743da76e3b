"""Dead letters in a folder and in a database: written once per micro-batch, listed, sent again, deleted."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

import vedette as vd
from tests.delivery.receiver import answer, serve
from vedette.delivery.dead_letters import EVENT, ROW, Letter, Part, address_of, open_letters
from vedette.delivery.options import WebhookOptions
from vedette.delivery.redelivery import choose, redeliver
from vedette.errors import FileError, PipelineError

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def letter(id_: str, **facts) -> Letter:
    given = {
        "kind": EVENT,
        "source": "fleet:hook",
        "body": f'{{"event_id":"{id_}"}}',
        "reason": "down",
        "failed_at": AT,
    }
    return Letter(id_, **given | {"url": "http://127.0.0.1:1/", "group": "ann", "stream": "s", "batch": 7} | facts)


@pytest.fixture(params=["folder", "database"])
def place(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "letters")
    vd.Registry(f"sqlite:///{tmp_path}/r.db").close()
    return f"sqlite:///{tmp_path}/r.db"


def test_letters_are_read_as_they_were_written(place):
    written = [letter("a"), letter("b", group=None, status=503, attempts=8), letter("é", url=None, reason="x\ny")]
    open_letters(place).write(Part("s", 7, "0"), written)

    assert sorted(open_letters(place).read(), key=lambda each: each.id) == written


def test_a_text_may_have_any_character(place):
    open_letters(place).write(Part("s", 7, "0"), [letter("a", group="\0x", reason="\0")])

    assert [each.group[-1] for each in open_letters(place).read()] == ["x"]


def test_a_repeated_micro_batch_replaces_its_letters(place):
    letters = open_letters(place)
    letters.write(Part("s", 7, "0"), [letter("a"), letter("b")])
    letters.write(Part("s", 7, "1"), [letter("c")])
    letters.write(Part("s", 8, "0"), [letter("d", batch=8)])
    letters.write(Part("s", 7, "0"), [letter("b")])
    assert sorted(each.id for each in letters.read()) == ["b", "c", "d"]

    letters.write(Part("s", 7, "0"), [])
    assert sorted(each.id for each in letters.read()) == ["c", "d"]


def test_letters_are_removed_by_source_and_id(place):
    letters = open_letters(place)
    letters.write(Part("s", 7, "0"), [letter(str(i)) for i in range(1200)])
    letters.write(Part("t", 7, "0"), [letter("1", source="other", stream="t")])

    assert letters.remove([letter(str(i)) for i in range(1, 1200)]) == 1199
    assert sorted((each.source, each.id) for each in letters.read()) == [("fleet:hook", "0"), ("other", "1")]
    assert letters.remove([letter("1")]) == 0


def test_letters_are_chosen_by_all_that_is_given():
    given = [letter("a"), letter("b", group="bob"), letter("c", kind=ROW, group=None), letter("d", source="x")]

    assert [each.id for each in choose(given)] == ["a", "b", "c", "d"]
    assert [each.id for each in choose(given, group="ann", source="fleet:hook", kind=EVENT)] == ["a"]
    assert [each.id for each in choose(given, ids=["b", "c"], kind=ROW)] == ["c"]


def test_delivered_letters_are_removed_and_the_others_say_why(place):
    letters = open_letters(place)
    with serve(lambda n: answer(404) if n else None) as receiver:
        given = [letter(f"{i}", url=receiver.url, group=f"{i}", attempts=8) for i in range(3)]
        row = letter("r", kind=ROW, url=None)
        letters.write(Part("s", 7, "0"), [*given, row])
        options = WebhookOptions.read(None, allow_addresses=["127.0.0.1"])
        counts = redeliver(letters, list(letters.read()), options)

    left = {each.id: each for each in letters.read()}
    assert counts == (1, 2)
    assert len(receiver.ids) == 1
    assert set(left) == {"0", "1", "2", "r"} - set(receiver.ids)
    assert left.pop("r") == row
    assert {(each.status, each.attempts, each.batch) for each in left.values()} == {(404, 9, 7)}


def test_the_files_are_private_and_readable_as_parquet(tmp_path):
    open_letters(tmp_path / "letters").write(Part("s", 7, "0"), [letter("a")])

    (file,) = (tmp_path / "letters").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert pq.read_table(file).to_pylist()[0]["reason"] == "down"


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "letters-0-1.parquet").write_bytes(b"no parquet")

    with pytest.raises(FileError, match=rf"^cannot read the dead letters in {tmp_path}: "):
        list(open_letters(tmp_path).read())


def test_a_place_is_given_absolutely_to_other_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    registry = vd.Registry("sqlite:///r.db")

    assert address_of("letters") == f"{tmp_path}/letters"
    assert address_of("s3://bucket/letters") == "s3://bucket/letters"
    assert address_of(registry) == address_of("sqlite:///r.db") == f"sqlite:///{tmp_path}/r.db"
    registry.close()


@pytest.mark.parametrize("place", ["", 5, b"x"])
def test_a_place_that_is_none_is_refused(place):
    with pytest.raises(
        PipelineError, match=r"^dead_letters must be a folder, the address of an object store, or a reg"
    ):
        address_of(place)
