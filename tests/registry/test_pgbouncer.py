"""A registry behind a PgBouncer in transaction mode: each transaction may run in another session of PostgreSQL."""

from __future__ import annotations

import threading

import pgbouncer
import postgres
import psycopg
import pytest
from registry.test_host_reader import Host, expected, facts_of, is_one, make_alerts

import vedette as vd

pytestmark = pytest.mark.full


@pytest.fixture
def url(cluster):
    """The address of an empty database behind PgBouncer."""
    try:
        bouncer = pgbouncer.PgBouncer(cluster)
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run behind PgBouncer: {reason}")
    made = cluster.new_database()
    yield bouncer.url(made.rsplit("/", 1)[1])
    bouncer.delete()
    cluster.drop_database(made)


def test_writers_and_the_workers_of_a_host_share_two_sessions(url, cluster, tmp_path):
    registry = vd.Registry(url, snapshots=str(tmp_path / "bases"))
    make_alerts(registry, n=1500)  # so that there is a base
    registry.compact("alerts")
    facts, host = facts_of(registry), Host(tmp_path, 6)
    try:
        stop, errors = threading.Event(), []

        def write(number):
            try:
                other = vd.Registry(url)
                while not stop.wait(0.01):
                    other.replace("alerts", f"q{number}", f"x > {number}")
                other.close()
            except Exception as error:
                errors.append(error)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for writer in writers:
            writer.start()
        for batch in range(10):
            answers = host.ask(facts, batch)
            assert is_one(answers)
            assert answers[0]["version"] == registry.pin("stream", batch, "alerts")
            assert answers[0]["found"] == expected(registry, answers[0]["version"])
        stop.set()
        for writer in writers:
            writer.join()
        assert errors == []
    finally:
        host.close()
    registry.close()
    name = url.rsplit("/", 1)[1]
    with psycopg.connect(cluster.url("postgres")) as connection:
        sessions = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]).fetchone()
    assert sessions[0] <= pgbouncer.SESSIONS


def test_nothing_is_left_in_a_session(url):
    registry = vd.Registry(url, retry_seconds=7)
    make_alerts(registry)
    for batch in range(20):
        registry.pin("job", batch, "alerts")
        registry.replace("alerts", "q1", f"x > {batch}")
    for _ in range(2 * pgbouncer.SESSIONS):  # all sessions, in turn
        with psycopg.connect(url, prepare_threshold=None) as connection:
            assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            assert connection.execute(held).fetchone() == (0,)
    registry.close()
