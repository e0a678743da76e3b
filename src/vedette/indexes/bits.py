"""Counting and finding the set bits of 64-bit words: the processor's own instructions, which Numba does not name."""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.extending import intrinsic

if config.DISABLE_JIT:

    def count_ones(word: Any) -> int:
        """The number of set bits."""
        return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_count()

    def lowest_one(word: Any) -> int:
        """The place of the lowest set bit of a word that is not zero."""
        low = int(word) & 0xFFFFFFFFFFFFFFFF
        return (low & -low).bit_length() - 1

else:

    @intrinsic
    def count_ones(typing_context: Any, word: Any) -> Any:
        """The number of set bits."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.int64), emit

    @intrinsic
    def lowest_one(typing_context: Any, word: Any) -> Any:
        """The place of the lowest set bit of a word that is not zero."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

        return types.int64(types.int64), emit
