"""The workers of a host see what a plain reader of the registry sees, but the database sees only their leader."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from registry.statements import Statements

import vedette as vd
from tests.profiles import examples
from vedette.registry.host import line, reader, set_on_host
from vedette.registry.snapshots import bases
from vedette.spark.workers import following

VALUES = (0.5, 3.5, 6.5)
SCHEMA = "x double"


def facts_of(registry, name="alerts", **options):
    """What a task gets for a followed set."""
    followed = registry.follow(name, **options).to_plain()
    return {"token": "", "sender": vd.__version__, "followed": followed, "version": None}


class Host:
    """Forked workers with their own temporary directory."""

    def __init__(self, directory, n_workers):
        self.directory = directory
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("host_workers.py")), str(n_workers)],
            cwd=directory,
            env=os.environ | {"TMPDIR": str(directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that its forks are killed with it
        )
        self.pids = json.loads(self.process.stdout.readline())

    def send(self, facts, batch, workers=None, values=VALUES):
        workers = list(range(len(self.pids))) if workers is None else workers
        request = {"facts": facts, "batch": ["stream", batch, "run"], "values": values}
        self._write({"workers": workers, "request": request})

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *arguments, **options):
        """The answers of workers that open a batch at the same time; None for a dead one."""
        self.send(*arguments, **options)
        return self.receive()

    def restart(self, worker):
        self._write({"start": worker})
        self.pids[worker] = self.receive()

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def wait_for_hang(self):
        """The leader that waits at a point."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for file in self.directory.glob("hangs-*"):
                pid = int(file.name.removeprefix("hangs-"))
                if pid in self.pids:  # not of a dead one
                    return pid
            time.sleep(0.01)
        raise AssertionError("no leader waits")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def _write(self, order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()


@pytest.fixture
def host(tmp_path):
    """Starts workers of a host."""
    started = []

    def start(n_workers):
        started.append(Host(tmp_path, n_workers))
        return started[-1]

    yield start
    for each in started:
        each.close()


def make_alerts(registry, n=5):
    registry.create("alerts", schema=SCHEMA)
    registry.add_many("alerts", [f"q{number}" for number in range(n)], [f"x > {number}" for number in range(n)])


def expected(registry, version, values=VALUES):
    """What a plain reader of the registry finds at a version."""
    queries = registry.follow("alerts").open(version)
    return [sorted(queries.match_one({"x": value})) for value in values]


def is_one(answers):
    """Whether all workers saw the same, and at most one of them leads."""
    return (
        len({(each["version"], str(each["found"])) for each in answers}) == 1
        and sum(each["leads"] for each in answers) == 1
    )


@pytest.mark.full
def test_sixteen_workers_and_a_change_in_every_batch_cost_six_statements_and_two_connections(cluster, host):
    url = cluster.new_database()
    registry = vd.Registry(url)
    make_alerts(registry)
    facts, workers, statements = facts_of(registry), host(16), Statements(cluster, url)
    counts, sessions = [], set()
    for batch in range(12):
        version = registry.replace("alerts", "q3", f"x > {batch % 7}")
        statements.begin()
        answers = workers.ask(facts, batch)
        found = statements.end()
        counts.append(len(found))
        sessions |= {session for session, _ in found}

        assert is_one(answers)
        assert answers[0]["version"] == version == registry.pin("stream", batch, "alerts")
        assert answers[0]["found"] == expected(registry, version)

    assert max(counts[1:]) <= 6, counts
    assert counts[0] < 50, counts  # the set is opened once, not by each worker
    assert len(sessions) <= 2
    statements.begin()
    assert is_one(workers.ask(facts, 11))
    assert statements.end() == []  # known on this host
    registry.close()
    cluster.drop_database(url)


@pytest.mark.full
@pytest.mark.parametrize("point", ["before", "after"])
def test_a_leader_that_is_killed_while_it_asks_is_replaced_and_the_batch_has_one_version(url, host, tmp_path, point):
    registry = vd.Registry(url)
    make_alerts(registry)
    facts, workers = facts_of(registry), host(4)
    assert is_one(workers.ask(facts, 0))
    for batch in (1, 2):
        registry.replace("alerts", "q3", f"x > {batch}")
        (tmp_path / f"hang-{point}").touch()
        workers.send(facts, batch)
        leader = workers.wait_for_hang()
        pinned = registry.pin("stream", batch, "alerts") if point == "after" else None
        registry.replace("alerts", "q3", f"x > {batch + 3}")
        workers.kill(leader)
        (tmp_path / f"hang-{point}").unlink()
        answers = workers.receive()
        alive = [each for each in answers if each is not None]

        assert len(alive) == 3
        assert is_one(alive)
        assert alive[0]["version"] == registry.pin("stream", batch, "alerts")
        assert pinned in (None, alive[0]["version"])
        assert alive[0]["found"] == expected(registry, alive[0]["version"])
        workers.restart(answers.index(None))
    assert is_one(workers.ask(facts, 2))
    registry.close()


@pytest.mark.full
def test_workers_that_are_killed_at_random_see_what_a_plain_reader_sees(url, host, tmp_path):
    random = np.random.default_rng(11)
    registry = vd.Registry(url)
    make_alerts(registry)
    facts, workers = facts_of(registry), host(4)
    n_dead = 0
    for batch in range(12):
        registry.replace("alerts", f"q{batch % 5}", f"x > {random.integers(0, 7)}")
        some = sorted(random.choice(4, size=int(random.integers(1, 5)), replace=False).tolist())
        workers.send(facts, batch, some)
        victim = int(random.integers(0, 4))
        if random.random() < 0.6:
            time.sleep(random.uniform(0, 0.02))
            workers.kill(workers.pids[victim])
            n_dead += 1
        else:
            victim = None
        answers = [each for each in workers.receive() if each is not None]
        for each in answers:
            assert each["version"] == registry.pin("stream", batch, "alerts")
            assert each["found"] == expected(registry, each["version"])
        if victim is not None:
            workers.restart(victim)
    assert n_dead > 3
    registry.close()


# Interleavings in one process: each worker has its own leader object, and so its own lock on the file.


class Died(SystemExit):  # ends a thread silently
    """A simulated kill."""


class Worker:
    """A simulated worker process."""

    def __init__(self, directory):
        self.kept, self.leaders, self.directory = following._Kept(), {}, directory

    @contextmanager
    def running(self, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(following, "_kept", self.kept)
            patch.setattr(reader, "_leaders", self.leaders)
            patch.setattr(reader, "account_directory", lambda name: self.directory)
            yield

    def die(self):
        for each in self.leaders.values():
            each._leader.resign()
        self.kept, self.leaders = following._Kept(), {}


class Deaths:
    """Ends the leader at the nth of the points where it changes something."""

    def __init__(self, monkeypatch, workers):
        self.left = 0
        for module, name in [
            (set_on_host, "write_whole"),
            (line, "write_changes"),
            (vd.registry.read.followed, "pin_and_read"),
        ]:
            monkeypatch.setattr(module, name, self._wrap(getattr(module, name), workers))

    def _wrap(self, function, workers):
        def call(*arguments, **options):
            self._pass(workers)
            result = function(*arguments, **options)
            self._pass(workers)
            return result

        return call

    def _pass(self, workers):
        if self.left:
            self.left -= 1
            if not self.left:
                for worker in workers:
                    if any(each.leads for each in worker.leaders.values()):
                        worker.die()
                raise Died


steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, 4), st.integers(0, 7)),
        st.tuples(st.just("open"), st.integers(0, 2), st.integers(0, 2)),  # the worker, how many batches ago
        st.tuples(st.just("kill"), st.integers(0, 2)),
        st.tuples(st.just("die"), st.integers(1, 8)),
        st.tuples(st.just("compact")),
    ),
    min_size=3,
    max_size=30,
)


