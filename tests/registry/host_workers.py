"""Workers of one host, as Spark starts them: forks of one process, which open followed sets on request.

Called as host_workers.py NUMBER. Reads requests as lines of JSON: {"workers": [...], "request": {...}}, sends the
request to these workers at the same time, and prints the list of their answers; null for a worker that has died.
{"start": number} starts a worker again. A leader waits at a point while a file hang-POINT is in the working directory.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from vedette.errors import VedetteError
from vedette.registry.host.set_on_host import SetOnHost
from vedette.spark.workers import following

CONTEXT = multiprocessing.get_context("fork")


def hang_at(point):
    """Wait while the file of a point exists, and tell that with a file of this process."""
    while Path(f"hang-{point}").exists():
        Path(f"hangs-{os.getpid()}").touch()
        time.sleep(0.01)


def hang_in_leaders():
    ask_database = SetOnHost._ask_database

    def ask(self, *arguments):
        hang_at("before")
        pin = ask_database(self, *arguments)
        hang_at("after")
        return pin

    SetOnHost._ask_database = ask


def answer(request):
    """What the worker sees in a batch: the version, and the ids that match each value of x."""
    batch = following._Batch(*request["batch"])
    following._find_batch = lambda calls: batch
    try:
        opened = following.open_queries(request["facts"], request.get("since"))
    except VedetteError as error:
        return {"error": str(error), "is_retryable": getattr(error, "is_retryable", False)}
    found = [sorted(opened.queries.match_one({"x": x})) for x in request["values"]]
    return {"version": opened.version, "found": found, "leads": leads(), "pid": os.getpid()}


def leads():
    from vedette.registry.host import reader

    return any(each.leads for each in reader._leaders.values())


def work(pipe):
    while True:
        pipe.send(answer(pipe.recv()))


def start():
    own, other = CONTEXT.Pipe()
    process = CONTEXT.Process(target=work, args=(other,), daemon=True)
    process.start()
    other.close()
    return process, own


def ask(workers, request):
    for _, pipe in workers:
        with suppress(OSError):  # it may have died
            pipe.send(request)
    answers = []
    for _, pipe in workers:
        try:
            answers.append(pipe.recv())
        except (EOFError, OSError):
            answers.append(None)
    return answers


def main() -> None:
    hang_in_leaders()
    workers = [start() for _ in range(int(sys.argv[1]))]
    print(json.dumps([process.pid for process, _ in workers]), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            workers[order["start"]] = start()
            print(json.dumps(workers[order["start"]][0].pid), flush=True)
        else:
            print(json.dumps(ask([workers[each] for each in order["workers"]], order["request"])), flush=True)


if __name__ == "__main__":
    main()
