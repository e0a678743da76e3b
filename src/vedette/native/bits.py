"""Counts and finds the set bits of 64-bit words with processor instructions that Numba does not expose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import config
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def count_ones(word: Any) -> int:
        """The number of set bits."""
        return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_count()

    def lowest_one(word: Any) -> int:
        """The position of the lowest set bit; 64 if there is none."""
        return (int(word) & -int(word)).bit_length() - 1 if word else 64

    def without_lowest(word: Any) -> Any:
        """The word with its lowest set bit cleared."""
        return word ^ (np.int64(1) << np.int64(lowest_one(word))) if word else word

else:

    @intrinsic
    def count_ones(typing_context: Any, word: Any) -> Any:
        """The number of set bits."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.int64), emit

    @intrinsic
    def lowest_one(typing_context: Any, word: Any) -> Any:
        """The position of the lowest set bit; 64 if there is none."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

        return types.int64(types.int64), emit

    @intrinsic
    def without_lowest(typing_context: Any, word: Any) -> Any:
        """The word with its lowest set bit cleared."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.and_(arguments[0], builder.sub(arguments[0], context.get_constant(types.int64, 1)))

        return types.int64(types.int64), emit
