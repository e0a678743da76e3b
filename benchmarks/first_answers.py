"""The first answer of each operator, as a process of its own: `python -m benchmarks.first_answers OPERATOR [SETTINGS]`.

Prints a line of JSON: the seconds until the answer, and how many kernels were compiled. With SETTINGS, those of a Spark
session, the operator runs in it, and the seconds are those of its job; an executor with Python has started before. With
a third argument, the job has the same stages, and functions that do nothing instead of the operator.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

START = time.perf_counter()


def make_boxes(n_queries: int, fields: str, width: float) -> Any:
    import numpy as np

    import vedette as vd

    random = np.random.default_rng(1)
    queries = vd.QuerySet("k bigint, t bigint, " + ", ".join(f"{field} double" for field in fields))
    lows = {field: random.random(n_queries) for field in fields}
    queries.add_boxes(np.arange(n_queries), {field: (low, low + width) for field, low in lows.items()})
    return queries


def make_rows(n: int, fields: str = "abcd") -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(2)
    return {"k": np.arange(n) // 2, "t": np.arange(n) % 2} | {field: random.random(n) for field in fields}


def make_texts() -> Any:
    import vedette as vd

    queries = vd.QuerySet("a double, b double")
    queries.add_many([1, 2], ["a > b AND a * 2 < 1.5", "a - b > 0.5"])
    return queries


def make_pairs() -> Any:
    import vedette as vd

    stream = "k bigint, t bigint, a double, b double"
    pairs = vd.JoinQuerySet(left=stream, right=stream)
    pairs.add("near", "left.k = right.k AND left.a - right.a BETWEEN -0.5 AND 0.5", within=10)
    return pairs


def make_bands() -> Any:
    import numpy as np

    import vedette as vd

    bands = vd.BandQuerySet()
    bands.add_many(np.arange(2000), np.arange(2000) / 2000, np.arange(2000) / 2000 + 0.001)
    return bands


def make_objects(n: int) -> dict[str, Any]:
    rows = make_rows(n)
    columns = {"id": rows["k"] * 2 + rows["t"], "time": rows["t"] * 0.0}
    for name, place, speed in (("x", "a", "c"), ("y", "b", "d")):
        columns |= {f"{name}_low": 1000 * rows[place], f"{name}_high": 1000 * rows[place] + 5}
        columns |= {f"v{name}_low": rows[speed], f"v{name}_high": rows[speed]}
    return columns


def match(queries: Any) -> int:
    return len(queries.match({field.name: make_rows(5000)[field.name] for field in queries.schema}).positions)


def watch(queries: Any) -> int:
    return len(queries.border(key="k", time="t").step(make_rows(2000)))


def join_windows(pairs: Any) -> int:
    sides = {side: make_rows(400) for side in ("left", "right")}
    return len(pairs.window(left_time="t", right_time="t", left_id="k", right_id="k").step(**sides))


def join_bands(bands: Any) -> int:
    rows = make_rows(400)
    side = {"id": rows["k"] * 2 + rows["t"], "value": rows["a"]}
    return len(bands.monitor(report="pairs").insert(left=side, right=side))


def join_moving(join: Any) -> int:
    objects = make_objects(400)
    objects.pop("time")
    return len(join.load(a=objects, b=objects, time=0))


def make_moving() -> Any:
    import vedette as vd

    return vd.MovingJoin(max_update_interval=60)


OPERATORS: dict[str, tuple[Callable[[], Any], Callable[[Any], int]]] = {
    "match, one field": (lambda: make_boxes(2000, "a", 0.01), match),
    "match, two fields": (lambda: make_boxes(2000, "ab", 0.05), match),
    "match, four fields, 10,000 queries": (lambda: make_boxes(10_000, "abcd", 0.3), match),
    "match, conditions": (make_texts, match),
    "border": (lambda: make_boxes(2000, "ab", 0.05), watch),
    "window join": (make_pairs, join_windows),
    "band join": (make_bands, join_bands),
    "moving join": (make_moving, join_moving),
}


def ask_spark(name: str, queries: Any, frame: Callable[[dict[str, Any]], Any]) -> Any:
    """The answer of an operator, as a DataFrame."""
    from vedette import spark as vs

    if name.startswith("match"):
        return frame(make_rows(5000)).transform(vs.match(queries))
    if name == "border":
        return frame(make_rows(2000)).transform(vs.border(queries, key="k", time="t"))
    if name == "window join":
        times = {"left_time": "t", "right_time": "t", "left_id": "k", "right_id": "k"}
        return vs.window_join(frame(make_rows(400)), frame(make_rows(400)), queries, **times)
    if name == "band join":
        rows = make_rows(400)
        side = {"id": rows["k"] * 2 + rows["t"], "value": rows["a"]}
        return vs.band_join(frame(side), frame(side), queries)
    return vs.moving_join(frame(make_objects(400)), frame(make_objects(400)), max_update_interval=60)


def do_nothing(name: str, frame: Callable[[dict[str, Any]], Any]) -> Any:
    """A job with the stages of an operator: one for matching; for the others two, with a shuffle between them."""
    rows = frame(make_rows(2000))
    found = rows.mapInArrow(lambda batches: batches, rows.schema)
    return found if name.startswith("match") else found.groupBy("t").applyInArrow(lambda table: table, rows.schema)


def time_in_spark(name: str, settings: dict[str, str], *, is_empty: bool) -> dict[str, Any]:
    """The seconds of the job, and how many kernels the executor's worker compiled."""
    import pandas as pd
    import pyarrow as pa

    from vedette import spark as vs

    spark = vs.session("first answers", **settings)
    spark.range(1).mapInArrow(lambda batches: batches, "id bigint").count()  # starts the executor
    queries = OPERATORS[name][0]()

    def frame(columns: dict[str, Any]) -> Any:
        return spark.createDataFrame(pd.DataFrame(columns)).coalesce(1)

    def count(batches: Any) -> Any:
        from vedette.native.kernel_cache import counts

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"compiled": [counts["compiled"]]})

    start = time.perf_counter()
    n_answers = (do_nothing(name, frame) if is_empty else ask_spark(name, queries, frame)).count()
    seconds = time.perf_counter() - start
    (row,) = spark.range(1).coalesce(1).mapInArrow(count, "compiled bigint").collect()  # the worker is used again
    spark.stop()
    return {"seconds": seconds, "compiled": row.compiled, "answers": n_answers}


def main() -> None:
    name, *settings = sys.argv[1:]
    if settings:
        print(json.dumps(time_in_spark(name, json.loads(settings[0]), is_empty=len(settings) > 1)))
        return
    make, ask = OPERATORS[name]
    n_answers = ask(make())
    seconds = time.perf_counter() - START
    from vedette.native.kernel_cache import counts

    print(json.dumps({"seconds": seconds, "compiled": counts["compiled"], "answers": n_answers}))


if __name__ == "__main__":
    main()
