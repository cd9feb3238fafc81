"""The memory access of compiled kernels: by address, in signed 64-bit arithmetic.

Indexing an array costs numba a branch for negative indices at each access, and it reads an integer byte by byte; a
function with many array arguments takes long to compile. Here an integer in network byte order is one load, outputs are
addresses, and every integer is an int64: an unsigned 64-bit integer keeps its bits. The caller must therefore check an
offset before using it, as the kernels do. With NUMBA_BOUNDSCHECK=1 everything read from a batch is checked as well, and
a missing check in a kernel raises IndexError.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from logicalrep_runtime.columnar.kept import keep

Function = Callable[..., Any]

# numba's results have no more precise types.
ir: Any = importlib.import_module("llvmlite.ir")
numba: Any = importlib.import_module("numba")
types: Any = numba.types
_cgutils: Any = importlib.import_module("numba.core.cgutils")
_intrinsic: Any = importlib.import_module("numba.extending").intrinsic

# Kernels allocate nothing, so counting references to their array arguments, an atomic instruction, is left out.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def intrinsic(function: Function) -> Any:
    """Declare a function that writes the instructions that a call of it becomes."""
    return _intrinsic(function)


def compiled(function: Function) -> Function:
    """Declare a function that is called from Python: it is compiled at its first call and kept on disk."""
    kernel = numba.njit(**_OPTIONS)(function)
    keep(kernel, function)
    return kernel  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Declare a function that is inlined into its callers."""
    return numba.njit(forceinline=True, **_OPTIONS)(function)  # type: ignore[no-any-return]


_POINTER = ir.IntType(8).as_pointer()


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of an item of a one-dimensional, contiguous array, as a pointer to bytes."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _POINTER)


def _load(width: int, signed: bool) -> Any:
    """Make an intrinsic that reads an integer in network byte order from an array of bytes."""

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
    """Make intrinsics that write and read an item of an array of integers, given by its address."""
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
    """Make an intrinsic that copies `width` bytes, which takes a processor one or two instructions."""

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
    """Make an intrinsic that reads `width` bytes of an array, within its bounds if bounds checking is on."""
    if not numba.config.BOUNDSCHECK:
        return load

    @inlined
    def load_within(data: Any, offset: int) -> Any:
        if offset < 0 or offset + width > len(data):
            raise IndexError("a kernel reads outside of a message")
        return load(data, offset)

    return load_within


LANES = 32
"""The number of bytes that are checked together."""


def load_lanes(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    """Load the LANES bytes of an array from an offset on as one vector, within an intrinsic."""
    pointer = _address(context, builder, array_type, array, offset)
    return builder.load(builder.bitcast(pointer, ir.VectorType(ir.IntType(8), LANES).as_pointer()), align=1)


def lane_bits(builder: Any, lanes: Any) -> Any:
    """Return an integer with one bit for each lane, the first lane's lowest, within an intrinsic."""
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
        """Copy bytes, short ones in blocks. The next copy overwrites the excess, which stays below `limit`."""
        if length <= 16 and start + 16 <= len(source) and to + 16 <= limit:
            _copy16(target, to, source, start)
        elif length <= 32 and start + 32 <= len(source) and to + 32 <= limit:
            _copy32(target, to, source, start)
        else:
            _copy(target, to, source, start, length)


SLACK = LANES
"""The number of bytes that `copy_to` may write behind those that it copies."""


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
        """Copy bytes to an address, short ones in blocks: SLACK more bytes may be written behind them."""
        if length <= SLACK and start + SLACK <= len(source):
            _copy_lanes(target, to, source, start)
        else:
            _copy_to(target, to, source, start, length)


uint64 = int64
"""Read an unsigned integer with the same bits: an LSN from 2^63 on is negative until an array of uint64 views it."""


@inlined
def find_zero(data: Any, start: int, end: int) -> int:
    """Return the place of the next zero byte from `start` to before `end`; -1 if there is none."""
    offset = start
    while offset < end:
        if uint8(data, offset) == 0:
            return offset
        offset += 1
    return -1
