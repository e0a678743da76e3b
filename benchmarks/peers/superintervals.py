"""superintervals: a C++ index of closed intervals of 32-bit integers.

Its Python batch call makes a Python list of Python integers for every row. To measure the index itself, a second
adapter calls the same compiled `search_idxs` of the installed package from a Numba loop and leaves all matches in one
C++ vector: lists like those of Vedette. It needs the symbol that Linux builds of the package export.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import superintervals.intervalmap
from numba import carray, types
from numpy.typing import NDArray
from superintervals import IntervalMap

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload

_POINTER_OFFSET = 24  # of the C++ map in the Python object: after reference count, type and method table
_library = ctypes.CDLL(superintervals.intervalmap.__file__)
_search = getattr(
    _library, "_ZNK2si11IntervalMapIiPvE11search_idxsEiiRSt6vectorImSaImEE", None
)  # appends to the vector
HAS_CORE = _search is not None
if _search is not None:
    _search.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    _search.restype = None


class Superintervals(Peer):
    """Python's batch call: a list of lists of Python integers."""

    name = "superintervals, Python lists"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        lows, highs = workload.lows[0].astype(np.int32), workload.highs[0].astype(np.int32)
        self.order = np.lexsort((-highs, lows))  # the order of the index: it returns places in this order
        self.map = IntervalMap.from_arrays(lows[self.order], highs[self.order])

    def load(self, rows: Workload) -> None:
        self.values = rows.rows[0].astype(np.int32)

    def match(self) -> Any:
        return self.map.search_idxs_batch(self.values, self.values)

    def answer(self, result: Any) -> Answer:
        starts = np.concatenate([[0], np.cumsum([len(found) for found in result])])
        places = np.fromiter((place for found in result for place in found), np.int64, int(starts[-1]))
        return Answer(self.order[places], starts=starts)


class SuperintervalsCore(Superintervals):
    """The C++ index called from a compiled loop, lists out."""

    name = "superintervals, C++ core"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.address = ctypes.c_void_p.from_address(id(self.map) + _POINTER_OFFSET).value
        self.vector = np.zeros(3, np.uint64)  # begin, end, end of storage: grown once by C++, then used again

    def match(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        starts, places = _search_all(self.address, self.values, self.vector)
        return starts, places, None

    def answer(self, result: Any) -> Answer:
        starts, places, row_order = result
        return Answer(self.order[places], starts=starts, row_order=row_order)


class SuperintervalsCoreSorted(SuperintervalsCore):
    """The same with the values sorted first, which is part of the time; the lists stay in that order."""

    name = "superintervals, C++ core, values sorted first"

    def match(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        row_order = np.argsort(self.values)
        starts, places = _search_all(self.address, self.values[row_order], self.vector)
        return starts, places, row_order


class SuperintervalsPairs(SuperintervalsCore):
    """The same, the row repeated for each of its matches."""

    name = "superintervals, C++ core, pairs"

    def match(self) -> Any:
        starts, places = _search_all(self.address, self.values, self.vector)
        return np.repeat(np.arange(len(self.values), dtype=np.int32), np.diff(starts)), places

    def answer(self, result: Any) -> Answer:
        rows, places = result
        return Answer(self.order[places], rows)


class SuperintervalsPairsSorted(SuperintervalsPairs):
    name = "superintervals, C++ core, pairs, values sorted first"

    def match(self) -> Any:
        row_order = np.argsort(self.values)
        starts, places = _search_all(self.address, self.values[row_order], self.vector)
        return np.repeat(row_order, np.diff(starts)), places


@numba.extending.intrinsic
def _to_pointer(context, address):  # type: ignore[no-untyped-def]
    """The number as a pointer to 64-bit integers."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(address), build


@numba.njit
def _search_all(address, values, vector):  # type: ignore[no-untyped-def]
    """Starts of the lists, and a view of the vector that has them one after another."""
    vector[1] = vector[0]  # empty, its storage kept
    starts = np.empty(len(values) + 1, np.int64)
    starts[0] = 0
    for i in range(len(values)):
        _search(address, values[i], values[i], vector.ctypes)
        starts[i + 1] = np.int64(vector[1] - vector[0]) // 8
    n_found = starts[len(values)]
    return starts, carray(_to_pointer(np.int64(vector[0])), n_found)
