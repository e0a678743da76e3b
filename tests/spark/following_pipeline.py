"""Streams that follow a registry, run by test_following_modes.py in a process of its own: SESSION DIRECTORY.

Reads DIRECTORY/rows file by file, follows the set that DIRECTORY/url and DIRECTORY/set name, and writes
DIRECTORY/answers under DIRECTORY/checkpoint. It may be killed at any time and started again. When it is through it
prints what it answered.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import vedette as vd
from vedette import spark as vs


def main() -> None:
    import streams  # beside this file, which is run as a program

    settings = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    spark = vs.session("following", **settings)
    registry = vd.Registry((directory / "url").read_text(), create=False)
    name = (directory / "set").read_text()
    followed = registry.follow(name)
    if followed.kind == "border":
        transform = vs.border(followed, key="symbol", time="ts", shards=3)
    else:
        transform = vs.match(followed)
    stream = streams.read_stream(spark, directory / "rows")
    answers = streams.run_stream(spark, stream.transform(transform), directory)
    columns = [c if c not in ("ts", "time") else f"unix_seconds({c}) {c}" for c in answers.columns]
    print(json.dumps({"rows": sorted(list(row) for row in answers.selectExpr(*columns).collect())}))
    spark.stop()


if __name__ == "__main__":
    main()
