"""Vedette measured against its peers: `python -m benchmarks list`, `run`, `report`.

Every contestant runs on one thread. The limits are set here, before any library that reads them is imported.
"""

from __future__ import annotations

import os

for _name in ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
