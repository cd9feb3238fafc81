"""The geometric types, as named tuples of double-precision numbers."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from logicalrep.values.types.binary import BinaryReader, fixed
from logicalrep.values.types.scalars import float8_text, format_float8

__all__ = ["Box", "Circle", "Line", "LineSegment", "Path", "Point", "Polygon"]


class Point(NamedTuple):
    """A point of the plane."""

    x: float
    y: float


class Line(NamedTuple):
    """The points where `a*x + b*y + c` is 0."""

    a: float
    b: float
    c: float


class LineSegment(NamedTuple):
    """The two ends of a line segment."""

    first: Point
    second: Point


class Box(NamedTuple):
    """Two corners: `high` has the greater x and y."""

    high: Point
    low: Point


class Path(NamedTuple):
    """Points in order; `closed` says whether the last point is joined to the first."""

    closed: bool
    points: tuple[Point, ...]


class Polygon(NamedTuple):
    """The corners of a polygon, in order."""

    points: tuple[Point, ...]


class Circle(NamedTuple):
    """A circle by its center and radius."""

    center: Point
    radius: float


_NUMBER = "[-+.0-9A-Za-z]{1,40}"
_POINT = rf"\({_NUMBER},{_NUMBER}\)"
_POINTS = rf"{_POINT}(?:,{_POINT})*"
_NUMBERS = re.compile(_NUMBER)

Loader = Callable[[str], object]


def _numbers(form: re.Pattern[str], text: str) -> list[float]:
    if not form.fullmatch(text):
        raise ValueError("not the text of this type")
    return [float8_text(number) for number in _NUMBERS.findall(text)]


def _points(numbers: list[float]) -> tuple[Point, ...]:
    return tuple(map(Point, numbers[::2], numbers[1::2]))


_POINT_FORM = re.compile(_POINT)
_LINE_FORM = re.compile(rf"\{{{_NUMBER},{_NUMBER},{_NUMBER}\}}")
_SEGMENT_FORM = re.compile(rf"\[{_POINT},{_POINT}\]")
_BOX_FORM = re.compile(rf"{_POINT},{_POINT}")
_PATH_FORM = re.compile(rf"\[{_POINTS}\]|\({_POINTS}\)")
_POLYGON_FORM = re.compile(rf"\({_POINTS}\)")
_CIRCLE_FORM = re.compile(rf"<{_POINT},{_NUMBER}>")


def point_text(text: str) -> Point:
    return Point(*_numbers(_POINT_FORM, text))


def line_text(text: str) -> Line:
    return Line(*_numbers(_LINE_FORM, text))


def segment_text(text: str) -> LineSegment:
    return LineSegment(*_points(_numbers(_SEGMENT_FORM, text)))


def box_text(text: str) -> Box:
    return Box(*_points(_numbers(_BOX_FORM, text)))


def path_text(text: str) -> Path:
    return Path(text.startswith("("), _points(_numbers(_PATH_FORM, text)))


def polygon_text(text: str) -> Polygon:
    return Polygon(_points(_numbers(_POLYGON_FORM, text)))


def circle_text(text: str) -> Circle:
    x, y, radius = _numbers(_CIRCLE_FORM, text)
    return Circle(Point(x, y), radius)


point_binary = fixed("2d", Point)
line_binary = fixed("3d", Line)
segment_binary = fixed("4d", lambda a, b, c, d: LineSegment(Point(a, b), Point(c, d)))
box_binary = fixed("4d", lambda a, b, c, d: Box(Point(a, b), Point(c, d)))
circle_binary = fixed("3d", lambda x, y, radius: Circle(Point(x, y), radius))


def _points_binary(reader: BinaryReader) -> tuple[Point, ...]:
    count = reader.int32()
    if count < 1 or reader.remaining != 16 * count:
        raise ValueError(f"{count} points in {reader.remaining} bytes")
    return tuple(Point(x, y) for x, y in struct.iter_unpack("!2d", reader.take(reader.remaining)))


def path_binary(value: bytes, encoding: str) -> Path:
    reader = BinaryReader(value)
    closed = reader.uint8()
    if closed > 1:
        raise ValueError(f"the flag for a closed path is {closed}")
    return Path(bool(closed), _points_binary(reader))


def polygon_binary(value: bytes, encoding: str) -> Polygon:
    return Polygon(_points_binary(BinaryReader(value)))


def format_point(value: Point) -> str:
    return f"({format_float8(value.x)},{format_float8(value.y)})"


def _format_points(points: tuple[Point, ...]) -> str:
    return ",".join(map(format_point, points))


def format_line(value: Line) -> str:
    return f"{{{','.join(map(format_float8, value))}}}"


def format_segment(value: LineSegment) -> str:
    return f"[{_format_points(value)}]"


def format_box(value: Box) -> str:
    return _format_points(value)


def format_path(value: Path) -> str:
    points = _format_points(value.points)
    return f"({points})" if value.closed else f"[{points}]"


def format_polygon(value: Polygon) -> str:
    return f"({_format_points(value.points)})"


def format_circle(value: Circle) -> str:
    return f"<{format_point(value.center)},{format_float8(value.radius)}>"
