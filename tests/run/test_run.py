"""`vedette run` and `vedette init`: answers, progress, exit codes, signals."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import vedette as vd
from tests.sinks import read_committed
from vedette.errors import PipelineError, RegistryError
from vedette.pipeline.section import spark_duration
from vedette.registry.pipelines import list_pipelines, read_events

SCHEMA = "symbol string, price double, ts timestamp"
TICKS = [("IBM", 41.0), ("IBM", 39.5), ("SAP", 39.0), ("IBM", 39.0), ("IBM", 42.0)]

PIPELINE = """
checkpoint = "{folder}/checkpoint"
trigger = "available now"
[source]
format = "json"
path = "{folder}/ticks"
{source}
[registry]
url = "sqlite:///{folder}/alerts.db"
set = "alerts"
[operator]
{operator}
[[sink]]
name = "hits"
format = "parquet"
path = "{folder}/hits"
{more}
"""
MATCH = 'kind = "match"'
BORDER = 'kind = "border"\nkey = "symbol"\ntime = "ts"'


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    made.create("alerts", kind="border", schema=SCHEMA)
    made.add("alerts", "cheap-ibm", "symbol = 'IBM' AND price < 40")
    return made


@pytest.fixture
def write(tmp_path):
    """Write a pipeline file and a file of ticks next to it."""

    def write_file(operator=MATCH, more="", source="", ticks=TICKS, name="first"):
        (tmp_path / "ticks").mkdir(exist_ok=True)
        lines = [
            json.dumps({"symbol": symbol, "price": price, "ts": f"2026-03-02T14:00:{second:02d}Z"})
            for second, (symbol, price) in enumerate(ticks)
        ]
        (tmp_path / "ticks" / f"{name}.json").write_text("\n".join(lines))
        path = tmp_path / "pipeline.toml"
        path.write_text(PIPELINE.format(folder=tmp_path, operator=operator, more=more, source=source))
        return path

    return write_file


def rows_of(folder, *columns):
    return sorted(tuple(row[name] for name in columns) for row in read_committed(folder))


@pytest.mark.fast
def test_a_pipeline_ends_when_all_available_rows_are_processed(spark, run, tmp_path, registry, write):
    code, out, err = run("run", write())

    assert (code, out) == (0, "")
    assert rows_of(tmp_path / "hits", "symbol", "price", "query", "version") == [
        ("IBM", 39.0, "cheap-ibm", 1),
        ("IBM", 39.5, "cheap-ibm", 1),
    ]
    assert err.splitlines()[-1] == "vedette: pipeline: ended; since the start: hits 5 rows in, 2 matches out"


def test_a_pipeline_leaves_its_status_and_last_answers_in_the_registry(spark, run, tmp_path, registry, write):
    path = write(BORDER)
    path.write_text(path.read_text() + "[status]\nevents = 3\n")
    code, _, _ = run("run", path)

    (found,) = list_pipelines(registry.database)
    events = [each["event"] for each in read_events(registry.database, "pipeline", "alerts", 10)]

    assert (code, found.state, found.set_name, found.operator) == (0, "ended", "alerts", "border")
    assert {"rows_in_total": 5, "matches_out_total": 2, "version": 1}.items() <= found.sinks["hits"].items()
    assert sorted((each["key"], each["event"]) for each in events) == [("IBM", "enter"), ("IBM", "exit")]
    assert rows_of(tmp_path / "hits", "key", "event") == [("IBM", "enter"), ("IBM", "exit")]
    code, out, _ = run("registry", "pipelines", "--registry", f"sqlite:///{tmp_path}/alerts.db", "--csv")
    assert (code, out.splitlines()[1].split(",")[:6]) == (0, ["pipeline", "alerts", "ended", "hits", "0", "5"])


def test_a_second_start_continues_and_sees_queries_added_between(spark, run, tmp_path, registry, write):
    run("run", write(BORDER))
    registry.add("alerts", "dear-sap", "symbol = 'SAP' AND price > 100")

    more = f'[[sink]]\nname = "later"\nformat = "parquet"\npath = "{tmp_path}/later"'

    code, _, err = run("run", write(BORDER, more, ticks=[("SAP", 101.0)] * 11 + [("IBM", 50.0)], name="second"))

    assert code == 0, err
    assert rows_of(tmp_path / "hits", "key", "event", "query", "version") == [
        ("IBM", "enter", "cheap-ibm", 1),
        ("IBM", "exit", "cheap-ibm", 1),
        ("SAP", "enter", "dear-sap", 2),
    ]
    later = rows_of(tmp_path / "later", "key", "event", "query", "version")  # each sink has its own pins
    assert {row[3] for row in later} == {2}
    assert {("IBM", "enter", "cheap-ibm", 2), ("IBM", "exit", "cheap-ibm", 2), ("SAP", "enter", "dear-sap", 2)} <= set(
        later
    )


@pytest.mark.full
def test_a_second_start_uses_the_partitions_of_the_checkpoint(spark, run, tmp_path, registry, write):
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    try:
        spark.conf.set(name, "3")
        run("run", write(BORDER))
        spark.conf.set(name, "5")

        code, _, err = run("run", write(BORDER, ticks=[("SAP", 101.0)] * 11 + [("IBM", 39.0)], name="second"))

        assert code == 0, err
        assert spark.conf.get(name) == "3"
        assert ("IBM", "enter", "cheap-ibm", 1) in rows_of(tmp_path / "hits", "key", "event", "query", "version")
    finally:
        spark.conf.set(name, before)


@pytest.mark.full
def test_a_second_start_uses_the_shards_of_the_checkpoint(spark, run, tmp_path, registry, write):
    run("run", write(BORDER + "\nshards = 3"))

    code, _, err = run("run", write(BORDER, ticks=[("SAP", 101.0)] * 11 + [("IBM", 39.0)], name="second"))

    assert code == 0, err
    assert ("IBM", "enter", "cheap-ibm", 1) in rows_of(tmp_path / "hits", "key", "event", "query", "version")
    for option in ([], ["--dry-run"]):
        code, _, err = run("run", write(BORDER + "\nshards = 5"), *option)
        assert code == 2
        assert f"operator.shards is 5, but the checkpoint {tmp_path}/checkpoint/hits has 3 shards; omit the" in err


@pytest.mark.full
def test_several_sinks_filter_and_encode(spark, run, tmp_path, registry, write):
    more = f"""
    [[sink]]
    name = "encoded"
    format = "json"
    path = "{tmp_path}/encoded"
    where = "price < 39.2"
    select = ["query AS alert", "price"]
    encode = "json"
    key = "alert"
    """

    code, _, err = run("run", write(more=more), "--log", "json")

    assert code == 0, err
    written = [
        json.loads(line) for file in (tmp_path / "encoded").glob("*.json") for line in file.read_text().splitlines()
    ]
    assert written == [{"key": "cheap-ibm", "value": '{"alert":"cheap-ibm","price":39.0}'}]
    records = [json.loads(line) for line in err.splitlines()]
    assert [record["event"] for record in records if record["event"] != "batch"] == ["starting", "started", "ended"]
    batches = {record["sink"]: record for record in records if record["event"] == "batch"}
    assert set(batches) == {"hits", "encoded"}
    assert {name: batches["hits"][name] for name in ("rows_in", "matches_out", "queries", "version", "batch")} == {
        "rows_in": 5, "matches_out": 2, "queries": 1, "version": 1, "batch": 0
    }  # fmt: skip
    assert records[-1]["sinks"]["encoded"] == {
        "rows_in": 5,
        "matches_out": 2,
        "malformed": 0,
        "failed": 0,
        "batches": 1,
    }
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == ["encoded", "hits"]


@pytest.mark.full
def test_invalid_json_is_dropped_and_counted(spark, run, tmp_path, registry, write):
    source = 'format = "text"\ndecode = "json"\nkeep = ["length(value) AS n"]'
    file = write()
    file.write_text(file.read_text().replace('format = "json"', source, 1))
    (tmp_path / "ticks" / "bad.json").write_text('{"symbol": "IBM", "price"\n{"symbol": "IBM", "price": 1.5}\n')

    code, _, err = run("run", file, "--log", "json")

    assert code == 0, err
    assert rows_of(tmp_path / "hits", "price", "n") == [(1.5, 31), (39.0, 62), (39.5, 62)]
    assert sum(json.loads(line).get("malformed", 0) for line in err.splitlines()) == 1


@pytest.mark.parametrize("malformed", ["drop", "null", "fail"])
@pytest.mark.full
def test_invalid_json_lines_of_a_source_are_counted(spark, run, tmp_path, registry, write, malformed):
    registry.add("alerts", "unknown", "price IS NULL")
    file = write(source=f'malformed = "{malformed}"')
    bad = ['{"symbol": "IBM", "price"', "no json", "", '{"symbol": "IBM", "price": "much"}', '{"symbol": "IBM"}']
    (tmp_path / "ticks" / "bad.json").write_text("\n".join(bad))

    code, _, err = run("run", file, "--log", "json")

    records = [json.loads(line) for line in err.splitlines()]
    if malformed == "fail":
        assert (code, records[-1]["event"]) == (3, "failed")
        assert "ticks/bad.json is damaged, has another format, or contains a malformed record" in records[-1]["reason"]
        return
    assert code == 0, err
    n_null = 1 if malformed == "drop" else 4
    assert [row[0] for row in rows_of(tmp_path / "hits", "query")].count("unknown") == n_null
    assert sum(record.get("malformed", 0) for record in records) == 3
    assert records[-1]["sinks"]["hits"]["malformed"] == 3
    assert "3 malformed" in records[-1]["message"]


@pytest.mark.full
def test_a_damaged_file_is_named_with_what_to_do(spark, run, tmp_path, registry, write):
    file = write()
    file.write_text(file.read_text().replace('format = "json"', 'format = "parquet"', 1))
    (tmp_path / "ticks" / "first.json").rename(tmp_path / "ticks" / "bad.parquet")

    code, _, err = run("run", file)

    assert code == 3
    assert (
        f"{tmp_path}/ticks/bad.parquet is damaged, has another format, or contains a malformed record: move it" in err
    )


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a full disk."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.strip()}")
    (folder / "all").write_bytes(bytes(4096))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # Spark may have files open


@pytest.mark.full
def test_a_full_disk_of_the_checkpoint_is_retryable(spark, run, tmp_path, registry, write, full_disk):
    file = write()
    file.write_text(file.read_text().replace(f"{tmp_path}/checkpoint", f"{full_disk}/checkpoint"))

    code, _, err = run("run", file)

    assert (code, "No space left on device" in err) == (4, True)


@pytest.mark.parametrize(
    ("message", "is_retryable"),
    [
        ("java.io.IOException: No space left on device", True),
        ("java.net.ConnectException: Connection refused", True),
        ("java.net.UnknownHostException: broker", True),
        ("org.apache.spark.SparkException: ExecutorLostFailure (executor 1 exited)", True),
        ("[UNRESOLVED_COLUMN] A column cannot be resolved", False),
        ("java.io.IOException: Permission denied", False),
    ],
)
def test_temporary_failures_are_retryable_and_others_are_not(message, is_retryable):
    from py4j.protocol import Py4JError

    from vedette.spark.failures import at_option

    with pytest.raises(PipelineError) as caught, at_option("sink 'hits'"):
        raise Py4JError(message)
    assert caught.value.is_retryable == is_retryable


def test_a_disk_that_is_full_for_python_is_retryable(run, tmp_path, registry, write, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere")

    monkeypatch.setattr("vedette.cli.jobs.run._open_queries", fail)

    code, _, err = run("run", write())

    assert (code, err) == (4, "vedette: cannot write /somewhere: No space left on device\n")


def test_a_dry_run_explains_and_does_nothing(spark, run, tmp_path, registry, write):
    code, out, err = run("run", write(BORDER), "--dry-run")

    assert (code, err) == (0, "")
    for line in ("rows: symbol string, price double, ts timestamp", "1 query, version 1, followed", "key='symbol'"):
        assert line in out
    assert "answers: key string, time timestamp, query string, event string, reason string, version bigint" in out
    assert not (tmp_path / "hits").exists()
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('set = "alerts"', 'set = "alert"', "did you mean 'alerts'?"),
        ('kind = "match"', 'kind = "band join"', "a band join reads several streams: write [sources.left]"),
        (
            'kind = "match"',
            'kind = "border"\nkey = "symbol"\ntime = "ts"\ndwell = -1',
            "operator.dwell must be a duration such as ",
        ),
        ('format = "json"', 'format = "json"\nwhere = "prise < 3"', "source.where: Spark failed: "),
        (
            'format = "json"',
            'format = "json"\nselect = ["price"]',
            "the DataFrame has no column 'symbol'",
        ),
        ('format = "json"', 'format = "kafka"', "source: Spark failed: "),
        ('format = "json"', 'format = "kafka"', 'packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:'),
        (
            'checkpoint = "',
            'checkpoint = "/proc/nowhere',
            "checkpoint: Spark failed: java.io.IOException: mkdir of ",
        ),
        (
            'format = "json"',
            'format = "iceberg"',
            "if 'iceberg' is right, add its package: packages = [",
        ),
        ('format = "parquet"', 'format = "delta"', 'packages = ["io.delta:delta-spark'),
        ('name = "hits"', 'name = "hits"\nselect = ["prise"]', "sink 'hits': Spark failed: "),
        ('name = "hits"', 'name = "hits"\nencode = "avro"', 'packages = ["org.apache.spark:spark-avro_2.13:'),
    ],
)
def test_an_invalid_key_is_one_sentence_and_exit_code_2(spark, run, registry, write, old, new, message):
    file = write()
    file.write_text(file.read_text().replace(old, new, 1))

    code, out, err = run("run", file)

    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert "\tat org." not in err


@pytest.mark.full
def test_a_failure_during_the_run_is_exit_code_3_with_its_reason(spark, run, registry, write):
    source = 'select = ["symbol", "ts", "if(price > 41.5, raise_error(\'no such price\'), price) AS price"]'

    code, _, err = run("run", write(source=source))

    assert code == 3
    assert "vedette: pipeline: failed: sink 'hits': " in err
    assert "no such price" in err
    assert "Traceback" not in err


def test_a_read_only_registry_is_refused_unless_the_version_is_fixed(spark, run, tmp_path, registry, write):
    file = write()
    url = f"sqlite:///{tmp_path}/alerts.db"
    file.write_text(file.read_text().replace(url, url.replace(":///", ":///file:") + "?mode=ro&uri=true"))

    code, _, err = run("run", file)

    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith(f"vedette: {file}: registry: the registry's database sqlite:///file")
    assert " is read-only, but following a set records there which version each micro-batch sees; " in err
    assert err.endswith("grant the pipeline write access, or set a fixed version: version = 1 under [registry]\n")
    file.write_text(file.read_text().replace('set = "alerts"', 'set = "alerts"\nversion = 1'))
    assert run("run", file)[0] == 0
    assert rows_of(tmp_path / "hits", "price", "version") == [(39.0, 1), (39.5, 1)]


def test_a_sqlite_registry_is_refused_if_spark_is_on_other_hosts(run, tmp_path, registry, write):
    file = write(more='[spark]\nmaster = "yarn"')

    code, out, err = run("run", file)

    assert (code, out) == (2, "")
    assert err == (
        f"vedette: {file}: registry.url: the registry is a SQLite file on this host, but Spark's workers run on other "
        f"hosts (spark.master is 'yarn'); use a registry in PostgreSQL, or a local master\n"
    )


@pytest.mark.full
def test_a_warning_of_a_worker_is_shown_like_any_warning(spark, run, tmp_path, registry, write):
    registry.compact("alerts")
    (base,) = (tmp_path / "alerts.db.snapshots").rglob("*.queries")
    base.write_bytes(base.read_bytes()[:-100])

    code, out, err = run("run", write(), "--log", "json", "--quiet")

    assert (code, out) == (0, ""), err
    records = [json.loads(line) for line in err.splitlines()]
    assert {(record["event"], record["level"], record["pipeline"]) for record in records} == {
        ("warning", "warning", "pipeline")
    }
    for record in records:
        assert "cannot use the snapshot of set 'alerts' at version 1, so it is built again: " in record["message"]


def test_the_command_that_init_prints_and_writes_adds_an_alert(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = run("init", "a demo")
    registry = vd.Registry(f"sqlite:///{tmp_path}/a demo/alerts.db")
    (message,) = [line for line in out.splitlines() if "query add" in line]
    (written,) = [line for line in Path("a demo/pipeline.toml").read_text().splitlines() if "query add" in line]

    assert "'sqlite:///a demo/alerts.db'" in message
    for line in (message, written):
        code, _, err = run(*shlex.split(line.lstrip("# "))[1:])
        assert code == 0, err
        assert registry.get("alerts", "dear-sap").text == "symbol = 'SAP' AND price > 120"
        registry.remove("alerts", "dear-sap")
        monkeypatch.chdir("/")


@pytest.mark.full
def test_the_example_of_init_runs_serves_metrics_and_stops(run, tmp_path):
    folder = tmp_path / "new folder"
    code, out, _ = run("init", folder)
    assert code == 0
    assert "vedette run" in out
    assert run("init", folder)[0] == 2  # it overwrites nothing

    file = folder / "pipeline.toml"
    file.write_text(file.read_text().replace("[registry]\n", "[registry]\nretry_seconds = 600\n"))
    command = [sys.executable, "-c", "from vedette.cli import main; main()", "run", str(file)]
    with (tmp_path / "out").open("wb") as out_file, (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--log", "json", "--metrics", "0"], stdout=out_file, stderr=log)
    try:
        records = wait_for_batches(tmp_path / "log", process)
        added = vd.Registry(f"sqlite:///{folder}/alerts.db").add("alerts", "all", "price > 0")
        address = next(record["metrics"] for record in records if record["event"] == "serving")
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        figures = direct.open(f"http://{address}/metrics", timeout=60).read().decode()
        wait_for_batches(tmp_path / "log", process, version=added)
        with stuck_batch(folder):
            process.send_signal(signal.SIGINT)
            wait_for(lambda: '"stopping"' in (tmp_path / "log").read_text())
            with pytest.raises(subprocess.TimeoutExpired):  # it waits for the micro-batch
                process.wait(timeout=1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=300) == 0  # before the worker stops retrying
    finally:
        process.kill()
        process.wait()

    assert 'vedette_rows_in_total{pipeline="ticks",sink="events"}' in figures
    assert 'vedette_pipeline_state{pipeline="ticks",state="running"} 1.0' in figures
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert [event for event in events if event not in ("batch", "cut off")][-2:] == ["stopping", "stopped"]
    assert ("all", added) in rows_of(folder / "events", "query", "version")
    assert "|all" in (tmp_path / "out").read_text().replace(" ", "")


@contextmanager
def stuck_batch(folder):
    """Inside the block a micro-batch is running and cannot end: its pin cannot be written."""
    with closing(sqlite3.connect(folder / "alerts.db", isolation_level=None)) as locking:
        locking.execute("BEGIN IMMEDIATE")
        wait_for(lambda: is_stuck(folder / "checkpoint" / "events"))
        yield
        locking.execute("ROLLBACK")


def is_stuck(checkpoint, seconds=3):
    """Whether a micro-batch has begun, and since some time none has begun or ended."""

    def begun_and_ended():
        return [sorted(each.name for each in (checkpoint / part).glob("[0-9]*")) for part in ("offsets", "commits")]

    before = begun_and_ended()
    time.sleep(seconds)
    begun, ended = begun_and_ended()
    return [begun, ended] == before and begun != ended


def wait_for(is_so, seconds=300):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def wait_for_batches(log: Path, process, version=1, seconds=200):
    """The log records after both sinks have finished a micro-batch with rows at that version."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        lines = log.read_text().splitlines(keepends=True)
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        done = [record for record in records if record["event"] == "batch" and record["version"] == version]
        if {record["sink"] for record in done if record["rows_in"]} == {"screen", "events"}:
            return records
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_a_window_join_reads_two_streams(spark, run, tmp_path):
    quotes = "symbol string, price double, ts timestamp, id bigint"
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("spreads", kind="window join", left=quotes, right=quotes)
    registry.add("spreads", "dearer", "left.symbol = right.symbol AND left.price > right.price", within="10 seconds")
    for side, price in (("left", 41.0), ("right", 40.0)):
        (tmp_path / side).mkdir()
        row = {"symbol": "IBM", "price": price, "ts": "2026-03-02T14:00:00Z", "id": 7}
        (tmp_path / side / "a.json").write_text(json.dumps(row))
    operator = 'kind = "window join"\ntime = "ts"\nshards = 2'
    file = write_join(tmp_path, operator, "spreads", "")

    code, _, err = run("run", file)

    assert code == 0, err
    assert rows_of(tmp_path / "pairs", "query", "left", "right", "version") == [("dearer", 7, 7, 1)]
    wrong = write_join(tmp_path, 'kind = "window join"\ntime = "at"', "spreads", "")
    assert "'at'" in run("run", wrong)[2]


