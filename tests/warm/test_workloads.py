"""The workloads of `vedette warm` call every kernel of the product, so that nothing is left to compile."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from native.test_kernel_calls import TREES, kernels_defined, uses_of_kernels
from numba.core import config

import vedette

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")

# Prints what `vedette warm` prints, and then the kernels that were called from Python.
RUN = """if True:
    import gc, json
    from numba.core.dispatcher import Dispatcher
    from vedette.warm import child
    child.main()
    called = [each.py_func for each in gc.get_objects() if isinstance(each, Dispatcher) and each.overloads]
    print(json.dumps(sorted(f"{each.__module__}.{each.__name__}" for each in called)))
"""
# Small kernels that few rows do not reach. Each is compiled in about a second where it is needed.
LEFT_OUT = {
    "vedette.data.list_axes._take_lists": "arrays in a part that a screen excludes most rows from",
    "vedette.indexes.grid_file_pages.remove_places": "only for index='MLGF', which the planner does not choose",
    "vedette.indexes.hilbert._find_keys": "only called by the papers' structures",
    "vedette.indexes.leaves.group_tests": "many equal boxes",
    "vedette.indexes.spatial_join.fill_windows": "only for index='MLGF', which the planner does not choose",
    "vedette.operators.border.gaps.close_gaps": "a query is removed while its boundaries are followed",
    "vedette.operators.border.region_segments._drop": "a query is removed while its boundaries are followed",
    "vedette.operators.border.runs._drop_returns": "a move from one box of a query to another",
    "vedette.operators.moving_join.calendar_buckets.rename": "most objects are removed",
    "vedette.operators.window_join.ordered_lists._pack": "most rows have left the window",
    "vedette.operators.window_join.probe_pieces._cut": "a large batch is cut into pieces for threads",
    "vedette.queries.match._find_removed_in_rows": "some queries of a merged part are removed",
}


def called_from_python():
    """The product's kernels that code outside of kernels calls."""
    for module, tree in TREES.items():
        if module.startswith("vedette.papers."):
            continue
        inside = {id(node) for kernel in kernels_defined(tree) for node in ast.walk(kernel)}
        yield from (name for used, name in uses_of_kernels(module, tree) if id(used) not in inside)


def run_workloads():
    environment = os.environ | {"PYTHONPATH": str(Path(vedette.__file__).parents[1]), "VEDETTE_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
    *workloads, called = map(json.loads, done.stdout.splitlines())
    return workloads, set(called)


@pytest.mark.full
def test_the_workloads_call_every_kernel_and_leave_nothing_to_compile():
    run_workloads()

    workloads, called = run_workloads()

    assert {each["workload"]: each["compiled"] for each in workloads if each["compiled"]} == {}
    assert set(called_from_python()) - called - LEFT_OUT.keys() == set()
