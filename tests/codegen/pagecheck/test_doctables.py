"""Pages as rows: whole pages and fragments, in the markup of every release, and what is no page."""

from __future__ import annotations

import contextlib
import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.model.versions import view
from codegen.pagecheck.expected import layouts
from codegen.pagecheck.page import Message, Page, Row
from codegen.pagecheck.reading import DocPageError, parse_page, read_page
from tests.codegen.pagecheck.pages import (
    DOCBOOK,
    FRAGMENTS,
    HTML,
    LOGICALREP,
    PAGE_18,
    REPLICATION_PAGE_15,
    SGML,
    STYLES,
    WALSENDER,
    Style,
    draw,
)

SMALL_PAGE = """\
<sect1 id="formats">
<title>Formats</title>
<variablelist>
<varlistentry xml:id="formats-Greeting">
<term>Greeting (B)</term>
<listitem>
<para>What a server says first.</para>
<variablelist>
<varlistentry>
<term>
  Byte1('G')
</term>
<listitem><para>The tag.</para></listitem>
</varlistentry>
<varlistentry>
<term>Int8</term>
<listitem><para>Flags (must be 0).</para></listitem>
</varlistentry>
<varlistentry>
<term>Byte<replaceable>n</replaceable></term>
<listitem>
<para>The words &mdash; &lt;any&gt;
 (only present for streamed transactions). They
 are available since protocol version 3.</para>
</listitem>
</varlistentry>
</variablelist>
</listitem>
</varlistentry>
</variablelist>
</sect1>
"""


def facts(row: Row) -> tuple[str | None, int | None, str | None, str | None]:
    return row.type, row.since, row.condition.kind if row.condition else None, row.repeated_for


def message(page: Page, name: str) -> Message:
    return next(entry for entry in page.messages if entry.name == name)


def shape(page: Page) -> list[tuple[str | None, list[str | None]]]:
    """The names of the messages and the types of their rows."""
    return [(entry.name, [row.type for row in entry.rows]) for entry in page.messages]


# -- whole pages -------------------------------------------------------------------------------------------------------


def test_a_page_becomes_messages_and_rows_with_their_lines() -> None:
    page = parse_page(SMALL_PAGE)
    (greeting,) = page.messages
    assert (greeting.name, greeting.direction, greeting.anchor, greeting.line) == (
        "Greeting", "B", "formats-Greeting", 5,
    )  # fmt: skip
    assert (greeting.group.section, greeting.group.section_title) == ("formats", "Formats")
    assert [remark.text for remark in greeting.remarks] == []
    assert [(row.line, row.type, row.fixed_value) for row in greeting.rows] == [
        (11, "Byte1('G')", None),
        (16, "Int8", "0"),
        (20, "Byten", None),
    ]
    assert greeting.rows[2].description == (
        "The words \N{EM DASH} <any> (only present for streamed transactions). "
        "They are available since protocol version 3."
    )
    assert facts(greeting.rows[2]) == ("Byten", 3, "streamed", None)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_every_markup_gives_the_same_rows(style: Style) -> None:
    page = parse_page(draw(LOGICALREP, 4, style))
    expected = layouts(view(LOGICALREP, 4))
    assert [entry.name for entry in page.messages] == [layout.name for layout in expected]
    for printed_message, layout in zip(page.messages, expected, strict=True):
        rows = [row for row in layout.rows if row.printed_under is None]
        types = [row.plain_type if style.old else row.type for row in rows]
        printed = [
            row.type if row.fixed_value is None else f"{row.type}({row.fixed_value})" for row in printed_message.rows
        ]
        assert printed == types
        assert [facts(row)[1:3] for row in printed_message.rows] == [(row.since, row.condition) for row in rows]
        assert [row.repeated_for is None for row in printed_message.rows] == [row.repeated_for is None for row in rows]
        assert (printed_message.head_missing, printed_message.tail_missing) == (False, False)
    assert [entry.group.since for entry in page.messages] == [
        layout.since if layout.since > 1 else None for layout in expected
    ]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_lines_point_to_the_types(style: Style) -> None:
    text = draw(LOGICALREP, 4, style)
    lines = text.split("\n")
    for row in (row for entry in parse_page(text).messages for row in entry.rows):
        plain = re.sub(r"<[^>]*>", "", lines[row.line - 1])
        assert row.type is not None
        assert row.type in plain


def test_tables_within_a_message_know_what_introduces_them() -> None:
    page = parse_page(draw(LOGICALREP, 4, DOCBOOK))
    relation, cells = message(page, "Relation"), message(page, "TupleData")
    assert [(block.kind, block.repeated_for) for block in relation.blocks] == [("fields", None), ("each", "column")]
    assert [(block.kind, block.repeated_for, len(block.rows)) for block in cells.blocks] == [
        ("fields", None, 1),
        ("one of", "published column", 1),
        ("or", None, 1),
        ("or", None, 1),
        ("or", None, 3),
    ]


