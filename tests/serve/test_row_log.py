"""The log of rows: torn and damaged records."""

from __future__ import annotations

import pytest

from vedette.errors import SnapshotError
from vedette.serve.row_log import Body, Record, RowLog


def record(batch, data=b'{"a": 1}'):
    return Record(batch, 3, 12345, 10 * batch, 2, (Body(0, data), Body(2, b"\0" * 5)))


@pytest.fixture
def log(tmp_path):
    made = RowLog(tmp_path / "rows.log", sync=True)
    for batch in (1, 2, 3):
        made.append(record(batch))
    made.commit()
    yield made
    made.close()


def test_records_are_read_as_they_were_written(log):
    assert list(log.read()) == [record(1), record(2), record(3)]


@pytest.mark.parametrize("n_missing", range(1, len(record(3).to_bytes())))
def test_a_torn_last_record_is_cut_off(log, n_missing):
    data = log.path.read_bytes()
    log.path.write_bytes(data[:-n_missing])
    again = RowLog(log.path, sync=False)

    assert list(again.read()) == [record(1), record(2)]

    again.append(record(4))
    again.commit()
    assert list(again.read()) == [record(1), record(2), record(4)]
    again.close()


def test_garbage_at_the_end_is_cut_off(log):
    with log.path.open("ab") as file:
        file.write(b"\0" * 500)

    assert list(log.read()) == [record(1), record(2), record(3)]
    assert log.path.stat().st_size == 3 * len(record(1).to_bytes())


def test_damage_before_the_last_record_is_an_error(log):
    data = bytearray(log.path.read_bytes())
    data[40] ^= 1
    log.path.write_bytes(data)

    with pytest.raises(SnapshotError, match="is damaged at byte 0: records that were accepted later follow"):
        list(log.read())


def test_a_failed_write_leaves_no_part_of_a_record(log, monkeypatch):
    import os

    write = os.write

    def write_some(handle, data):
        if len(data) > 10:
            return write(handle, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vedette.serve.row_log.os.write", write_some)
    log.append(record(4, b"x" * 15))
    with pytest.raises(OSError, match="No space left"):
        log.commit()
    monkeypatch.undo()

    assert list(log.read()) == [record(1), record(2), record(3)]
