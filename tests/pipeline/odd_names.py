"""Names and values that paths must escape."""

from __future__ import annotations

ODD_VALUES = ["New York", "ü", "a/b", "a:b", "%", "+", "#", " ", "?", "a%20b", "x=y", "null", "\n", "é&*'\\"]
"""Values of a partition that paths escape."""


ODD_NAMES = [
    'Odd.Table "q"',
    "a#b",
    "a?b",
    "50%",
    "ä ö",
    "a[1]*{}|^~<>`",
    '"; DROP TABLE x; --',
    "'",
    "a&b+c=d",
    "a:b@c",
    "a/b",
    "a%2Fb",
    "a~2Fb",
    "..",
    ".",
    "x\ny",
    "C:\\x",
    "\x7f\x01",
    "_delta_log",
    "%%41",
    "x" * 63,
    "ü" * 31,
]