def test_the_page_of_18() -> None:
    page = read_page(PAGE_18)
    assert len(page.messages) == 20
    assert sum(len(entry.rows) for entry in page.messages) == 116
    assert [(entry.name, entry.line, len(entry.rows)) for entry in page.messages][:5] == [
        ("Begin", 9, 4),
        ("Message", 18, 7),
        ("Commit", 34, 5),
        ("Origin", 45, 3),
        ("Relation", 53, 11),
    ]
    update = message(page, "Update")
    assert [(row.line, *facts(row)) for row in update.rows] == [
        (104, "Byte1('U')", None, None, None),
        (106, "Int32 (TransactionId)", 2, "streamed", None),
        (109, "Int32 (Oid)", None, None, None),
        (112, "Byte1('K')", None, "optional", None),
        (117, "Byte1('O')", None, "optional", None),
        (121, "TupleData", None, "previous", None),
        (125, "Byte1('N')", None, None, None),
        (127, "TupleData", None, None, None),
    ]
    assert [remark.choice for remark in update.remarks if remark.choice] != []
    assert facts(message(page, "Truncate").rows[-1]) == ("Int32 (Oid)", None, None, "relation")
    assert [facts(row) for row in message(page, "Stream Abort").rows[3:]] == [
        ("Int64 (XLogRecPtr)", 4, "parallel", None),
        ("Int64 (TimestampTz)", 4, "parallel", None),
    ]
    groups = list(dict.fromkeys(entry.group for entry in page.messages))
    assert [(group.line, group.since, len(group.names)) for group in groups] == [
        (9, None, 0),
        (168, 2, 4),
        (207, 3, 5),
        (286, None, 0),
    ]


def test_the_replication_page_of_15() -> None:
    page = read_page(REPLICATION_PAGE_15)
    assert [
        (entry.name, entry.direction, entry.line, [row.type for row in entry.rows]) for entry in page.messages[:4]
    ] == [
        ("XLogData", "B", 199, ["Byte1('w')", "Int64", "Int64", "Int64", "Byten"]),
        ("Primary keepalive message", "B", 216, ["Byte1('k')", "Int64", "Int64", "Byte1"]),
        ("Standby status update", "F", 230, ["Byte1('r')", "Int64", "Int64", "Int64", "Int64", "Byte1"]),
        ("Hot standby feedback message", "F", 247, ["Byte1('h')", "Int64", "Int32", "Int32", "Int32", "Int32"]),
    ]
    assert [entry.name for entry in page.messages[4:]] == [
        "new archive", "manifest", "archive or manifest data", "progress report",
    ]  # fmt: skip


# -- fragments ---------------------------------------------------------------------------------------------------------


def test_the_fragments() -> None:
    fragments = {}
    for path in FRAGMENTS:
        try:
            page = read_page(path)
        except DocPageError:
            continue
        fragments[page.messages[-1].name] = page
    assert sorted(filter(None, fragments)) == ["Message", "Stream Commit", "TupleData"]
    assert [(entry.name, len(entry.rows)) for entry in fragments["Message"].messages] == [("Begin", 4), ("Message", 7)]
    assert fragments["Message"].messages[-1].tail_missing
    assert fragments["Message"].messages[1].rows[-1].tail_missing
    assert shape(fragments["Stream Commit"]) == [
        (None, [None, "Byte1('O')", "TupleData"]),
        ("Truncate", ["Byte1('T')", "Int32 (TransactionId)", "Int32", "Int8", "Int32 (Oid)"]),
        ("Stream Start", ["Byte1('S')", "Int32 (TransactionId)", "Int8"]),
        ("Stream Stop", ["Byte1('E')"]),
        ("Stream Commit", ["Byte1('c')"]),
    ]
    assert [(entry.head_missing, entry.tail_missing) for entry in fragments["Stream Commit"].messages] == [
        (True, False),
        (False, False),
        (False, False),
        (False, False),
        (False, True),
    ]
    assert shape(fragments["TupleData"])[0] == (
        None,
        [None, "Int64 (XLogRecPtr)", "Int64 (XLogRecPtr)", "Int64 (TimestampTz)", "Int64 (TimestampTz)",
         "Int32 (TransactionId)", "String"],
    )  # fmt: skip
    assert [block.kind for block in fragments["TupleData"].messages[2].blocks] == ["fields", "one of", "or"]


def test_a_fragment_says_what_is_missing() -> None:
    text = SMALL_PAGE[SMALL_PAGE.index("Flags") : SMALL_PAGE.index("They")]
    (part,) = parse_page(text).messages
    assert (part.name, part.head_missing, part.tail_missing) == (None, True, True)
    assert [(row.line, row.type, row.tail_missing) for row in part.rows] == [(1, None, False), (4, "Byten", True)]


