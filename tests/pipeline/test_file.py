"""A pipeline file: all mistakes are reported at once, each with its key, and without secrets."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from vedette.errors import FileError
from vedette.pipeline.file import ReadFile
from vedette.pipeline.operators import options_of

GOOD = """
checkpoint = "c"
[source]
format = "rate"
[registry]
url = "sqlite:///alerts.db"
set = "alerts"
[operator]
kind = "border"
key = "symbol"
time = "ts"
[[sink]]
format = "console"
"""


def read(tmp_path, text, **environment):
    path = tmp_path / "ticks.toml"
    path.write_text(text)
    return ReadFile.read(path, environment)


def refusal(tmp_path, text, **environment):
    with pytest.raises(FileError) as caught:
        read(tmp_path, text, **environment)
    return str(caught.value)


def test_a_small_file_is_read_with_the_defaults(tmp_path):
    plan = read(tmp_path, GOOD).plan

    assert plan.name == "ticks"
    assert plan.sink[0].name == "console"
    assert (plan.trigger, plan.spark.master, plan.streams[""].decode) == (None, None, "columns")
    assert plan.operator.late == "drop"


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ('format = "rate"', 'fromat = "rate"', "source.fromat: unknown key; keys are: format, path,"),
        ('format = "rate"', 'fromat = "rate"', "did you mean 'format'?"),
        ('format = "rate"', 'fromat = "rate"', "source.format: it is missing; a format that Spark reads"),
        ('format = "rate"', "format = 5", "source.format: it is 5; it must be a string in quotes"),
        ('format = "rate"', 'format = " "', "source.format: it is empty"),
        (
            "[registry]",
            '[spark]\nlog_level = "LOUD"\n[registry]',
            "spark.log_level: it is 'LOUD'; it must be one of: 'OFF'",
        ),
        ('format = "rate"', 'format = "rate"\nschema = "price,,"', "source.schema: it is 'price,,'; write: name type"),
        (
            'format = "rate"',
            'format = "rate"\ndecode = "jsn"',
            "source.decode: it is 'jsn'; it must be one of: 'columns', 'json', 'avro'",
        ),
        ('format = "rate"', 'format = "rate"\ndecode = "jsn"', "did you mean 'json'?"),
        ('format = "rate"', 'format = "kafka"\ndecode = "avro"', 'source: decode = "avro" needs avro_schema'),
        (
            'format = "rate"',
            'format = "kafka"\ndecode = "avro"\navro_schema = "no.avsc"',
            "source.avro_schema: cannot read the file no.avsc: No such file",
        ),
        (
            'format = "rate"',
            'format = "rate"\nwatermark = {column = "ts", delay = "soon"}',
            "source.watermark.delay: it must be a duration such as '5 minutes'; got 'soon'",
        ),
        (
            'format = "rate"',
            'format = "rate"\noptions = {rows = [1]}',
            "source.options.rows: it is [1]; it must be a string",
        ),
        (
            'kind = "border"',
            'kind = "boarder"',
            "kind is 'boarder'; it must be one of: 'match', 'border', 'window join', 'band join', 'moving join'; did "
            "you mean 'border'?",
        ),
        ('kind = "border"', "", "operator: kind is missing; it must be one of:"),
        ('key = "symbol"', 'kye = "symbol"', "operator.kye: unknown key; keys are: kind, key, time,"),
        ('key = "symbol"', 'kye = "symbol"', "operator.key: it is missing; the column that names the object"),
        ('key = "symbol"', 'key = "symbol"\nshards = 0', "operator.shards: it is 0; it must be greater than 0"),
        (
            'key = "symbol"',
            'key = "symbol"\ncross = "perhaps"',
            "operator.cross: it is 'perhaps'; it must be true or false",
        ),
        (
            'key = "symbol"',
            'key = "symbol"\nshards = 10001',
            "operator.shards: it is 10001; it must be at most 10,000",
        ),
        (
            'time = "ts"',
            'time = "ts"\ndwell = "10 seconds"',
            "operator.dwell: it needs a watermark on 'ts' of the source, and it has none; set "
            'source.watermark = { column = "ts", delay = "10 minutes" }',
        ),
        (
            "[[sink]]",
            'expire_after = "1 hour"\n[source.watermark]\ncolumn = "at"\ndelay = "1 minute"\n[[sink]]',
            "operator.expire_after: it needs a watermark on 'ts' of the source, and its "
            "watermark is on 'at'; set source.watermark",
        ),
        ('set = "alerts"', 'set = "alerts"\nversion = "x"', "registry.version: it is 'x'; it must be an integer"),
        ('[[sink]]\nformat = "console"', "", "sink: it is missing; where answers are written"),
        (
            '[[sink]]\nformat = "console"',
            '[sink]\nformat = "console"',
            "sink: it is {'format': 'console'}; it must be a list",
        ),
        ('format = "console"', 'format = "console"\n[[sink]]\nformat = "noop"\nmode = "x"', "sink 2.mode: unknown key"),
        ('format = "console"', 'format = "console"\n[[sink]]\nformat = "console"', "2 sinks are named 'console'"),
        ('format = "console"', 'format = "kafka"', "sink 1: Kafka needs a column `value`"),
        (
            'format = "console"',
            'format = "console"\nname = "a b"',
            "sink 1.name: it is 'a b'; it may contain only letters",
        ),
        (
            'checkpoint = "c"',
            'checkpoint = "c"\ntrigger = "now"',
            "trigger: it is 'now'; it must be a duration such as '10 seconds'",
        ),
        ('checkpoint = "c"', 'checkpont = "c"', "checkpont: unknown key"),
        ('checkpoint = "c"', "checkpoint = ", "is not valid TOML"),
        (
            "[operator]",
            '[spark]\nremote = "sc://host"\npackages = ["a:b:1"]\n[operator]',
            "spark: packages cannot be set with remote: a Spark Connect server has its own packages; omit the key",
        ),
        ("[source]", "[sources.left]", "border reads one stream: write [source], not [sources]"),
        ('[source]\nformat = "rate"', "", "one of source and sources is required: write a table [source]"),
    ],
)
def test_each_mistake_is_reported_with_its_key(tmp_path, good, bad, message):
    assert good in GOOD

    assert message in refusal(tmp_path, GOOD.replace(good, bad))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('format = "rate"', 'format = "rate"\nwatermark = { column = "TS", delay = "1 minute" }'),
        ('dwell = "10 seconds"', "dwell = 10"),  # a number, for a time column of numbers
    ],
)
def test_a_dwell_in_words_needs_a_watermark(tmp_path, old, new):
    text = GOOD.replace('time = "ts"', 'time = "ts"\ndwell = "10 seconds"')

    assert "operator.dwell: " in refusal(tmp_path, text)
    assert read(tmp_path, text.replace(old, new)).plan.operator.dwell is not None


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (
            'kind = "band join"\nunknown_id = "report"\nreport = "queries"',
            'operator.unknown_id: it is "report", which needs report = "pairs"; with report = "queries" use "log" '
            'or "error"',
        ),
        (
            'kind = "window join"\nlayout = "equality"',
            "operator.layout: it is 'equality', which a set of a registry cannot use: a query without an equality may "
            "be added later; use 'grid' or 'one'",
        ),
        (
            'kind = "window join"\nlayout = "one"\nshards = 4',
            "operator.shards: it is 4, but layout 'one' has one shard; omit the key",
        ),
    ],
)
def test_keys_of_a_join_that_contradict_each_other_are_refused(tmp_path, operator, message):
    text = GOOD.replace('kind = "border"\nkey = "symbol"\ntime = "ts"', operator)
    sources = '[sources.left]\nformat = "rate"\n[sources.right]\nformat = "rate"'

    assert refusal(tmp_path, text.replace('[source]\nformat = "rate"', sources)).endswith(message)


def test_a_grid_is_for_two_streams(tmp_path):
    operator = 'kind = "window join"\nlayout = "grid"'
    text = GOOD.replace('kind = "border"\nkey = "symbol"\ntime = "ts"', operator)
    sources = "\n".join(f'[sources.{name}]\nformat = "rate"' for name in "abc")

    message = refusal(tmp_path, text.replace('[source]\nformat = "rate"', sources))

    assert "operator.layout: it is 'grid', which is for two streams, but there are 3; use 'one'" in message


def test_log_levels_ignore_case(tmp_path):
    assert read(tmp_path, GOOD + '[spark]\nlog_level = "warn"').plan.spark.log_level == "WARN"


def test_all_mistakes_are_reported_at_once(tmp_path):
    bad = GOOD.replace("url =", "ulr =").replace('key = "symbol"', "key = 1").replace('"c"', '"${FOLDER}/c"')

    lines = refusal(tmp_path, bad).splitlines()

    assert lines[0].endswith("ticks.toml has 4 mistakes")
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "checkpoint",
        "registry.url",
        "registry.ulr",
        "operator.key",
    ]


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none.toml: No such file .* `vedette init` writes an example"):
        ReadFile.read(tmp_path / "none.toml", {})


def test_variables_come_from_the_environment(tmp_path):
    text = GOOD.replace("sqlite:///alerts.db", "postgresql://me:${PASSWORD}@${HOST:-localhost}/${HERE}/$${x}")

    file = read(tmp_path, text, PASSWORD="open sesame")

    assert file.plan.registry.url == f"postgresql://me:open%20sesame@localhost/{tmp_path}/${{x}}"
    assert file.variables.hide(f"cannot reach {file.plan.registry.url}").startswith(
        "cannot reach postgresql://me:${PASSWORD}@localhost/"
    )


@pytest.mark.parametrize("password", ["p@ss/w:rd?#&=%41+ x", "plain", "ünï"])
@pytest.mark.parametrize(
    "place", ["postgresql://me:${PASSWORD}@db/name", "postgresql://me@db/name?password=${PASSWORD}"]
)
def test_a_password_in_the_registry_s_address_may_have_any_characters(tmp_path, place, password):
    file = read(tmp_path, GOOD.replace("sqlite:///alerts.db", place), PASSWORD=password)

    address = make_url(file.plan.registry.url)

    assert (address.username, address.host, address.database) == ("me", "db", "name")
    assert (address.password or address.query["password"]) == password


def test_a_password_is_hidden_in_plain_and_in_encoded_form(tmp_path):
    text = GOOD.replace("sqlite:///alerts.db", "postgresql://me:${PASSWORD}@db/name")
    file = read(tmp_path, text, PASSWORD="p@ss /word")

    address = make_url(file.plan.registry.url)

    for form in ("p@ss /word", file.plan.registry.url, address.render_as_string(hide_password=False)):
        hidden = file.variables.hide(f"cannot reach {form}")
        assert "${PASSWORD}" in hidden
        assert "word" not in hidden


@pytest.mark.parametrize(
    ("place", "value", "url"),
    [
        ("${VALUE}", "postgresql://me:p%40ss@db/name", "postgresql://me:p%40ss@db/name"),
        ("sqlite:///${VALUE}/alerts.db", "/srv/my alerts@home", "sqlite:////srv/my alerts@home/alerts.db"),
        ("postgresql://me@${VALUE}/name", "db:5432", "postgresql://me@db:5432/name"),
        ("postgresql://me@db/name?${VALUE}", "sslmode=require", "postgresql://me@db/name?sslmode=require"),
    ],
)
def test_other_parts_of_an_address_are_not_encoded(tmp_path, place, value, url):
    assert read(tmp_path, GOOD.replace("sqlite:///alerts.db", place), VALUE=value).plan.registry.url == url


def test_values_outside_of_addresses_are_not_encoded(tmp_path):
    text = GOOD.replace('format = "rate"', 'format = "rate"\noptions = { url = "x://me:${PASSWORD}@db" }')

    assert read(tmp_path, text, PASSWORD="a/b").plan.source.options == {"url": "x://me:a/b@db"}


def test_a_missing_variable_is_named(tmp_path):
    message = refusal(tmp_path, GOOD.replace("alerts.db", "${ALERTS_FILE}"), ALERT_FILE="x")

    assert "registry.url: the environment has no variable 'ALERTS_FILE'; did you mean 'ALERT_FILE'?" in message


def test_messages_contain_no_values_of_the_environment(tmp_path):
    message = refusal(tmp_path, GOOD.replace('format = "rate"', 'format = "rate"\ndecode = "${SECRET}"'), SECRET="hush")

    assert "hush" not in message
    assert "it is '${SECRET}'" in message


def test_numbers_may_come_from_the_environment(tmp_path):
    text = GOOD.replace('set = "alerts"', 'set = "alerts"\nversion = "${VERSION}"')

    assert read(tmp_path, text, VERSION="7").plan.registry.version == 7


def test_options_of_joins_are_for_all_streams_or_for_one(tmp_path):
    text = GOOD.replace("[source]", "[sources.left]").replace(
        "[registry]", '[sources.right]\nformat = "rate"\n[registry]'
    )
    old = 'kind = "border"\nkey = "symbol"\ntime = "ts"'
    join = read(tmp_path, text.replace(old, 'kind = "window join"\ntime = "ts"\nid = {left = "n", right = "m"}')).plan
    band = read(tmp_path, text.replace(old, 'kind = "band join"\nvalue = "price"\nop = "op"')).plan

    joined = options_of(join.operator, ["left", "right"])
    banded = options_of(band.operator, ["left", "right"])

    assert {name: value for name, value in joined.items() if "_" in name and value} == {
        "on_bad_row": "error", "left_time": "ts", "right_time": "ts", "left_id": "n", "right_id": "m"
    }  # fmt: skip
    assert {name: banded[name] for name in ("left_value", "right_value", "left_op", "right_op")} == {
        "left_value": "price", "right_value": "price", "left_op": "op", "right_op": "op"
    }  # fmt: skip


@pytest.mark.parametrize("password", ["back\\slash", 'it\'s "so"', "caf\u00e9 \u2603 tea", "line\nbreak"])
def test_a_password_is_hidden_where_a_whole_table_is_told(tmp_path, password):
    text = GOOD.replace("[[sink]]", "[sink]") + 'options = { password = "${PASSWORD}" }\n'

    message = refusal(tmp_path, text, PASSWORD=password)

    assert "sink: it is {" in message
    assert "${PASSWORD}" in message
    for hidden in (password, repr(password)[1:-1]):
        assert hidden not in message


def test_a_sink_without_a_format_is_one_mistake(tmp_path):
    message = refusal(tmp_path, GOOD.replace('format = "console"', 'path = "x"'))

    assert message.endswith(
        "ticks.toml: sink 1.format: it is missing; a format that Spark writes as a stream: "
        "kafka, parquet, json, console, delta; or webhook"
    )
