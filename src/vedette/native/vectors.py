"""Copies, fills and compares eight numbers at once.

The compiler would not do so by itself, because arrays might overlap.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def copy_eight(target: Any, at: Any, source: Any, place: Any) -> None:
        """Copy eight 32-bit numbers from `source[place]` on to `target[at]` on."""
        target[at : at + 8] = source[place : place + 8]

    def add_eight(target: Any, at: Any, source: Any, place: Any, added: Any) -> None:
        """The same, with a number added to each."""
        target[at : at + 8] = source[place : place + 8] + added

    def fill_eight(target: Any, at: Any, value: Any) -> None:
        """Write a number, of the target's type, eight times from `target[at]` on."""
        target[at : at + 8] = value

    def count_reaching(source: Any, place: Any, least: Any) -> Any:
        """How many of the eight 32-bit numbers from `source[place]` on are not below a number."""
        return int((source[place : place + 8] >= least).sum())

else:

    def _eight(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
        data = context.make_array(array_type)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [place]), ir.VectorType(ir.IntType(32), 8).as_pointer())

    @intrinsic
    def copy_eight(typing_context: Any, target: Any, at: Any, source: Any, place: Any) -> Any:
        """Copy eight 32-bit numbers from `source[place]` on to `target[at]` on."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = builder.load(_eight(context, builder, source, arguments[2], arguments[3]), align=4)
            builder.store(numbers, _eight(context, builder, target, arguments[0], arguments[1]), align=4)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), emit

    @intrinsic
    def add_eight(typing_context: Any, target: Any, at: Any, source: Any, place: Any, added: Any) -> Any:
        """The same, with a number added to each."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = builder.load(_eight(context, builder, source, arguments[2], arguments[3]), align=4)
            one = builder.trunc(arguments[4], ir.IntType(32))
            many = ir.Constant(numbers.type, ir.Undefined)
            for lane in range(8):
                many = builder.insert_element(many, one, ir.IntType(32)(lane))
            total = builder.add(numbers, many)
            builder.store(total, _eight(context, builder, target, arguments[0], arguments[1]), align=4)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), emit

    @intrinsic
    def fill_eight(typing_context: Any, target: Any, at: Any, value: Any) -> Any:
        """Write a number, of the target's type, eight times from `target[at]` on."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(target.dtype)
            many = ir.Constant(ir.VectorType(element, 8), ir.Undefined)
            for lane in range(8):
                many = builder.insert_element(many, arguments[2], ir.IntType(32)(lane))
            data = context.make_array(target)(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), many.type.as_pointer())
            builder.store(many, place, align=target.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return types.void(target, types.int64, target.dtype), emit

    @intrinsic
    def count_reaching(typing_context: Any, source: Any, place: Any, least: Any) -> Any:
        """How many of the eight 32-bit numbers from `source[place]` on are not below a number."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = builder.load(_eight(context, builder, source, arguments[0], arguments[1]), align=4)
            one = builder.trunc(arguments[2], ir.IntType(32))
            many = ir.Constant(numbers.type, ir.Undefined)
            for lane in range(8):
                many = builder.insert_element(many, one, ir.IntType(32)(lane))
            bits = builder.bitcast(builder.icmp_signed(">=", numbers, many), ir.IntType(8))
            return builder.zext(builder.ctpop(bits), ir.IntType(64))

        return types.int64(source, types.int64, types.int64), emit
