"""Offsets and pictures of layouts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.model.layouts import Field, Message, Part
from codegen.model.model import Protocol
from codegen.model.notation import Byte1, Byten, Int, PartName, String
from codegen.model.places import Place
from codegen.reference.drawing import NARROW, WIDE, Picture, draw
from codegen.reference.layout import rows

PLACE = Place(Path("spec.yaml"), 1)


def layout_of(protocol: Protocol, name: str) -> Message | Part:
    layouts: list[Message | Part] = [*protocol.messages, *protocol.parts]
    return next(layout for layout in layouts if layout.name == name)


def offsets(protocol: Protocol, name: str) -> list[str]:
    return [row.offset.short for row in rows(protocol, layout_of(protocol, name).fields)]


def test_fixed_offsets_count_from_the_tag(messages: Protocol) -> None:
    assert offsets(messages, "Commit") == ["0", "1", "2", "10", "18"]


def test_what_follows_a_conditional_field_has_two_offsets(messages: Protocol) -> None:
    assert offsets(messages, "Truncate") == ["0", "1", "1/5", "5/9", "6/10"]


def test_fields_under_one_condition_come_and_go_together(messages: Protocol) -> None:
    assert offsets(messages, "Stream Abort") == ["0", "1", "5", "9", "17"]


def test_offsets_start_again_after_a_field_of_variable_length(messages: Protocol) -> None:
    assert offsets(messages, "Update") == ["0", "1", "1/5", "5/9", "6/10", "+0", "+1"]
    assert offsets(messages, "Relation") == ["0", "1", "1/5", "5/9", "+0", "+0", "+1", "+3"]


def test_many_possible_offsets_are_a_range(messages: Protocol) -> None:
    facts = ["streaming", "parallel", "two_phase"]
    fields = [Field(f"field_{fact}", Int("Int32"), PLACE, when=fact) for fact in facts]
    *_, last = rows(messages, [*fields, Field("last", Int("Int8"), PLACE)])
    assert last.offset.choices == (0, 4, 8, 12)
    assert last.offset.short == "0…12"
    assert last.offset.long == "0…12"


def test_condition_and_version_are_reported(messages: Protocol) -> None:
    abort = rows(messages, layout_of(messages, "Stream Abort").fields, since=2)
    assert [(row.condition, row.since) for row in abort] == [
        ("", None),
        ("", None),
        ("", None),
        ("if parallel", 4),
        ("if parallel", 4),
    ]
    update = rows(messages, layout_of(messages, "Update").fields)
    assert [row.condition for row in update] == ["", "if streaming", "", "optional", "optional", "", ""]


def test_the_description_says_what_the_picture_shows(messages: Protocol) -> None:
    picture = draw("Layout of Update", rows(messages, layout_of(messages, "Update").fields))
    assert picture.description == (
        "tag, Byte1('U'), 1 byte, at byte 0; "
        "xid, Int32 (TransactionId), 4 bytes, at byte 1, if streaming; "
        "relation_id, Int32 (Oid), 4 bytes, at byte 1 or 5; "
        "old_kind, Byte1('K') | Byte1('O'), 1 byte, at byte 5 or 9, optional; "
        "old, TupleData, of variable length, at byte 6 or 10, optional; "
        "new_kind, Byte1('N'), 1 byte, after the previous field; "
        "new, TupleData, of variable length, after the previous field."
    )


def test_shapes_distinguish_kinds(messages: Protocol) -> None:
    fields = [
        Field("tag", Byte1(("X",)), PLACE),
        Field("count", Int("Int16"), PLACE),
        Field("name", String(), PLACE),
        Field("content", Byten(), PLACE, size="count"),
        Field("row", PartName("TupleData"), PLACE),
        Field("ids", Int("Int32"), PLACE, repeat="count"),
    ]
    boxes = draw("", rows(messages, fields)).boxes
    assert [box.kind for box in boxes] == ["constant", "integer", "text", "bytes", "part", "integer"]
    assert [box.outline.count("L") > 4 for box in boxes] == [False, False, True, True, True, False], "torn"
    assert [bool(box.zero_cell) for box in boxes] == [False, False, True, False, False, False]
    assert [len(box.behind) for box in boxes] == [0, 0, 0, 0, 0, 2]


def test_a_ruler_has_a_tick_for_each_byte(messages: Protocol) -> None:
    (box,) = draw("", rows(messages, [Field("number", Int("Int64"), PLACE)])).boxes
    assert box.ruler.count("M") == 8


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_layout_fits_its_width(protocols: tuple[Protocol, ...], width: float) -> None:
    for protocol in protocols:
        layouts: list[Message | Part] = [*protocol.messages, *protocol.parts]
        for layout in layouts:
            picture = draw(layout.name, rows(protocol, layout.fields), width)
            assert picture.width <= width, layout.name
            assert_inside(picture)


def test_long_names_widen_their_boxes(messages: Protocol) -> None:
    fields = [
        Field("tag", Byte1(("X",)), PLACE),
        Field("a_field_whose_name_goes_on_for_long", Int("Int8"), PLACE, when="streaming", since=2),
        Field("unbreakablenameofsomelength", Int("Int16"), PLACE),
        Field("items", Int("Int32"), PLACE, repeat="unbreakablenameofsomelength"),
    ]
    assert_inside(draw("", rows(messages, fields), NARROW))


def assert_inside(picture: Picture) -> None:
    """No text is wider than its box, were each character as wide as monospaced fonts have them."""
    sizes = {"glyph": 17.0, "name": 11.5, "type": 10.0, "offset": 10.0, "label": 10.0}
    for box in picture.boxes:
        xs = [float(x) for x, _ in re.findall(r"([\d.]+) ([\d.]+)", box.outline)]
        for text in box.texts:
            if text.value == "00":
                continue
            half = len(text.value) * sizes[text.style] * 0.62 / 2
            assert min(xs) <= text.x - half, text
            assert text.x + half <= max(xs), text
        assert box.offset.x + len(box.offset.value) * 6.2 <= max(xs)
