"""Compares bytes eight at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config
from numba.extending import intrinsic
from numpy.typing import NDArray

from vedette.native.kernels import kernel

WORD = 8  # bytes

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def word_at(data: Any, place: Any) -> Any:
        """The eight bytes from `data[place]` on, as one number."""
        return int.from_bytes(data[place : place + WORD].tobytes(), "little")

else:

    @intrinsic
    def word_at(typing_context: Any, data: Any, place: Any) -> Any:
        """The eight bytes from `data[place]` on, as one number."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first = builder.gep(context.make_array(data)(context, builder, arguments[0]).data, [arguments[1]])
            return builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(data, types.int64), emit


@kernel
def are_same(left: NDArray[np.uint8], at_left: int, right: NDArray[np.uint8], at_right: int, n: int) -> bool:
    """Whether `n` bytes are the same in both arrays."""
    if n < WORD:
        i = 0
        while i < n and left[at_left + i] == right[at_right + i]:
            i += 1
        return i == n
    for i in range(0, n - WORD, WORD):
        if word_at(left, at_left + i) != word_at(right, at_right + i):
            return False
    last = n - WORD  # may overlap the word before it
    return bool(word_at(left, at_left + last) == word_at(right, at_right + last))