@pytest.mark.parametrize("kind", ["match", "border"])
@given(steps=steps)
@examples(0.5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_interleaving_of_leaders_followers_and_kills_gives_the_answers_of_a_plain_reader(
    tmp_path_factory, monkeypatch, kind, steps
):
    directory = tmp_path_factory.mktemp("host")
    with monkeypatch.context() as patch:
        patch.setattr(bases, "FEW_CHANGES", 3)
        registry = vd.Registry(f"sqlite:///{directory / 'alerts.db'}")
        registry.create("alerts", kind=kind, schema=SCHEMA)
        facts = facts_of(registry)
        workers = [Worker(directory) for _ in range(3)]
        deaths = Deaths(patch, workers)
        active, states, pins, last = {}, {0: {}}, {}, 0
        for step in steps:
            if step[0] == "change":
                query = f"q{step[1]}"
                version = (registry.replace if query in active else registry.add)("alerts", query, f"x > {step[2]}")
                active = active | {query: step[2]}
                states[version] = active
                last += 1
            elif step[0] == "compact":
                registry.compact("alerts")
            elif step[0] == "kill":
                workers[step[1]].die()
            elif step[0] == "die":
                deaths.left = step[1]
            else:
                batch = max(0, last - step[2])
                version = open_batch(patch, workers[step[1]], facts, batch, states)
                assert pins.setdefault(batch, version) == version
        deaths.left = 0
        for batch, version in pins.items():
            assert registry.pin("stream", batch, "alerts") == version
        for worker in workers:
            worker.die()
        registry.close()


def open_batch(patch, worker, facts, batch, states):
    """The version that a worker sees, after it has checked the answers. A worker that dies is started again."""
    patch.setattr(following, "_find_batch", lambda calls: following._Batch("stream", batch, "run"))
    while True:
        try:
            with worker.running(patch):
                opened = following.open_queries(facts)
            break
        except Died:
            worker.die()
    active = states[opened.version]
    for value in VALUES:
        assert sorted(opened.queries.match_one({"x": value})) == sorted(q for q, low in active.items() if value > low)
    return opened.version
