"""Prefetches memory that a loop needs some rows later, so that rows need not be sorted for the cache."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def prefetch(array: Any, place: Any) -> None:
        """Bring `array[place]` near; a place outside the array does nothing."""

else:

    @intrinsic
    def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
        """Bring `array[place]` near; a place outside the array does nothing."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            byte = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
            flag = ir.IntType(32)
            function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module,
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]),
                "llvm.prefetch.p0",
            )
            builder.call(function, [byte, flag(0), flag(3), flag(1)])  # to read, into all caches, data
            return context.get_dummy_value()

        return types.void(array, types.int64), emit
