"""Finding the set bits of 64-bit words: the processor's own instructions, which Numba does not name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic

if config.DISABLE_JIT:

    def lowest_one(word: Any) -> int:
        """The place of the lowest set bit of a word that is not zero."""
        low = int(word) & 0xFFFFFFFFFFFFFFFF
        return (low & -low).bit_length() - 1

    def without_lowest(word: Any) -> np.int64:
        """The word with its lowest set bit cleared."""
        return np.int64(word ^ (np.int64(1) << np.int64(lowest_one(word))))

else:

    @intrinsic
    def lowest_one(typing_context: Any, word: Any) -> Any:
        """The place of the lowest set bit of a word that is not zero."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

        return types.int64(types.int64), emit

    @intrinsic
    def without_lowest(typing_context: Any, word: Any) -> Any:
        """The word with its lowest set bit cleared."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.and_(arguments[0], builder.sub(arguments[0], context.get_constant(types.int64, 1)))

        return types.int64(types.int64), emit
