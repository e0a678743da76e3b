"""Kernels take a handful of typed arguments: arrays that belong together travel as one NamedTuple.

Two swapped arrays of one type corrupt answers silently, so mypy must see every argument of every kernel call.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import vedette
from vedette.native.kernels import plain_tuple

PACKAGE = Path(vedette.__file__).parent
MAX_ARGUMENTS = 10

MODULES = {
    ".".join(("vedette", *file.relative_to(PACKAGE).with_suffix("").parts)): file for file in PACKAGE.rglob("*.py")
}


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(each, ast.Name) and each.id == "kernel" for each in node.decorator_list
    )


def kernels_defined(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and is_kernel(node)]


TREES = {name: ast.parse(file.read_text()) for name, file in MODULES.items()}
KERNELS = {f"{module}.{node.name}" for module, tree in TREES.items() for node in kernels_defined(tree)}


def uses_of_kernels(module: str, tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """Every expression that names a kernel, `match_rows` or `cells.match_rows` of an imported module; and its name."""
    names = {node.name: f"{module}.{node.name}" for node in kernels_defined(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    used: Any
    for used in ast.walk(tree):
        is_member = isinstance(used, ast.Attribute) and isinstance(used.value, ast.Name)
        name = f"{names.get(used.value.id)}.{used.attr}" if is_member else names.get(getattr(used, "id", ""))
        if name in KERNELS:
            yield used, str(name)


def faults(module: str, tree: ast.AST) -> Iterator[str]:
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in kernels_defined(tree):
        if len(node.args.args) > MAX_ARGUMENTS:
            yield f"line {node.lineno}: {node.name} has {len(node.args.args)} parameters"
    for used, _ in uses_of_kernels(module, tree):
        place, call = f"line {used.lineno}: {ast.unparse(used)}", calls.get(id(used))
        if call is None:
            yield f"{place} is passed as a value, so its calls cannot be checked"
        elif any(isinstance(argument, ast.Starred) for argument in call.args):
            yield f"{place} is called with starred arguments"
        elif len(call.args) > MAX_ARGUMENTS:
            yield f"{place} is called with {len(call.args)} arguments"


def test_the_rule_finds_each_kind_of_fault() -> None:
    parameters = ", ".join(f"a{number}" for number in range(MAX_ARGUMENTS + 1))
    home = ast.parse(f"@kernel\ndef many({parameters}): ...\n\nmany({parameters})\nmany(*arrays)\nrun(many)")
    other = ast.parse("from vedette.data import ids\nfrom vedette.data.ids import many as few\nids.many(*a)\nfew(*a)")
    KERNELS.add("vedette.data.ids.many")
    try:
        found = [*faults("vedette.data.ids", home), *faults("vedette.other", other)]
    finally:
        KERNELS.remove("vedette.data.ids.many")

    assert sorted(each.partition(": ")[2] for each in found) == [
        "few is called with starred arguments",
        "ids.many is called with starred arguments",
        "many has 11 parameters",
        "many is called with 11 arguments",
        "many is called with starred arguments",
        "many is passed as a value, so its calls cannot be checked",
    ]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_kernel_calls_have_at_most_ten_arguments_and_no_starred_ones(module: str) -> None:
    path = MODULES[module].relative_to(PACKAGE).as_posix()
    found = list(faults(module, TREES[module]))

    assert not found, f"{path}: " + "; ".join(found)


class Arrays(NamedTuple):
    lows: NDArray[np.float64]
    names: NDArray[np.int32]


def test_a_plain_tuple_has_the_same_arrays_without_names() -> None:
    arrays = Arrays(np.zeros(2), np.zeros(3, np.int32))

    plain = plain_tuple(arrays)

    assert type(plain) is tuple
    assert [id(each) for each in plain] == [id(arrays.lows), id(arrays.names)]
