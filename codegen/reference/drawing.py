"""Rows of a layout -> a picture: boxes under a ruler of bytes, on as many lines as the width needs.

An integer is as wide as its bytes, or as its name if longer. A box of variable length has a torn edge; text ends in the
cell of its zero byte; an optional box is dashed, with its condition in a bracket; a repeated box is a stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.model.layouts import REST, UNTIL_ZERO
from codegen.model.notation import Byten, Int, escaped
from codegen.reference.layout import BYTES, CONSTANT, PART, TEXT, Row

WIDE = 816.0
"""The width of a picture on a screen or a printed page, in pixels."""
NARROW = 360.0
"""The width of a picture on a phone, in pixels."""

_BYTE = 22.0
_GAP = 4.0
_PADDING = 4.5
_LINE_GAP = 14.0
_RULER = 22.0
_TICK, _START_TICK = 3.0, 6.0
_TOOTH = 5.0
_ZERO_CELL = 22.0
_STACK = 3.0
_LEAST_VARIABLE = 58.0
_LEAST_HEIGHT = 60.0
_BRACKET_GAP, _BRACKET, _BRACKET_LINE = 4.0, 5.0, 13.0

# The sizes of picture.css, and the widest character that a system's monospaced fonts have at size 1.
_SIZES = {"glyph": 17.0, "name": 11.5, "type": 10.0, "offset": 10.0, "label": 10.0}
_HEIGHTS = {"glyph": 21.0, "name": 14.0, "type": 12.5}
_CHARACTER = 0.62


@dataclass(frozen=True)
class Text:
    """A line of text with its anchor on the baseline; `style` is its class in picture.css."""

    x: float
    y: float
    style: str
    value: str


@dataclass(frozen=True)
class Box:
    """A field: its outline, background and texts."""

    kind: str
    conditional: bool
    outline: str
    behind: tuple[str, ...]
    zero_cell: str
    ruler: str
    offset: Text
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Bracket:
    """The text beneath fields with the same condition or first version."""

    outline: str
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Picture:
    """A layout in the form of SVG elements."""

    width: float
    height: float
    title: str
    description: str
    boxes: tuple[Box, ...]
    brackets: tuple[Bracket, ...]


@dataclass(frozen=True)
class _Sized:
    """A row with its lines of text and their width."""

    row: Row
    lines: tuple[tuple[str, str], ...]
    width: float

    @property
    def repeated(self) -> bool:
        return self.row.field.repeat is not None

    @property
    def torn(self) -> bool:
        return self.row.kind in (BYTES, PART, TEXT)

    @property
    def body(self) -> float:
        """The width without the zero byte's cell and the stack."""
        tail = _ZERO_CELL if self.row.kind == TEXT else 0.0
        return self.width - tail - (2 * _STACK if self.repeated else 0.0)

    @property
    def label(self) -> tuple[str, ...]:
        since = "" if self.row.since is None else f"since {self.row.since}"
        return tuple(text for text in (self.row.condition, since) if text)


def draw(title: str, rows: Sequence[Row], width: float = WIDE) -> Picture:
    """Draw rows with a maximum width."""
    sized = [_size(row) for row in rows]
    height = max([_LEAST_HEIGHT, *(sum(_HEIGHTS[style] for style, _ in item.lines) + 12 for item in sized)])
    boxes: list[Box] = []
    brackets: list[Bracket] = []
    top, right = 0.0, 0.0
    for line in _wrapped(sized, width):
        placed: list[tuple[_Sized, float]] = []
        x = 1.0
        for item in line:
            boxes.append(_box(item, x, top + _RULER, height))
            placed.append((item, x))
            x += item.width + _GAP
        right = max(right, x - _GAP)
        bottom = top + _RULER + height + (2 * _STACK if any(item.repeated for item in line) else 0.0)
        labels = [_bracket(group, bottom + _BRACKET_GAP) for group in _labelled(placed)]
        brackets += labels
        lines = max((len(label.texts) for label in labels), default=0)
        top = bottom + (_BRACKET_GAP + _BRACKET + _BRACKET_LINE * lines if lines else 0.0) + _LINE_GAP
    spoken = "; ".join(row.spoken for row in rows)
    return Picture(right + 1, top - _LINE_GAP + 4, title, f"{spoken}.", tuple(boxes), tuple(brackets))


def _text_width(style: str, text: str) -> float:
    return len(text) * _SIZES[style] * _CHARACTER


def _size(row: Row) -> _Sized:
    torn = row.kind in (TEXT, BYTES, PART)
    scale = _LEAST_VARIABLE if torn else _BYTE * row.field.width
    lines = _lines(row, scale - 2 * _PADDING)
    inner = max(_text_width(style, text) for style, text in lines) + 2 * _PADDING + (_TOOTH if torn else 0.0)
    body = max(scale, inner, _text_width("offset", row.offset.short) + _PADDING)
    body += (_ZERO_CELL if row.kind == TEXT else 0.0) + (2 * _STACK if row.field.repeat is not None else 0.0)
    sized = _Sized(row, lines, body)
    label = max((_text_width("label", text) for text in sized.label), default=0.0)
    return _Sized(row, lines, round(max(body, label), 1))


