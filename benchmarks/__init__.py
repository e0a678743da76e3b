"""Vedette measured against its peers: `python -m benchmarks list`, `run`, `report`.

Every contestant has the same number of threads: VEDETTE_THREADS, by default one, because some peers have only one. The
limits are set here, before any library that reads them is imported.
"""

from __future__ import annotations

import os

N_THREADS = int(os.environ.setdefault("VEDETTE_THREADS", "1"))
for _name in ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, str(N_THREADS))
