"""Compares 64 numbers with one value at once: the result is a 64-bit word with one bit per number."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def find_at_most(array: Any, place: Any, value: Any) -> Any:
        """The bits of those of the 64 numbers from `array.flat[place]` on that are at most the value."""
        return np.packbits(array.reshape(-1)[place : place + 64] <= value, bitorder="little").view(np.int64)[0]

    def find_at_least(array: Any, place: Any, value: Any) -> Any:
        """The bits of those that are at least the value."""
        return np.packbits(array.reshape(-1)[place : place + 64] >= value, bitorder="little").view(np.int64)[0]

else:

    def _compare(sign: str, array: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = ir.VectorType(ir.IntType(32), 64)
            data = context.make_array(array)(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), numbers.as_pointer())
            one = builder.insert_element(ir.Constant(numbers, ir.Undefined), arguments[2], ir.IntType(32)(0))
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), [ir.IntType(32)(0)] * 64)
            many = builder.shuffle_vector(one, ir.Constant(numbers, ir.Undefined), lanes)
            found = builder.icmp_signed(sign, builder.load(place, align=4), many)
            return builder.bitcast(found, ir.IntType(64))

        return types.int64(array, types.int64, types.int32), emit

    @intrinsic
    def find_at_most(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
        """The bits of those of the 64 numbers from `array.flat[place]` on that are at most the value."""
        return _compare("<=", array)

    @intrinsic
    def find_at_least(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
        """The bits of those that are at least the value."""
        return _compare(">=", array)