def _lines(row: Row, room: float) -> tuple[tuple[str, str], ...]:
    """Return the lines of a box from top to bottom, each with its style."""
    field = row.field
    lines: list[tuple[str, str]] = []
    if row.kind == CONSTANT:
        lines.append(
            ("glyph", "|".join(escaped(code) if isinstance(code, bytes) else str(code) for code in field.constants))
        )
    lines += (("name", text) for text in _name_lines(field.name, room))
    if isinstance(field.type, Int):
        lines.append(("type", field.type.base))
        if field.named_type is not None:
            lines.append(("type", field.named_type))
    else:
        is_constant = bool(field.constants)
        lines.append(("type", str(field.type).partition("(")[0] if is_constant else str(field.type)))
    if field.values and not field.any_character:
        lines.append(("type", "|".join(field.values)))
    if field.boolean:
        lines.append(("type", "0|1"))
    if field.repeat is not None:
        is_counted = field.repeat != UNTIL_ZERO and not field.ended_by
        lines.append(("type", f"\N{MULTIPLICATION SIGN} {field.repeat}" if is_counted else field.repeat))
    if isinstance(field.type, Byten):
        lines.append(("type", "all the rest" if field.size == REST else f"n = {field.size}"))
    return tuple(lines)


def _name_lines(name: str, room: float) -> tuple[str, ...]:
    """Break a long name at an underscore into two lines."""
    words = name.split("_")
    broken = [("_".join(words[:at]) + "_", "_".join(words[at:])) for at in range(1, len(words))]
    ways: list[tuple[str, ...]] = [(name,), *sorted(broken, key=lambda way: max(map(len, way)))]
    for way in ways:
        if max(_text_width("name", text) for text in way) <= room:
            return way
    return min(ways, key=lambda way: max(map(len, way)))


def _wrapped(sized: Iterable[_Sized], width: float) -> list[list[_Sized]]:
    lines: list[list[_Sized]] = []
    used = 0.0
    for item in sized:
        if not lines or used + _GAP + item.width > width - 2:
            lines.append([])
            used = -_GAP
        lines[-1].append(item)
        used += _GAP + item.width
    return lines


def _box(item: _Sized, x: float, y: float, height: float) -> Box:
    row = item.row
    content = sum(_HEIGHTS[style] for style, _ in item.lines)
    centre = x + (item.body - (_TOOTH if item.torn else 0.0)) / 2
    baseline = y + (height - content) / 2
    texts: list[Text] = []
    for style, text in item.lines:
        baseline += _HEIGHTS[style]
        texts.append(Text(centre, baseline - 3, style, text))
    zero_cell = ""
    if row.kind == TEXT:
        start = x + item.body
        zero_cell = _outline(start - _TOOTH + 3, y, _ZERO_CELL + _TOOTH - 3, height, torn_left=True)
        texts.append(Text(start + _ZERO_CELL / 2 + 1, y + height / 2 + 3.5, "type", "00"))
    behind = [_outline(x + shift, y + shift, item.body, height, torn_right=item.torn) for shift in (2 * _STACK, _STACK)]
    return Box(
        kind=row.kind,
        conditional=bool(row.condition),
        outline=_outline(x, y, item.body, height, torn_right=item.torn),
        behind=tuple(behind) if item.repeated else (),
        zero_cell=zero_cell,
        ruler=_ruler(item, x, y - 4),
        offset=Text(x, y - 4 - _START_TICK - 1, "offset", row.offset.short),
        texts=tuple(texts),
    )


def _outline(
    x: float, y: float, width: float, height: float, *, torn_left: bool = False, torn_right: bool = False
) -> str:
    """Return a rectangle; a torn side is a zigzag."""
    points = _side(x, y + height, y, _TOOTH) if torn_left else [(x, y + height), (x, y)]
    right = x + width
    points += _side(right, y, y + height, -_TOOTH) if torn_right else [(right, y), (right, y + height)]
    return _path(points) + "Z"


def _side(x: float, start: float, end: float, tooth: float) -> list[tuple[float, float]]:
    """Return a zigzag between two heights; begins and ends at x, and stays on one side of x."""
    teeth = 5
    step = (end - start) / (2 * teeth)
    return [(x + (tooth if index % 2 else 0.0), start + index * step) for index in range(2 * teeth + 1)]


def _ruler(item: _Sized, x: float, y: float) -> str:
    """Return a line above the box with a tick for each byte; no ticks for an unknown number."""
    width = item.width - (2 * _STACK if item.repeated else 0.0)
    path = _path([(x, y - _START_TICK), (x, y), (x + width, y)])
    count = item.row.field.width
    for index in range(1, count):
        path += _path([(x + width * index / count, y - _TICK), (x + width * index / count, y)])
    return path


def _labelled(placed: list[tuple[_Sized, float]]) -> list[list[tuple[_Sized, float]]]:
    """Return the runs of boxes on a line that share a bracket."""
    runs: list[list[tuple[_Sized, float]]] = []
    previous: tuple[str, tuple[str, ...]] = ("", ())
    for item, x in placed:
        key = (item.row.group, item.label)
        if item.label:
            if key != previous:
                runs.append([])
            runs[-1].append((item, x))
        previous = key
    return runs


def _bracket(run: list[tuple[_Sized, float]], y: float) -> Bracket:
    last, last_x = run[-1]
    start, right = run[0][1], last_x + last.width
    texts = last.label
    if len(texts) > 1 and _text_width("label", " · ".join(texts)) <= right - start:
        texts = (" · ".join(texts),)
    outline = _path([(start + 0.5, y), (start + 0.5, y + _BRACKET), (right - 0.5, y + _BRACKET), (right - 0.5, y)])
    baseline = y + _BRACKET - 1
    return Bracket(
        outline,
        tuple(
            Text((start + right) / 2, baseline + _BRACKET_LINE * number, "label", text)
            for number, text in enumerate(texts, start=1)
        ),
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def number(value: float) -> str:
    """Return a coordinate for SVG: one decimal, no trailing zeros."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
