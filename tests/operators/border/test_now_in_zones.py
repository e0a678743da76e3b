"""Border monitoring with now() in days, months and parts of the clock, also where the clocks change."""

from __future__ import annotations

import calendar
import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import by_key
from operators.border.now_model import MINUTE, NowModel

import vedette as vd

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
QUARTER = 15 * MINUTE
DAY = 96 * QUARTER
# Quarters of an hour around changes of the clocks, and around the end of a month.
STARTS = {
    "Europe/Berlin": [dt.datetime(2024, 3, 30), dt.datetime(2024, 10, 26), dt.datetime(2024, 4, 29)],
    "America/New_York": [dt.datetime(2024, 3, 9), dt.datetime(2024, 11, 2), dt.datetime(2024, 2, 28)],
    "Australia/Lord_Howe": [dt.datetime(2024, 4, 5), dt.datetime(2024, 10, 4)],
    "UTC": [dt.datetime(2024, 2, 27)],
}


def micros(time):
    return (time - EPOCH) // dt.timedelta(microseconds=1)


def instant(micros):
    return EPOCH + dt.timedelta(microseconds=micros)


class Clock:
    """Spark's calendar in a time zone."""

    def __init__(self, zone):
        self.zone = ZoneInfo(zone)

    def local(self, micros):
        return instant(micros).astimezone(self.zone).replace(tzinfo=None)

    def moment(self, local):
        """In a gap, the offset before it counts; in an overlap, the first."""
        return micros(local.replace(tzinfo=self.zone, fold=0))

    def less(self, now, *, months=0, days=0, hours=0):
        local = self.local(now)
        month = local.year * 12 + local.month - 1 - months
        last = calendar.monthrange(month // 12, month % 12 + 1)[1]
        local = local.replace(year=month // 12, month=month % 12 + 1, day=min(local.day, last)) if months else local
        moved = self.moment(local - dt.timedelta(days=days)) if months or days else now
        return moved - hours * 4 * QUARTER


CONDITIONS = {
    "seen > now() - INTERVAL 1 DAY": lambda c, row, now: row["seen"] > c.less(now, days=1),
    "seen < now() - INTERVAL 2 DAYS": lambda c, row, now: row["seen"] < c.less(now, days=2),
    "seen >= now() - INTERVAL '1 06' DAY TO HOUR": lambda c, row, now: row["seen"] >= c.less(now, days=1, hours=6),
    "seen <= now() + INTERVAL 1 DAY": lambda c, row, now: row["seen"] <= c.less(now, days=-1),
    "seen > now() - INTERVAL 1 MONTH": lambda c, row, now: row["seen"] > c.less(now, months=1),
    "seen = now() - INTERVAL 1 DAY": lambda c, row, now: row["seen"] == c.less(now, days=1),
    "now() - seen < INTERVAL 1 DAY": lambda c, row, now: c.local(now) - c.local(row["seen"]) < dt.timedelta(days=1),
    "seen - now() > INTERVAL '3' HOUR": lambda c, row, now: c.local(row["seen"]) - c.local(now) > dt.timedelta(hours=3),
    "hour(now()) = 2": lambda c, row, now: c.local(now).hour == 2,
    "x < minute(now())": lambda c, row, now: row["x"] < c.local(now).minute,
    "CAST(seen AS date) = current_date": lambda c, row, now: c.local(row["seen"]).date() == c.local(now).date(),
    "day(seen) < day(now() - INTERVAL 1 DAY)": lambda c, row, now: (
        c.local(row["seen"]).day < c.local(c.less(now, days=1)).day
    ),
    "seen >= date_trunc('DAY', now())": lambda c, row, now: (
        row["seen"] >= c.moment(c.local(now).replace(hour=0, minute=0, second=0, microsecond=0))
    ),
    "now() > current_date + INTERVAL '9' HOUR": lambda c, row, now: (
        now > c.moment(c.local(now).replace(hour=0, minute=0, second=0, microsecond=0)) + 36 * QUARTER
    ),
    "localtimestamp() > TIMESTAMP_NTZ '2024-10-27 02:30:00'": lambda c, row, now: (
        c.local(now) > dt.datetime(2024, 10, 27, 2, 30)
    ),
    "date_format(now(), 'HH:mm') >= '02:30'": lambda c, row, now: f"{c.local(now):%H:%M}" >= "02:30",
    "x > 20 AND weekday(now()) >= 5 OR hour(now()) BETWEEN 9 AND 16": lambda c, row, now: (
        (row["x"] > 20 and c.local(now).weekday() >= 5) or 9 <= c.local(now).hour <= 16
    ),
}


@st.composite
def histories(draw):
    zone = draw(st.sampled_from(sorted(STARTS)))
    start = Clock(zone).moment(draw(st.sampled_from(STARTS[zone])))
    quarters = st.integers(0, 3 * 96).map(lambda each: start + each * QUARTER)
    row = st.fixed_dictionaries(
        {
            "k": st.just("a"),
            "x": st.sampled_from([14, 29, 44]),
            "seen": quarters.map(lambda each: each - DAY),
            "t": quarters,
        }
    )
    return zone, draw(st.lists(row, min_size=1, max_size=3)), start + draw(st.integers(0, 4 * 96)) * QUARTER


@given(histories(), st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=3, unique=True))
def test_events_come_at_the_moment_of_the_local_clock(history, texts):
    zone, rows, end = history
    queries, model, clock = (
        vd.QuerySet("k string, x bigint, seen timestamp", time_zone=zone),
        NowModel(grain=QUARTER),
        Clock(zone),
    )
    for text in texts:
        queries.add(text, text)
        model.forms[text] = lambda row, now, holds=CONDITIONS[text]: holds(clock, row, now)
    monitor = queries.border(key="k", time="t")
    rows = sorted(rows, key=lambda row: row["t"])

    found, expected = [], []
    for row in rows:
        table = {name: [value] if name in "kx" else [instant(value)] for name, value in row.items()}
        found += monitor.step(table).to_pylist()
        expected += model.step([row])
    found += monitor.advance(instant(end)).to_pylist()
    expected += model.advance(end)

    assert by_key([(e["key"], micros(e["time"]), e["query"], e["event"], e["reason"]) for e in found]) == by_key(
        expected
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("coalesce(seen, now()) > TIMESTAMP '2024-01-01'", "'coalesce'"),
        ("months_between(now(), seen) > 1", "'months_between'"),
        ("date_trunc('MILLISECOND', now()) > seen", "date_trunc to less than a second"),
        ("date_format(now(), 'ss.SSS') > '3'", "date_format with fractions of a second"),
    ],
)
def test_other_uses_of_now_are_refused_by_name(text, what):
    queries = vd.QuerySet("k string, x bigint, seen timestamp, t timestamp")
    queries.add("odd", text)

    with pytest.raises(vd.QueryError, match=f"query 'odd': border monitoring cannot follow now.. in {what}; compare a"):
        queries.border(key="k", time="t")
    queries.remove("odd")
    queries.border(key="k", time="t").step({"k": ["a"], "x": [1], "seen": [EPOCH], "t": [EPOCH]})
