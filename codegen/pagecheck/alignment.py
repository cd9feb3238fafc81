"""Alignment of a page's rows with the spec's, when rows are missing, added or altered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Left = TypeVar("Left")
Right = TypeVar("Right")

_NEVER = float("inf")


def align(
    left_items: Sequence[Left],
    right: Sequence[Right],
    cost: Callable[[Left, Right], float | None],
    *,
    cost_of_left: Callable[[Left], float],
    cost_of_right: Callable[[Right], float],
    head_of_right_is_free: bool = False,
    tail_of_right_is_free: bool = False,
) -> tuple[float, list[tuple[int | None, int | None]]]:
    """Return the cheapest pairing of two sequences in order, as pairs of indexes; None for an unpaired element.

    A cost of None means that two elements can never be a pair.
    """
    width = len(right) + 1
    rows = [[0.0] * width for _ in range(len(left_items) + 1)]
    for j in range(1, width):
        rows[0][j] = 0.0 if head_of_right_is_free else rows[0][j - 1] + cost_of_right(right[j - 1])
    for i, item in enumerate(left_items, start=1):
        skip = cost_of_left(item)
        rows[i][0] = rows[i - 1][0] + skip
        for j in range(1, width):
            pair = cost(item, right[j - 1])
            rows[i][j] = min(
                rows[i - 1][j - 1] + (_NEVER if pair is None else pair),
                rows[i - 1][j] + skip,
                rows[i][j - 1] + cost_of_right(right[j - 1]),
            )
    j = len(right)
    if tail_of_right_is_free:
        j = min(range(width), key=lambda index: (rows[len(left_items)][index], index))
    total = rows[len(left_items)][j]
    pairs: list[tuple[int | None, int | None]] = []
    i = len(left_items)
    while i or j:
        if not i and head_of_right_is_free:
            break
        # Of equal costs, prefer missing rows at the end: a table that ends early, not a gap.
        if j and _same(rows[i][j], rows[i][j - 1] + cost_of_right(right[j - 1])):
            j -= 1
            pairs.append((None, j))
            continue
        pair = cost(left_items[i - 1], right[j - 1]) if i and j else None
        if pair is not None and _same(rows[i][j], rows[i - 1][j - 1] + pair):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        else:
            i -= 1
            pairs.append((i, None))
    return total, pairs[::-1]


def _same(cost: float, other: float) -> bool:
    return abs(cost - other) < 1e-9