def test_a_fragment_within_tags_and_types_keeps_what_is_whole() -> None:
    text = SMALL_PAGE[SMALL_PAGE.index("yte1('G')") : SMALL_PAGE.index("n</replaceable>")]
    (part,) = parse_page(text).messages
    assert [row.type for row in part.rows] == [None, "Int8", None]


@pytest.mark.parametrize("style", [HTML, DOCBOOK, SGML], ids=lambda style: style.name)
def test_a_fragment_has_the_rows_of_the_page_in_it(style: Style) -> None:
    text = draw(LOGICALREP, 4, style)
    whole = [(entry.name, row.type, row.line) for entry in parse_page(text).messages for row in entry.rows]
    chance = random.Random(style.name)
    for _ in range(30):
        start, end = sorted(chance.sample(range(len(text)), 2))
        try:
            page = parse_page(text[start:end])
        except DocPageError:
            continue
        lines_before = text.count("\n", 0, start)
        rows = [
            (entry.name, row.type, row.line + lines_before)
            for entry in page.messages
            for row in entry.rows
            if row.type is not None
        ]
        lines = {line for _, _, line in rows}
        assert [(kind, line) for _, kind, line in rows] == [(kind, line) for _, kind, line in whole if line in lines][
            : len(rows)
        ]
        assert all(name is None or (name, kind, line) in whole for name, kind, line in rows)


# -- what is no page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is not text"),
        ("Begin\nByte1('B')".encode("utf-16"), "is not text"),
        (b"Byte1('B') Int64", "has no table of message fields, neither in HTML nor in DocBook"),
        (b"<html><body><p>Hello</p><dl><dt>A</dt><dd>B</dd></dl></body></html>",
         "has no table of message fields, neither in HTML nor in DocBook"),
        (b"<b>" * 400 + b"<dl><dt>Int8</dt><dd>x</dd></dl>", "has more than 250 elements within each other"),
    ],
)  # fmt: skip
def test_what_is_no_page_is_refused_in_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(content)
    with pytest.raises(DocPageError) as caught:
        read_page(path)
    assert str(caught.value) == f"{path}: {reason}"


def test_a_page_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocPageError, match="cannot be read: No such file or directory"):
        read_page(tmp_path / "absent.html")
    with pytest.raises(DocPageError, match="cannot be read: Is a directory"):
        read_page(tmp_path)


def test_a_page_in_latin_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "page.sgml"
    path.write_bytes(SMALL_PAGE.replace("first", "firs\xe9").encode("iso-8859-1"))
    assert len(read_page(path).messages) == 1


@pytest.mark.parametrize(
    "piece",
    ["<", "</", "<!--", "<!", "<?", "<![", "<a b='", "<dl><dt>", "<dl>", "</dd>", "<variablelist>", "<varlistentry>",
     "</varlistentry>", "<term>", "<dt>Int8</dt><dd>x", "<dd>", "&", "a ", "'", "<a b=\"'>", "<dt>Int8", "x=", "<x y "],
)  # fmt: skip
def test_a_long_run_of_one_piece_takes_no_long_time(piece: str) -> None:
    text = piece * (40_000 // len(piece))
    start = time.process_time()
    with contextlib.suppress(DocPageError):
        parse_page(text)
    assert time.process_time() - start < 3


_PIECES = st.sampled_from(
    [
        "<dl>", "</dl>", "<dt>", "</dt>", "<dd>", "</dd>", "<p>", "</p>", "<variablelist>", "</variablelist>",
        "<varlistentry>", "<varlistentry id='x'>", "</varlistentry>", "<term>", "</term>", "<listitem>", "</listitem>",
        "<itemizedlist>", "</itemizedlist>", "</>", "<sect1>", "</sect1>", "<title>", "</title>", "<html>", "</html>",
        "Int32", "Byte1('K')", "Begin (B)", "Or", "Next, the following message part appears for each column:",
        "This field is available since protocol version 2.", "(only present for streamed transactions)", "<a", "'",
        "&#0;", "&lt;", "\n", "<!--", "-->", "<indexterm>", "</indexterm>", "\N{RIGHT SINGLE QUOTATION MARK}", "(", ")",
    ]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=60).map("".join))
def test_any_text_gives_rows_or_the_one_error(text: str) -> None:
    try:
        page = parse_page(text)
    except DocPageError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert page.messages


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_damaged_page_gives_rows_or_the_one_error(data: st.DataObject) -> None:
    text = draw(WALSENDER, 1, data.draw(st.sampled_from(STYLES)))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
        text = text[:start] + data.draw(_PIECES) + text[start + (end - start) // 20 :]
    with contextlib.suppress(DocPageError):
        assert parse_page(text).messages
