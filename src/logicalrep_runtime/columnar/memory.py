"""How compiled kernels read bytes and write arrays: by address, in signed 64-bit arithmetic.

Indexing an array costs numba a branch for negative indices at each access, and it reads an integer byte by byte; and a
function that is given many arrays takes long to compile. Here an integer in network byte order is one load, what is
written to are addresses, and every integer is an int64: one of 64 unsigned bits is kept bit for bit. So it is for the
caller to check an offset before it is used, and the kernels do. With NUMBA_BOUNDSCHECK=1 everything that is read from a
batch is checked as well, and IndexError says that a kernel did not.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from logicalrep_runtime.columnar.kept import keep

Function = Callable[..., Any]

# What numba makes of a function has no type that says more.
ir: Any = importlib.import_module("llvmlite.ir")
numba: Any = importlib.import_module("numba")
types: Any = numba.types
_cgutils: Any = importlib.import_module("numba.core.cgutils")
_intrinsic: Any = importlib.import_module("numba.extending").intrinsic

# Kernels allocate nothing: to count the references to the arrays that they are given would be atomic instructions.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def intrinsic(function: Function) -> Any:
    """For a function that writes the instructions that a call of it becomes."""
    return _intrinsic(function)


def compiled(function: Function) -> Function:
    """For a function that is called from Python: compiled when it is first called, and kept on disk."""
    kernel = numba.njit(**_OPTIONS)(function)
    keep(kernel, function)
    return kernel  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """For a function that becomes a part of those that call it."""
    return numba.njit(forceinline=True, **_OPTIONS)(function)  # type: ignore[no-any-return]


_POINTER = ir.IntType(8).as_pointer()


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The address of an item of a one-dimensional, contiguous array, as a pointer to bytes."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _POINTER)


def _load(width: int, signed: bool) -> Any:
    """An intrinsic that reads an integer in network byte order from an array of bytes."""

    @intrinsic
    def load(typing_context: Any, data: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits = ir.IntType(8 * width)
            pointer = _address(context, builder, signature.args[0], arguments[0], arguments[1])
            value = builder.load(builder.bitcast(pointer, bits.as_pointer()), align=1)
            if width > 1:
                value = builder.bswap(value)
            if width == 8:
                return value
            return (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return load


def _pointer(builder: Any, address: Any, item: Any) -> Any:
    return builder.inttoptr(address, item.as_pointer())


def _integer(width: int) -> tuple[Any, Any]:
    """Intrinsics that write and read an item of an array of integers, given by its address."""
    bits = ir.IntType(8 * width)

    @intrinsic
    def write(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.gep(_pointer(builder, arguments[0], bits), [arguments[1]])
            builder.store(arguments[2] if width == 8 else builder.trunc(arguments[2], bits), pointer)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    @intrinsic
    def read(typing_context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(builder.gep(_pointer(builder, arguments[0], bits), [arguments[1]]))
            return value if width == 8 else builder.zext(value, ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return write, read


write1, read1 = _integer(1)
write2, read2 = _integer(2)
write4, read4 = _integer(4)
write8, read8 = _integer(8)


@intrinsic
def _copy(typing_context: Any, target: Any, to: Any, source: Any, start: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_pointer = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        source_pointer = _address(context, builder, signature.args[2], arguments[2], arguments[3])
        _cgutils.raw_memcpy(builder, target_pointer, source_pointer, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


def _copy_block(width: int) -> Any:
    """An intrinsic that copies so many bytes, which takes a processor one or two instructions."""

    @intrinsic
    def copy_block(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block = ir.VectorType(ir.IntType(8), width).as_pointer()
            target_pointer = _address(context, builder, signature.args[0], arguments[0], arguments[1])
            source_pointer = _address(context, builder, signature.args[2], arguments[2], arguments[3])
            value = builder.load(builder.bitcast(source_pointer, block), align=1)
            builder.store(value, builder.bitcast(target_pointer, block), align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    return copy_block


_copy16 = _copy_block(16)
_copy32 = _copy_block(32)


def checked(load: Any, width: int) -> Any:
    """An intrinsic that reads so many bytes of an array from an offset on, held to the array where all is checked."""
    if not numba.config.BOUNDSCHECK:
        return load

    @inlined
    def load_within(data: Any, offset: int) -> Any:
        if offset < 0 or offset + width > len(data):
            raise IndexError("a kernel reads outside of a message")
        return load(data, offset)

    return load_within


LANES = 32
"""How many bytes are looked at together."""


def load_lanes(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    """For intrinsics: the LANES bytes of an array from an offset on, as one vector."""
    pointer = _address(context, builder, array_type, array, offset)
    return builder.load(builder.bitcast(pointer, ir.VectorType(ir.IntType(8), LANES).as_pointer()), align=1)


def lane_bits(builder: Any, lanes: Any) -> Any:
    """For intrinsics: an integer with one bit for each lane, the first one's lowest."""
    return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(64))


