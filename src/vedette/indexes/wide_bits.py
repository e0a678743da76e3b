"""Operations on many bits at once: intersect, transpose, and write the numbers of set bits.

A square of 64 by 64 bits is transposed in registers: blocks of bytes are swapped between words, bytes within eight
words, and bits within a byte's block (after Hacker's Delight, section 7-3). If the processor can compress vectors
(AVX-512), numbers at set bits are written 16 at once without a branch, in half the time of writing them one by one.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic
from numpy.typing import NDArray

from vedette.native.bits import count_ones, lowest_one, without_lowest
from vedette.native.kernels import kernel

if config.DISABLE_JIT:  # type: ignore[attr-defined]
    CAN_COMPRESS = False

    def begin_between(words: Any, at: Any, bitmaps: Any, most: Any, least: Any) -> None:
        """Write four words to `words.flat[at]` on: the bits in which those at two places of `bitmaps` differ."""
        flat = bitmaps.reshape(-1)
        words.reshape(-1)[at : at + 4] = flat[most : most + 4] ^ flat[least : least + 4]

    def keep_between(words: Any, at: Any, bitmaps: Any, most: Any, least: Any) -> None:
        """Clear the bits of four words in which those at two places of `bitmaps` do not differ."""
        flat = bitmaps.reshape(-1)
        words.reshape(-1)[at : at + 4] &= flat[most : most + 4] ^ flat[least : least + 4]

    def transpose_square(words: Any, turned: Any, at: Any, step: Any) -> None:
        """Write bit `c` of word `r` as bit `r` of `turned[at + c % 8 + c // 8 * step]`, for 64 words."""
        square = np.unpackbits(words[:64].view(np.uint8).reshape(64, 8), axis=1, bitorder="little")
        columns = np.packbits(np.ascontiguousarray(square.T), axis=1, bitorder="little").view(np.int64)[:, 0]
        for i in range(8):
            turned[at + i * step : at + i * step + 8] = columns[8 * i : 8 * i + 8]

else:
    # If the target processor is set by hand, it may lack features of this one.
    CAN_COMPRESS = bool(
        not (config.CPU_NAME or config.CPU_FEATURES)  # type: ignore[attr-defined]
        and llvm.get_host_cpu_features().get("avx512f", False)
    )
    _FOUR = ir.VectorType(ir.IntType(64), 4)
    _EIGHT = ir.VectorType(ir.IntType(64), 8)
    _BYTES = ir.VectorType(ir.IntType(8), 64)
    _SIXTEEN = ir.VectorType(ir.IntType(32), 16)

    def _all(number: int) -> Any:
        return ir.Constant(_EIGHT, [ir.IntType(64)(number)] * 8)

    def _place(context: Any, builder: Any, array_type: Any, array: Any, place: Any, vector: Any) -> Any:
        data = context.make_array(array_type)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

    def _between(words: Any, bitmaps: Any, is_first: bool) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            most, least = (
                builder.load(_place(context, builder, bitmaps, arguments[2], place, _FOUR), align=8)
                for place in arguments[3:]
            )
            differing = builder.xor(most, least)
            place = _place(context, builder, words, arguments[0], arguments[1], _FOUR)
            if not is_first:
                differing = builder.and_(differing, builder.load(place, align=8))
            builder.store(differing, place, align=8)
            return context.get_dummy_value()

        return types.void(words, types.int64, bitmaps, types.int64, types.int64), emit

    @intrinsic
    def begin_between(typing_context: Any, words: Any, at: Any, bitmaps: Any, most: Any, least: Any) -> Any:
        """Write four words to `words.flat[at]` on: the bits in which those at two places of `bitmaps` differ."""
        return _between(words, bitmaps, True)

    @intrinsic
    def keep_between(typing_context: Any, words: Any, at: Any, bitmaps: Any, most: Any, least: Any) -> Any:
        """Clear the bits of four words in which those at two places of `bitmaps` do not differ."""
        return _between(words, bitmaps, False)

    @intrinsic
    def transpose_square(typing_context: Any, words: Any, turned: Any, at: Any, step: Any) -> Any:
        """Write bit `c` of word `r` as bit `r` of `turned[at + c % 8 + c // 8 * step]`, for 64 words."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            index = [ir.IntType(64)(8 * i) for i in range(8)]
            rows = [
                builder.load(_place(context, builder, words, arguments[0], index[i], _EIGHT), align=8) for i in range(8)
            ]
            for step, width, chosen in ((4, 32, 0xFFFFFFFF), (2, 16, 0x0000FFFF0000FFFF), (1, 8, 0x00FF00FF00FF00FF)):
                for i in (i for i in range(8) if not i & step):
                    low, high = rows[i], rows[i + step]
                    swapped = builder.and_(builder.xor(builder.lshr(low, _all(width)), high), _all(chosen))
                    rows[i] = builder.xor(low, builder.shl(swapped, _all(width)))
                    rows[i + step] = builder.xor(high, swapped)
            for i in range(8):
                block = _swap_bytes(builder, rows[i])
                for width, chosen in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
                    shifted = builder.lshr(block, _all(width))
                    swapped = builder.and_(builder.xor(block, shifted), _all(chosen))
                    block = builder.xor(builder.xor(block, swapped), builder.shl(swapped, _all(width)))
                place = builder.add(arguments[2], builder.mul(arguments[3], ir.IntType(64)(i)))
                builder.store(
                    _swap_bytes(builder, block), _place(context, builder, turned, arguments[1], place, _EIGHT), align=8
                )
            return context.get_dummy_value()

        return types.void(words, turned, types.int64, types.int64), emit

    def _swap_bytes(builder: Any, eight: Any) -> Any:
        """Byte `b` of word `r` as byte `r` of word `b`."""
        order = [ir.IntType(32)(8 * (i % 8) + i // 8) for i in range(64)]
        numbers = builder.bitcast(eight, _BYTES)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), order)
        return builder.bitcast(builder.shuffle_vector(numbers, ir.Constant(_BYTES, ir.Undefined), lanes), _EIGHT)

    @intrinsic
    def _compress(typing_context: Any, target: Any, at: Any, source: Any, place: Any, bits: Any, n_ones: Any) -> Any:
        """Write the numbers of `source[place:place + 16]` whose bits are set, `n_ones` of them, to `target[at]` on."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = builder.load(_place(context, builder, source, arguments[2], arguments[3], _SIXTEEN), align=4)
            chosen = ir.VectorType(ir.IntType(1), 16)
            compress = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module,
                ir.FunctionType(_SIXTEEN, [_SIXTEEN, _SIXTEEN, chosen]),
                "llvm.x86.avx512.mask.compress.v16i32",
            )
            mask = builder.bitcast(builder.trunc(arguments[4], ir.IntType(16)), chosen)
            packed = builder.call(compress, [numbers, ir.Constant(_SIXTEEN, ir.Undefined), mask])
            out = _place(context, builder, target, arguments[0], arguments[1], _SIXTEEN)
            store = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module,
                ir.FunctionType(ir.VoidType(), [_SIXTEEN, out.type, ir.IntType(32), chosen]),
                "llvm.masked.store.v16i32.p0",
            )
            one = ir.IntType(64)(1)
            first = builder.trunc(builder.sub(builder.shl(one, arguments[5]), one), ir.IntType(16))
            builder.call(store, [packed, out, ir.IntType(32)(4), builder.bitcast(first, chosen)])
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64, types.int64), emit


if CAN_COMPRESS:

    @kernel
    def write_ones(
        word: np.int64, source: NDArray[np.int32], place: int, target: NDArray[np.int32], at: np.int64, end: np.int64
    ) -> np.int64:
        """Write `source[place + i]` for each set bit `i` to `target[at]` on, at most up to `end`. Returns the end."""
        for part in range(0, 64, 16):
            bits = (word >> part) & 0xFFFF
            n_ones = count_ones(bits)
            _compress(target, at, source, place + part, bits, n_ones)  # type: ignore[call-arg]
            at += n_ones
        return at

else:

    @kernel
    def write_ones(
        word: np.int64, source: NDArray[np.int32], place: int, target: NDArray[np.int32], at: np.int64, end: np.int64
    ) -> np.int64:
        """Write `source[place + i]` for each set bit `i` to `target[at]` on, at most up to `end`. Returns the end."""
        n_ones = count_ones(word)
        # Four at a time, even if there are fewer, as long as that stays before the end.
        while n_ones > 0 and at + 4 <= end:
            for j in range(4):
                target[at + j] = source[place + (lowest_one(word) & 63)]
                word = without_lowest(word)
            at += min(n_ones, 4)
            n_ones -= 4
        while word != 0:
            target[at] = source[place + lowest_one(word)]
            at += 1
            word = without_lowest(word)
        return at
