"""Types with modifiers, such as `numeric(10,2)`: their names, and the values that they refuse."""

from __future__ import annotations

from dataclasses import replace

from logicalrep.values import targets
from logicalrep.values.column_type import ColumnType
from logicalrep.values.native_loaders import NativeLoader
from logicalrep.values.types import numeric, scalars
from logicalrep.values.types.numeric import Precision


def with_length(column: ColumnType, modifier: int) -> ColumnType:
    return replace(column, name=f"{column.name.replace('bpchar', 'character')}({modifier - 4})")


def with_seconds(column: ColumnType, modifier: int) -> ColumnType:
    kind, _, zone = column.name.partition(" ")
    return replace(column, name=f"{kind}({modifier}) {zone}")


_INTERVAL_FIELDS = {2: "month", 4: "year", 8: "day", 1024: "hour", 2048: "minute", 4096: "second"}
_FULL_RANGE, _FULL_PRECISION = 0x7FFF, 0xFFFF


def with_fields(column: ColumnType, modifier: int) -> ColumnType:
    fields, precision = modifier >> 16 & 0x7FFF, modifier & 0xFFFF
    name = column.name
    if fields != _FULL_RANGE:
        # From the largest field to the smallest; the bit for years is above the bit for months.
        names = [_INTERVAL_FIELDS[bit] for bit in (4, 2, 8, 1024, 2048, 4096) if fields & bit]
        name += f" {names[0]} to {names[-1]}" if len(names) > 1 else f" {names[0]}" if names else ""
    if precision != _FULL_PRECISION:
        name += f"({precision})"
    return replace(column, name=name)


def with_bits(column: ColumnType, modifier: int) -> ColumnType:
    return _with_bits(column, modifier, range(modifier, modifier + 1))


def with_most_bits(column: ColumnType, modifier: int) -> ColumnType:
    return _with_bits(column, modifier, range(modifier + 1))


def _with_bits(column: ColumnType, modifier: int, lengths: range) -> ColumnType:
    def checked(bits: str) -> str:
        if len(bits) not in lengths:
            raise ValueError(f"{len(bits)} bits")
        return bits

    return replace(
        column,
        name=f"{column.name.strip(chr(34))}({modifier})",
        from_text=lambda text: checked(scalars.bits_text(text)),
        from_binary=lambda value, encoding: checked(scalars.bits_binary(value, encoding)),
    )


def with_precision(column: ColumnType, modifier: int) -> ColumnType:
    precision = Precision.from_modifier(modifier)
    # No native loader checks the precision of a number that stays text.
    text = replace(column.arrow, native=NativeLoader.NONE)
    arrow = targets.decimal(precision) or text
    return replace(
        column,
        name=f"numeric({precision.precision},{precision.scale})",
        from_text=numeric.checked_text(precision),
        from_binary=numeric.checked_binary(precision),
        arrow=arrow,
        spark=arrow if arrow.spark else text,
    )