def test_a_band_join_reads_two_streams(spark, run, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("bands", kind="band join")
    registry.add("bands", "near", low=-0.5, high=0.5)
    for side, value in (("left", 1.0), ("right", 1.25)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.json").write_text(json.dumps({"id": 7, "price": value}))
    file = write_join(tmp_path, 'kind = "band join"\nvalue = "price"', "bands", 'schema = "id bigint, price double"')

    code, _, err = run("run", file)

    assert code == 0, err
    assert rows_of(tmp_path / "pairs", "sign", "query", "left", "right", "version") == [(1, "near", 7, 7, 1)]
    code, out, _ = run("run", file, "--dry-run")
    assert code == 0
    assert "source right" in out


def test_a_moving_join_follows_zones(spark, run, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("zones", kind="moving join")
    registry.add("zones", "port", x_low=10, x_high=14, y_low=-1, y_high=1)
    path = tmp_path / "pipeline.toml"
    path.write_text(f"""
checkpoint = "{tmp_path}/checkpoint"
trigger = "available now"
[source]
format = "json"
path = "{tmp_path}/objects"
schema = "ship string, at double, x double, y double, vx double, vy double"
[registry]
url = "sqlite:///{tmp_path}/alerts.db"
set = "zones"
[operator]
kind = "moving join"
max_update_interval = 60
id = "ship"
time = "at"
shards = 2
[[sink]]
format = "parquet"
path = "{tmp_path}/pairs"
""")
    (tmp_path / "objects").mkdir()
    ship = {"ship": "Ada", "at": 0.0, "x": 0.0, "y": 0.0, "vx": 1.0, "vy": 0.0}
    (tmp_path / "objects" / "a.json").write_text(json.dumps(ship))
    code, out, _ = run("run", path, "--dry-run")
    assert (code, "1 zone in 2 dimensions" in out) == (0, True)

    assert run("run", path)[0] == 0
    registry.remove("zones", "port")
    (tmp_path / "objects" / "b.json").write_text(json.dumps(ship | {"at": 12.0, "x": 12.0}))
    assert run("run", path)[0] == 0

    lines = rows_of(tmp_path / "pairs", "version", "sign", "a", "b", "start", "end")
    assert lines == [(1, 1, "Ada", "port", 10.0, 14.0), (2, -1, "Ada", "port", 10.0, 14.0)]
    wrong = path.read_text().replace("max_update_interval = 60", "max_update_interval = -1")
    path.write_text(wrong)
    assert "operator.max_update_interval must be a number above 0" in run("run", path)[2]


@pytest.mark.full
def test_a_join_decodes_both_streams_and_counts_malformed_rows_of_each(spark, run, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("bands", kind="band join")
    registry.add("bands", "near", low=-0.5, high=0.5)
    for side, value, n_broken in (("left", 1.0, 1), ("right", 1.25, 2)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text(
            "\n".join([json.dumps({"id": 7, "value": value}), *["no JSON"] * n_broken])
        )
    file = write_join(tmp_path, 'kind = "band join"', "bands", 'decode = "json"\nschema = "id bigint, value double"')
    file.write_text(file.read_text().replace('format = "json"', 'format = "text"'))

    code, _, err = run("run", file, "--log", "json")

    assert code == 0, err
    assert rows_of(tmp_path / "pairs", "query", "left", "right") == [("near", 7, 7)]
    assert sum(json.loads(line).get("malformed", 0) for line in err.splitlines()) == 3


@pytest.mark.parametrize("kind", ["band join", "window join"])
def test_a_missing_stream_is_refused_with_its_key(run, tmp_path, kind):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    fields = {} if kind == "band join" else dict.fromkeys(("left", "right"), "id bigint, x double")
    registry.create("pairs", kind=kind, **fields)
    file = write_join(tmp_path, f'kind = "{kind}"\nid = {{ lft = "id" }}', "pairs", "")

    code, _, err = run("run", file)

    assert code == 2
    assert "operator.id: unknown stream 'lft'; the streams of set 'pairs' are: left, right" in err


@pytest.mark.full
def test_a_fixed_version_is_checked_against_its_own_schema(spark, run, tmp_path, registry, write):
    registry.alter("alerts", "symbol string, cents bigint, ts timestamp", force=True)
    file = write(BORDER + "\nmargin = { price = 0.5 }")

    assert "operator.margin names 'price'" in run("run", file)[2]  # the current schema has no price
    file.write_text(file.read_text().replace('set = "alerts"', 'set = "alerts"\nversion = 1'))
    code, _, err = run("run", file)

    assert code == 0, err
    assert rows_of(tmp_path / "hits", "key", "event") == [("IBM", "enter"), ("IBM", "exit")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[sink]]\nname = "b"\nformat = "parqet"\npath = "x"', "sink 'b': Spark failed: "),
        (
            '[[sink]]\nname = "b"\nformat = "parquet"\npath = "x"\npartition_by = ["prize"]',
            "sink 'b'.partition_by: unknown column 'prize'; columns are: symbol, price, ts, query, version",
        ),
    ],
)
@pytest.mark.full
def test_an_invalid_sink_is_refused_before_any_other_runs(spark, run, tmp_path, registry, write, more, message):
    for option in (["--dry-run"], []):
        code, _, err = run("run", write(more=more), *option)

        assert code == 2
        assert message in err
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.full
def test_durations_may_be_written_as_in_messages(spark, run, tmp_path, registry, write):
    file = write(BORDER, source='watermark = { column = "ts", delay = "1.5 min" }')
    assert run("run", file)[0] == 0
    slow = file.read_text().replace('"available now"', '"250 ms"')
    file.write_text(slow)

    assert run("run", file, "--dry-run")[0] == 0
    assert spark_duration("250 ms") == "250000 microseconds"
    spark.readStream.format("rate").load().writeStream.trigger(processingTime=spark_duration("1.5 h"))  # Spark reads it


def test_a_stop_request_during_the_start_takes_effect_at_once(run, registry, write, monkeypatch):
    def open_slowly(file):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr("vedette.cli.jobs.run._open_queries", open_slowly)
    began = time.monotonic()

    assert run("run", write()) == (0, "", "vedette: pipeline: stopped before it started\n")
    assert time.monotonic() - began < 30


def write_join(folder, operator, name, schema):
    path = folder / "pipeline.toml"
    sides = "".join(
        f'[sources.{side}]\nformat = "json"\npath = "{folder}/{side}"\n{schema}\n' for side in ("left", "right")
    )
    path.write_text(
        f'checkpoint = "{folder}/checkpoint"\ntrigger = "available now"\n{sides}'
        f'[registry]\nurl = "sqlite:///{folder}/alerts.db"\nset = "{name}"\n[operator]\n{operator}\n'
        f'[[sink]]\nformat = "parquet"\npath = "{folder}/pairs"\n'
    )
    return path


def test_an_unreachable_registry_is_exit_code_4(run, tmp_path, write):
    file = write()
    url = 'url = "postgresql://me:${PASSWORD:-hush hush}@127.0.0.1:1/none"\nretry_seconds = 0.5'
    file.write_text(file.read_text().replace(f'url = "sqlite:///{tmp_path}/alerts.db"', url))

    code, _, err = run("run", file)

    assert code == 4, err
    assert "cannot be reached" in err
    assert "hush" not in err


def test_a_missing_registry_is_exit_code_2(run, write):
    code, _, err = run("run", write())

    assert code == 2
    assert "no registry in " in err


def test_a_registry_that_becomes_unreachable_is_exit_code_4(run, registry, write, monkeypatch):
    def refuse(self, name):
        raise RegistryError("the database is locked", is_retryable=True)

    monkeypatch.setattr(vd.Registry, "set", refuse)

    code, _, err = run("run", write())

    assert (code, err) == (4, "vedette: the database is locked\n")


@pytest.mark.parametrize(("is_retryable", "exit_code"), [(True, 4), (False, 2)])
def test_an_error_of_the_registry_during_the_start_has_its_exit_code(
    run, registry, write, monkeypatch, is_retryable, exit_code
):
    def refuse(plan, queries):
        raise RegistryError("no", is_retryable=is_retryable)

    monkeypatch.setattr("vedette.run.pipeline.Pipeline.open", refuse)

    assert run("run", write(), "--quiet")[0] == exit_code


def test_a_secret_in_an_error_of_java_is_hidden(run, registry, write, monkeypatch):
    def refuse(plan, queries):
        raise PipelineError(f"checkpoint: Spark failed: java.io.IOException: mkdir of {plan.checkpoint} failed")

    monkeypatch.setenv("BUCKET", "s3a://key:hush-hush@bucket")
    monkeypatch.setattr("vedette.run.pipeline.Pipeline.open", refuse)
    file = write()
    file.write_text(file.read_text().replace('checkpoint = "', 'checkpoint = "${BUCKET}'))

    code, _, err = run("run", file, "--quiet")

    assert code == 2
    assert "mkdir of ${BUCKET}" in err
    assert "hush" not in err


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("[sauce]", [], "mistakes\n  "),
        ("[source", [], "is not valid TOML"),
        ("", ["--metrics", "high"], "--metrics must be a port or host:port; got 'high'"),
    ],
)
def test_with_json_logs_mistakes_of_the_file_and_options_are_json_too(run, tmp_path, text, options, message):
    path = tmp_path / "ticks.toml"
    path.write_text(text)

    code, out, err = run("run", path, "--log", "json", *options)

    (line,) = err.splitlines()
    record = json.loads(line)
    assert (code, out) == (2, "")
    assert (record["level"], record["event"], record["pipeline"]) == ("error", "refused", "ticks")
    assert message in record["message"]


def test_each_json_event_names_the_pipeline(run, registry, write, monkeypatch):
    def refuse(plan, queries):
        raise PipelineError("no")

    monkeypatch.setattr("vedette.run.pipeline.Pipeline.open", refuse)

    code, _, err = run("run", write(), "--log", "json", "--metrics", "0")

    records = [json.loads(line) for line in err.splitlines()]
    assert code == 2
    assert [record["event"] for record in records] == ["serving", "starting", "refused"]
    assert {record["pipeline"] for record in records} == {"pipeline"}


def test_a_fixed_version_starts_with_its_own_queries(run, registry, write, monkeypatch):
    def refuse(plan, queries):
        raise PipelineError("no")

    monkeypatch.setattr("vedette.run.pipeline.Pipeline.open", refuse)
    registry.add("alerts", "dear", "price > 100")
    file = write()
    file.write_text(file.read_text().replace('set = "alerts"', 'set = "alerts"\nversion = 1'))

    assert "set 'alerts' of kind border, 1 query, fixed version 1" in run("run", file)[2]
