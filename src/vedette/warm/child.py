"""The process that compiles: runs each workload, and prints what was compiled as a line of JSON."""

from __future__ import annotations

import json
import time

from vedette.native.kernel_cache import counts
from vedette.warm.workloads import WORKLOADS


def main() -> None:
    for name, run in WORKLOADS.items():
        before, start = dict(counts), time.perf_counter()
        run()
        done = {kind: n - before[kind] for kind, n in counts.items()}
        print(json.dumps({"workload": name, "seconds": time.perf_counter() - start, **done}), flush=True)


if __name__ == "__main__":
    main()
