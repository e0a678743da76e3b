"""What the experiments of the service read from the wire, and that wrong answers are noticed."""

from __future__ import annotations

import json

import pytest

from benchmarks import http_load, socket_load
from benchmarks.harness import AnswersDifferError, Bench
from benchmarks.peers import tile38
from benchmarks.served_zones import Vans, as_arrow, as_lines, as_objects, check_events, check_load


def answers_of(vans, rows):
    events = [
        {"key": key, "time": time.isoformat(), "query": query, "event": event}
        for key, time, query, event in vans.events(rows)
    ]
    return [json.dumps({"events": events}).encode()]


def test_events_that_differ_from_those_of_a_monitor_are_noticed():
    vans, others = Vans(500, 20), Vans(500, 20)
    rows = vans.make(400)
    answers = answers_of(others, rows)

    assert check_events(answers, vans, rows, "all") > 5

    rows = vans.make(400)
    record = json.loads(answers_of(others, rows)[0])
    record["events"].pop()
    with pytest.raises(AnswersDifferError, match=r"one too few: .* events instead of"):
        check_events([json.dumps(record).encode()], vans, rows, "one too few")


def test_failed_requests_are_noticed():
    vans = Vans(10)
    load = http_load.Load(1.0, n_failed=2, last=b"HTTP/1.1 429")

    with pytest.raises(AnswersDifferError, match=r"2 requests failed: b'HTTP/1\.1 429'"):
        check_load(load, vans, vans.make(1), "rows")


def test_rows_continue_in_every_form():
    vans = Vans(10, n_vans=3)
    first, second = vans.make(4), vans.make(4)

    assert [json.loads(each)["van"] for each in as_objects(second)] == [1, 2, 0, 1]
    assert json.loads(as_objects(second)[0])["ts"] == "2026-03-02T00:00:00.004+00:00"
    assert [len(each.splitlines()) for each in as_lines(first, 3)] == [3, 1]
    assert len(as_arrow(first, 2)) == 2


@pytest.mark.parametrize("n", [5, 200, 70_000])
def test_frames_are_read_in_whatever_pieces_they_arrive(n):
    sent = [bytes([65 + k]) * n for k in range(3)]
    frames = b"".join(_server_frame(each) for each in sent)
    found, rest = [], b""
    for start in range(0, len(frames), max(1, len(frames) // 7)):
        made, rest = socket_load._read_frames(rest + frames[start : start + max(1, len(frames) // 7)])
        found += made

    assert (found, rest) == (sent, b"")


def _server_frame(payload):
    """A frame without a mask: that of a client without its bit and its four bytes."""
    frame = socket_load._frame(payload, True)
    head = len(frame) - len(payload) - 4
    return bytes([frame[0], frame[1] & 0x7F]) + frame[2:head] + payload


def test_messages_of_a_subscriber_are_read_in_whatever_pieces_they_arrive():
    event = {"id": "7", "hook": "zone-1", "detect": "enter", "object": {"type": "Point", "coordinates": [0.25, 0.5]}}
    message = tile38.write_command("pmessage", "zone-*", "zone-1", json.dumps(event))
    data = b"*3\r\n$10\r\npsubscribe\r\n$6\r\nzone-*\r\n:1\r\n" + 2 * message
    found, rest = [], b""
    for place in range(len(data)):
        made, rest = tile38._read_messages(rest + data[place : place + 1])
        found += made

    assert [*map(tile38.read_message, found[1:])] == 2 * [(7, 0.25, 0.5, "zone-1", "enter")]
    assert (found[0], rest) == (b":1", b"")


def test_without_its_program_tile38_is_left_out_with_a_clear_line(monkeypatch, capsys):
    from benchmarks.experiments import serve_tile38

    monkeypatch.delenv("TILE38_SERVER", raising=False)
    monkeypatch.setattr(serve_tile38, "_ways", list)
    monkeypatch.setattr(serve_tile38, "serving", _Nothing)
    serve_tile38.serve_tile38(Bench("serve-tile38", quick=True))

    assert "Tile38 is left out: set TILE38_SERVER to the path of its server program" in capsys.readouterr().err


class _Nothing:
    def __init__(self, folder):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
