"""Processes of a host elect one leader, which answers the others; if it ends, another takes over."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import accounts
import pytest

from vedette.host_files import leader
from vedette.host_files.leader import Leader, StalledError

# A process that asks on request, and as a leader answers with its process id and the number of its requests.
ASKER = """if True:
    import os, sys, time
    from pathlib import Path
    from vedette.host_files.leader import Leader
    answered = 0
    def work(request):
        global answered
        answered += 1
        if request["text"] == "hang" and Path("hang").exists():
            os.write(1, b"hangs\\n")  # at once: two threads may write
            time.sleep(600)
        return {"pid": os.getpid(), "answered": answered, "text": request["text"]}
    asks = Leader(Path(sys.argv[1]), "job", work)
    print("ready", flush=True)
    for line in sys.stdin:
        answer = asks.ask({"text": line.strip()})
        print(answer["pid"], answer["answered"], answer["text"], flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Starts processes that are ready to ask."""
    started = []

    def start_all(n):
        made = [accounts.start(ASKER, tmp_path, temporary=tmp_path) for _ in range(n)]
        started.extend(made)
        assert {accounts.read_line(each) for each in made} == {"ready"}
        return made

    yield start_all
    for process in started:
        process.kill()
        process.communicate()


def send(process, text):
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def ask_all(processes, text):
    """The answers of all processes, which ask at the same time: process id, number, text."""
    for process in processes:
        send(process, text)
    lines = [accounts.read_line(each).split() for each in processes]
    return [(int(pid), int(answered), said) for pid, answered, said in lines]


@pytest.mark.full
def test_one_process_answers_all_and_another_takes_over_when_it_is_killed(start):
    processes = start(4)
    first, second = ask_all(processes, "a"), ask_all(processes, "b")
    leader_id = first[0][0]

    assert {pid for pid, *_ in first + second} == {leader_id}
    assert sorted(number for _, number, _ in first + second) == list(range(1, 9))
    assert {text for *_, text in second} == {"b"}

    os.kill(leader_id, signal.SIGKILL)
    others = [each for each in processes if each.pid != leader_id]
    answers = ask_all(others, "c")

    assert len({pid for pid, *_ in answers}) == 1
    assert answers[0][0] in {each.pid for each in others}


@pytest.mark.full
def test_a_request_of_a_leader_that_is_killed_while_it_works_is_answered_by_another(start, tmp_path):
    processes = start(3)
    leader_id = ask_all(processes, "a")[0][0]
    others = [each for each in processes if each.pid != leader_id]
    (tmp_path / "hang").touch()
    for each in others:
        send(each, "hang")
    leader_process = next(each for each in processes if each.pid == leader_id)
    assert accounts.read_line(leader_process) == "hangs"

    (tmp_path / "hang").unlink()
    os.kill(leader_id, signal.SIGKILL)
    answers = [accounts.read_line(each).split() for each in others]

    assert {text for *_, text in answers} == {"hang"}
    assert {int(pid) for pid, *_ in answers} <= {each.pid for each in others}
    assert len({pid for pid, *_ in answers}) == 1


@pytest.mark.full
def test_a_stopped_leader_is_an_error_after_a_wait(start, tmp_path, monkeypatch):
    (process,) = start(1)
    ask_all([process], "a")
    monkeypatch.setattr(leader, "STALLED_SECONDS", 0.3)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StalledError, match="the leader of job does not answer"):
            Leader(tmp_path, "job", lambda request: request).ask({"text": "b"})
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_a_slow_leader_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(leader, "STALLED_SECONDS", 0.4)
    monkeypatch.setattr(leader, "_BEAT_SECONDS", 0.05)

    def work(request):
        time.sleep(request["seconds"])
        return {"done": True}

    first, second = (Leader(tmp_path, "job", work) for _ in range(2))
    assert first.ask({"seconds": 0}) == {"done": True}
    assert first.leads
    start = time.monotonic()
    assert second.ask({"seconds": 1.0}) == {"done": True}
    assert time.monotonic() - start >= 1.0
    assert not second.leads
    first.resign()


def test_another_takes_over_from_a_leader_that_ends_after_a_long_request(tmp_path, monkeypatch):
    monkeypatch.setattr(leader, "STALLED_SECONDS", 0.4)
    monkeypatch.setattr(leader, "_BEAT_SECONDS", 0.05)
    is_asked = threading.Event()

    def work_for_long(request):
        is_asked.set()
        time.sleep(60)

    first, second = Leader(tmp_path, "job", work_for_long), Leader(tmp_path, "job", lambda request: {"done": True})
    assert first._try_to_lead()
    connections, accept = [], first._answer
    monkeypatch.setattr(first, "_answer", lambda connection: (connections.append(connection), accept(connection)))

    def end():
        is_asked.wait()
        time.sleep(0.6)  # longer than a leader may be silent
        first.resign()
        connections[0].shutdown(socket.SHUT_RDWR)

    ending = threading.Thread(target=end)
    ending.start()
    assert second.ask({}) == {"done": True}
    assert second.leads
    ending.join()
    second.resign()


def test_a_long_path_and_long_messages_work(tmp_path):
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    first, second = (Leader(directory, "job", lambda request: request) for _ in range(2))
    message = {"text": "x" * 1_000_000}

    assert first.ask(message) == message
    assert second.ask(message) == message
    assert first.leads
    assert not second.leads
    first.resign()
    assert second.ask(message) == message
    assert second.leads
    second.resign()


def test_many_threads_of_one_process_are_answered(tmp_path):
    asks, answers = Leader(tmp_path, "job", lambda request: request), []
    threads = [threading.Thread(target=lambda n=n: answers.append(asks.ask({"n": n})["n"])) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == list(range(20))
    asks.resign()


def test_a_fork_of_the_leader_does_not_keep_the_lock(tmp_path):
    first = Leader(tmp_path, "job", lambda request: request)
    first.ask({})
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # ends when the test closes the pipe
        os.close(writing)
        os.read(reading, 1)
        os._exit(int(first.leads))
    os.close(reading)
    first.resign()
    second = Leader(tmp_path, "job", lambda request: request)
    second.ask({})

    assert second.leads
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    second.resign()


def test_the_files_of_old_jobs_are_deleted_but_not_those_of_a_leader(tmp_path):
    asks = {name: Leader(tmp_path, name, lambda request: request) for name in ("ended", "leads", "recent")}
    for each in asks.values():
        each.ask({})
    asks["ended"].resign()
    asks["recent"].resign()
    long_ago = time.time() - 3 * 86_400
    for name in ("ended", "leads"):
        os.utime(tmp_path / f"{name}.lock", (long_ago, long_ago))

    leader.remove_old_jobs(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "leads.lock", "leads.socket", "recent.lock", "recent.socket"
    ]  # fmt: skip
    asks["leads"].resign()


def test_a_job_that_begins_while_old_ones_are_deleted_keeps_its_socket(tmp_path, monkeypatch):
    old, new = (Leader(tmp_path, "job", lambda request: request) for _ in range(2))
    old.ask({})
    old.resign()
    long_ago = time.time() - 3 * 86_400
    os.utime(tmp_path / "job.lock", (long_ago, long_ago))
    unlink = os.unlink

    def begin_and_unlink(path, **options):
        if str(path).endswith(".socket") and not new._election.locked():
            new._try_to_lead()
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", begin_and_unlink)
    leader.remove_old_jobs(tmp_path)
    monkeypatch.undo()
    new.ask({})

    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.lock", "job.socket"]
    new.resign()