uint8, int8 = checked(_load(1, False), 1), checked(_load(1, True), 1)
uint16, int16 = checked(_load(2, False), 2), checked(_load(2, True), 2)
uint32, int32 = checked(_load(4, False), 4), checked(_load(4, True), 4)
int64 = checked(_load(8, True), 8)

if numba.config.BOUNDSCHECK:

    @inlined
    def copy(target: Any, to: int, source: Any, start: int, length: int, limit: int) -> None:
        if start < 0 or length < 0 or to < 0 or start + length > len(source) or to + length > min(limit, len(target)):
            raise IndexError("a kernel copies outside of an array")
        for index in range(length):
            target[to + index] = source[start + index]

else:

    @inlined
    def copy(target: Any, to: int, source: Any, start: int, length: int, limit: int) -> None:
        """Copy bytes, short ones by blocks: what is copied beyond them, up to `limit`, the next writes over."""
        if length <= 16 and start + 16 <= len(source) and to + 16 <= limit:
            _copy16(target, to, source, start)
        elif length <= 32 and start + 32 <= len(source) and to + 32 <= limit:
            _copy32(target, to, source, start)
        else:
            _copy(target, to, source, start, length)


SLACK = LANES
"""How many bytes `copy_to` may write behind those that it copies."""


@intrinsic
def _copy_lanes(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = load_lanes(context, builder, signature.args[2], arguments[2], arguments[3])
        pointer = builder.gep(_pointer(builder, arguments[0], ir.IntType(8)), [arguments[1]])
        builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, source, types.int64), generate


@intrinsic
def _copy_to(typing_context: Any, target: Any, to: Any, source: Any, start: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.gep(_pointer(builder, arguments[0], ir.IntType(8)), [arguments[1]])
        source_pointer = _address(context, builder, signature.args[2], arguments[2], arguments[3])
        _cgutils.raw_memcpy(builder, pointer, source_pointer, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, source, types.int64, types.int64), generate


if numba.config.BOUNDSCHECK:

    @inlined
    def copy_to(target: int, to: int, source: Any, start: int, length: int) -> None:
        if start < 0 or length < 0 or start + length > len(source):
            raise IndexError("a kernel copies from outside of a message")
        _copy_to(target, to, source, start, length)

else:

    @inlined
    def copy_to(target: int, to: int, source: Any, start: int, length: int) -> None:
        """Copy bytes to an address, where SLACK more may be written behind them: short ones by a block."""
        if length <= SLACK and start + SLACK <= len(source):
            _copy_lanes(target, to, source, start)
        else:
            _copy_to(target, to, source, start, length)


uint64 = int64
"""The same bits: an LSN above 2^63 is negative until an array of uint64 views it."""


@inlined
def find_zero(data: Any, start: int, end: int) -> int:
    """Where the next zero byte is, from `start` to before `end`; -1 if there is none."""
    offset = start
    while offset < end:
        if uint8(data, offset) == 0:
            return offset
        offset += 1
    return -1
