"""The memory access of compiled kernels: items of contiguous arrays, in signed 64-bit arithmetic.

Indexing an array costs numba a branch for negative indices at each access, and it reads an integer in network byte
order byte by byte. Here both are one load, and every integer is an int64: an unsigned 64-bit integer keeps its bits.
The caller must therefore check an index before using it, as the kernels do. With NUMBA_BOUNDSCHECK=1 every read and
every write is checked as well, and a missing check in a kernel raises IndexError.

A kernel that has many arrays takes them as a NamedTuple; arrays of one type each, so that it is compiled once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from logicalrep_runtime.columnar.kernel_cache import cache_kernel
from logicalrep_runtime.columnar.located import Bytes, Ints

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

# numba's results have no more precise types.
ir: Any = importlib.import_module("llvmlite.ir")
numba: Any = importlib.import_module("numba")
types: Any = numba.types
_cgutils: Any = importlib.import_module("numba.core.cgutils")
_intrinsic: Any = importlib.import_module("numba.extending").intrinsic

# Kernels allocate nothing, so counting references to their array arguments, an atomic instruction, is left out.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def intrinsic(function: Function) -> Any:
    return _intrinsic(function)


def compiled(function: F) -> F:
    """Declare a function for Python callers: compiled at its first call and stored on disk."""
    kernel = numba.njit(**_OPTIONS)(function)
    cache_kernel(kernel, function)
    return kernel  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Declare a function that is inlined into its callers. Python cannot call it, which saves compile time."""
    return numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)  # type: ignore[no-any-return]


def _item(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _load(width: int, signed: bool) -> Any:
    @intrinsic
    def load(typing_context: Any, data: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits = ir.IntType(8 * width)
            pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
            value = builder.load(builder.bitcast(pointer, bits.as_pointer()), align=1)
            if width > 1:
                value = builder.bswap(value)
            if width == 8:
                return value
            return (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return load


@intrinsic
def _read(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_item(context, builder, array, *arguments))
        extend = builder.sext if array.dtype.signed else builder.zext
        return value if array.dtype.bitwidth == 64 else extend(value, ir.IntType(64))

    return types.int64(array, types.int64), generate


@intrinsic
def _write(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    is_float = isinstance(array.dtype, types.Float)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, value = _item(context, builder, array, *arguments[:2]), arguments[2]
        if not is_float and array.dtype.bitwidth < 64:
            value = builder.trunc(value, pointer.type.pointee)
        builder.store(value, pointer)
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype if is_float else types.int64), generate


if numba.config.BOUNDSCHECK:

    @inlined
    def read(array: Ints, index: int) -> int:
        if index < 0 or index >= len(array):
            raise IndexError("a kernel reads outside of an array")
        return _read(array, index)  # type: ignore[no-any-return]

    @inlined
    def write(array: Ints, index: int, value: Any) -> None:
        if index < 0 or index >= len(array):
            raise IndexError("a kernel writes outside of an array")
        _write(array, index, value)

else:
    read, write = _read, _write
    """Read an item of an array of integers; write an item of an array of numbers."""


@intrinsic
def _copy(typing_context: Any, target: Any, to: Any, source: Any, start: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        source_pointer = _item(context, builder, signature.args[2], arguments[2], arguments[3])
        _cgutils.raw_memcpy(builder, target_pointer, source_pointer, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def _copy_lanes(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = load_lanes(context, builder, signature.args[2], arguments[2], arguments[3])
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


def checked(load: Function, width: int) -> Function:
    """Make an intrinsic that reads `width` bytes of an array, within its bounds if bounds checking is on."""
    if not numba.config.BOUNDSCHECK:
        return load

    @inlined
    def load_within(data: Bytes, offset: int) -> Any:
        if offset < 0 or offset + width > len(data):
            raise IndexError("a kernel reads outside of a message")
        return load(data, offset)

    return load_within


LANES = 32


def load_lanes(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    pointer = _item(context, builder, array_type, array, offset)
    return builder.load(builder.bitcast(pointer, ir.VectorType(ir.IntType(8), LANES).as_pointer()), align=1)


def lane_bits(builder: Any, lanes: Any) -> Any:
    return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(64))


uint8, int8 = checked(_load(1, False), 1), checked(_load(1, True), 1)
uint16, int16 = checked(_load(2, False), 2), checked(_load(2, True), 2)
uint32, int32 = checked(_load(4, False), 4), checked(_load(4, True), 4)
int64 = checked(_load(8, True), 8)

if numba.config.BOUNDSCHECK:

    @inlined
    def copy(target: Bytes, to: int, source: Bytes, start: int, length: int, limit: int) -> None:
        if start < 0 or length < 0 or to < 0 or start + length > len(source) or to + length > min(limit, len(target)):
            raise IndexError("a kernel copies outside of an array")
        for index in range(length):
            target[to + index] = source[start + index]

else:

    @inlined
    def copy(target: Bytes, to: int, source: Bytes, start: int, length: int, limit: int) -> None:
        """Copy bytes, short ones in a block. The next copy overwrites the excess, which stays below `limit`."""
        if length <= LANES and start + LANES <= len(source) and to + LANES <= limit:
            _copy_lanes(target, to, source, start)
        else:
            _copy(target, to, source, start, length)


@intrinsic
def _clear(typing_context: Any, array: Any, start: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _cgutils.memset(builder, _item(context, builder, array, *arguments[:2]), arguments[2], 0)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


if numba.config.BOUNDSCHECK:

    @inlined
    def clear(array: Ints, start: int, size: int) -> None:
        if start < 0 or size < 0 or start + size > len(array):
            raise IndexError("a kernel clears outside of an array")
        _clear(array, start, size)

else:
    clear = _clear
    """Set bytes to 0."""


@intrinsic
def count_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@inlined
def has_bit(bits: Bytes, index: int) -> bool:
    return read(bits, index >> 3) >> (index & 7) & 1 == 1


uint64 = int64
"""Read an unsigned integer with the same bits: an LSN from 2^63 on is negative until an array of uint64 views it."""


@inlined
def find_zero(data: Bytes, start: int, end: int) -> int:
    """Return the offset of the next zero byte in `start:end`; -1 if there is none."""
    offset = start
    while offset < end:
        if uint8(data, offset) == 0:
            return offset
        offset += 1
    return -1
