"""Texts that users of other languages write: each is refused with one sentence that says what would work."""

from __future__ import annotations

import pytest

import vedette as vd

SCHEMA = (
    "symbol string, price double, volume bigint, live boolean, day date, ts timestamp, tags array<string>, "
    "o struct<a: bigint, c: struct<e: double>>"
)
MISTAKES = {
    "ISNULL(price, 0) > 3": "coalesce replaces nulls",
    "symbol ~ 'IB.*'": "write RLIKE",
    "symbol !~ 'IB'": "write NOT ... RLIKE",
    "price::int > 3": "write CAST(... AS int)",
    "ts > now() - 5 MINUTES": "write INTERVAL before the number",
    "ts > now() - 5": "a timestamp takes an interval",
    "ts > INTERVAL 5 MINUTES": "ts > now() - INTERVAL 5 MINUTES",
    "day - ts > 3": "write INTERVAL 3 DAYS",
    '"price" > 3': "write the field as price",
    "[price] > 3": "written without brackets",
    "1 < price < 5": "write x BETWEEN 1 AND 5",
    "(price > 3": "a ( without its )",
    "symbol = \u2018IBM\u2019": "\u2018 has no meaning in a query; write '",
    "symbol = \u201cIBM\u201d": "write '",
    "price \u2265 3": "write >=",
    "price > 3 \u2013 1": "write -",
    "price>3 AND\u200b volume > 2": "an invisible character (U+200B); remove it",
    "symbol IN ('a', 'b',)": "remove the comma",
    "price > 3,": "the text ends with a comma",
    "price > 1,000": "without commas",
    "symbol IN 'a'": "IN (1, 2)",
    "'a' IN tags": "write array_contains(tags, ...)",
    "tags = 'a'": "array_contains",
    "'a' = ANY(tags)": "array_contains",
    "price === 3": "write =",
    "price =! 3": "write <> or !=",
    "price => 3": "write >=",
    "price =< 3": "write <=",
    "price > = 3": "the space within one",
    "price <> <> 3": "two operators in a row",
    "price > 3 AND AND volume = 2": "a condition is missing between AND and AND",
    "AND price > 3": "a condition is missing before AND",
    "price > 3 AND": "a condition is missing after AND",
    "price > 3 AND (volume = 2 OR )": "a condition is missing after OR",
    "price > 3 && volume = 2": "write AND",
    "price > 3 AND ()": "a condition is missing between ( and )",
    "end = 3": "write a field of that name in backquotes: `end`",
    "between > 3": "in backquotes: `between`",
    "price NOT NULL": "write IS NOT NULL",
    "price ISNULL": "write IS NULL",
    "price IS BETWEEN 3 AND 5": "write BETWEEN without IS",
    "price BETWEEN 3, 5": "write BETWEEN 3 AND 5",
    "price BETWEEN 3 TO 5": "write BETWEEN 3 AND 5",
    "CASE WHEN live THEN TRUE": "CASE needs END",
    "IF live THEN TRUE": "write if(condition, value, otherwise)",
    "symbol equals 'IBM'": "write =",
    "price gt 3": "write >",
    "price less than 3": "write <",
    "price not equals 3": "write <>",
    "symbol contains 'B'": "write contains(field, 'text')",
    "symbol.lower() = 'ibm'": "write lower(field)",
    "symbol SIMILAR TO 'a'": "write LIKE or RLIKE",
    "symbol MATCHES 'a'": "write LIKE or RLIKE",
    "symbol COLLATE nocase = 'a'": "compare lower(...)",
    "price MOD 3 = 1": "write %",
    "price ** 2 > 3": "write power(x, y)",
    "price // 2 > 3": "write DIV",
    "o->a > 3": "written with a dot, as in o.a",
    "o > 3": "o is a struct, with the parts o.a, o.c.e",
    "price > ?": "write the value itself",
    "price > :threshold": "write the value itself",
    "price > {threshold}": "write the value itself",
    "price > 3 LIMIT 5": "remove LIMIT",
    "price > 3 ORDER BY price": "remove ORDER BY",
    "CAST(price, int) > 3": "CAST(price AS int)",
    "CAST(price AS varchar(3)) = 'a'": "write AS string",
    "CAST(price AS datetime) > now()": "write AS timestamp",
    "symbol = IBM": "a string is written in quotes",
    "symbol = 'a' OR 'b'": "write IN ('a', 'b')",
    "symbol = ''IBM''": "between two quotes",
    "symbol + 'a' = 'ab'": "strings are joined by ||",
    "day = 2024-01-01": "DATE '2024-12-31'",
    "ts > 1704067200": "timestamp_seconds(n)",
    "live = 1": "write TRUE or FALSE",
    "live = yes": "write TRUE",
    "ts > today": "write current_date",
    "ts > SYSDATE": "write now()",
    "length() = 3": "length takes 1 argument, got 0",
    "price volume": "an operator is missing before 'volume'",
    "strftime('%Y', ts) = '2024'": "similar functions: date_format",
    "starts_with(symbol, 'a')": "similar functions: startswith",
    "EXTRACT(foo FROM ts) = 2024": "parts are: year, quarter",
}
queries = vd.QuerySet(SCHEMA)


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_refused_with_what_would_work(text: str) -> None:
    with pytest.raises(vd.QueryError) as refused:
        queries.check(text)

    assert MISTAKES[text] in refused.value.reason
    assert "\n" not in refused.value.reason
    assert len(refused.value.reason) < 260


def test_a_message_names_at_most_twenty_fields() -> None:
    with pytest.raises(vd.QueryError, match=r"f19 and 30 more"):
        vd.QuerySet(", ".join(f"f{k:02d} double" for k in range(50))).check("zzzzzzzz > 3")
