"""The comparison finds every alteration of a page and of the spec, and nothing where the two agree."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.model.model import Protocol
from codegen.model.notation import Int, PartName, parse_type
from codegen.pagecheck import compare, protocols_on
from codegen.pagecheck.reading import DocPageError, parse_page, read_page
from tests.codegen.edits import Edit, Rows, changed, replaced, swapped
from tests.codegen.pagecheck.mutations import Mutations
from tests.codegen.pagecheck.pages import (
    DOCBOOK,
    FRAGMENTS,
    HTML,
    LOGICALREP,
    OLD_DOCBOOK,
    PAGE_18,
    PGWIRE,
    PGWIRE_PAGE_18,
    REPLICATION_PAGE_15,
    SGML,
    STATUS_19,
    STYLES,
    WALSENDER,
    Style,
    draw,
    read,
)

pytestmark = pytest.mark.slow

NEWEST = len(LOGICALREP.versions)


def differences(text: str, protocol: Protocol, version: int) -> list[str]:
    return [str(difference) for difference in compare(parse_page(text), protocol, version)]


# -- agreement ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_page_of_a_release_agrees_with_the_newest_version_it_has(style: Style, version: int) -> None:
    assert differences(draw(LOGICALREP, version, style), LOGICALREP, version) == []


@pytest.mark.parametrize("version", range(1, NEWEST))
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_page_agrees_with_every_version_before_its_newest(style: Style, version: int) -> None:
    assert differences(draw(LOGICALREP, NEWEST, style), LOGICALREP, version) == []


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_page_of_the_envelope_agrees(style: Style) -> None:
    assert differences(draw(WALSENDER, 1, style), WALSENDER, 1) == []


def test_a_page_of_an_older_release_lacks_what_a_later_version_has() -> None:
    disagreements = compare(parse_page(draw(LOGICALREP, 3, HTML)), LOGICALREP, 4)
    assert [(difference.what, difference.printed, difference.specified) for difference in disagreements] == [
        (
            "Stream Abort.abort_lsn",
            'nothing after "Int32 (TransactionId)"',
            '"Int64 (XLogRecPtr)", "since protocol version 4", "when: parallel"',
        ),
        (
            "Stream Abort.abort_timestamp",
            'nothing after "Int32 (TransactionId)"',
            '"Int64 (TimestampTz)", "since protocol version 4", "when: parallel"',
        ),
    ]


SMALL_PAGE = """\
<sect1 id="protocol-logicalrep-message-formats">
<title>Logical Replication Message Formats</title>
<variablelist>
<varlistentry id="protocol-logicalrep-message-formats-Begin">
<term>Begin</term>
<listitem>
<variablelist>
<varlistentry><term>Byte1('B')</term><listitem><para>The tag.</para></listitem></varlistentry>
<varlistentry><term>Int32 (XLogRecPtr)</term><listitem><para>The final LSN.</para></listitem></varlistentry>
<varlistentry><term>Int64 (TimestampTz)</term>
<listitem><para>The commit timestamp (only present for streamed transactions).</para></listitem></varlistentry>
<varlistentry><term>String</term><listitem><para>A string.</para></listitem></varlistentry>
<varlistentry><term>Int32 (TransactionId)</term>
<listitem><para>The xid. This field is available since protocol version 2.</para></listitem></varlistentry>
</variablelist>
</listitem>
</varlistentry>
<varlistentry id="protocol-logicalrep-message-formats-Message">
<term>Massage</term>
"""


def test_differences_name_both_places_and_quote_both_sides() -> None:
    begin = {row.name: row.place for row in LOGICALREP.messages[0].fields}
    message = LOGICALREP.messages[1].place
    assert differences(SMALL_PAGE, LOGICALREP, 4) == [
        f'page:9: Begin.final_lsn: the page has "Int32 (XLogRecPtr)"; {begin["final_lsn"]} has "Int64 (XLogRecPtr)"',
        'page:10: Begin.commit_timestamp: the page has "only present for streamed transactions"; '
        f"{begin['commit_timestamp']} has no condition",
        f'page:12: Begin: the page has "String"; {begin["commit_timestamp"]} has nothing',
        f'page:13: Begin.xid: the page has "since protocol version 2"; {begin["xid"]} has no "since protocol version"',
        f'page:19: Message: the page has "Massage"; {message} has "Message"',
    ]


# -- mutations of pages ------------------------------------------------------------------------------------------------


def _undetected(mutations: Mutations, protocol: Protocol, version: int) -> list[str]:
    """The mutations of a page of which the comparison finds nothing where they are."""
    undetected = []
    for batch in mutations.batches():
        altered, where = mutations.apply(batch)
        lines = [difference.page.line for difference in compare(parse_page(altered), protocol, version)]
        undetected += [
            f"{mutation.what} (lines {first} to {last})"
            for mutation, first, last in where
            if not any(first <= line <= last for line in lines)
        ]
    return undetected


def test_every_mutation_of_a_page_of_the_newest_version_is_found() -> None:
    assert _undetected(Mutations(read(PAGE_18)), LOGICALREP, 4) == []


@pytest.mark.parametrize(
    ("protocol", "version", "style"),
    [(LOGICALREP, 2, SGML), (WALSENDER, 1, DOCBOOK)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_every_mutation_of_a_drawn_page_is_found(protocol: Protocol, version: int, style: Style) -> None:
    assert _undetected(Mutations(draw(protocol, version, style)), protocol, version) == []


def test_every_mutation_of_the_envelope_on_its_page_is_found() -> None:
    text = read(REPLICATION_PAGE_15)
    # The page goes on with the messages of BASE_BACKUP, which the spec leaves out.
    start, end = text.index("XLogData (B)") - 100, text.index("new archive (B)") - 100
    assert _undetected(Mutations(text, start, end), WALSENDER, 1) == []


# -- mutations of the spec ---------------------------------------------------------------------------------------------


def _doubled(rows: Rows, index: int) -> Rows:
    return (*rows[: index + 1], *rows[index:])


def _changes(fields: Rows, index: int) -> Iterator[tuple[str, Edit]]:
    """Every way to alter one field of a layout that shows on the page."""
    row = fields[index]
    yield "removed", changed(lambda row: None)
    yield "doubled", _doubled
    if index + 1 < len(fields):
        yield "swapped with the next", swapped
    for other in ("Int16", "Int64 (XLogRecPtr)", "String", "Byte1('Z')", "Byte1('K') | Byte1('N')"):
        if str(row.type) != other:
            yield f"type {other}", replaced(type=parse_type(other))
    if isinstance(row.type, Int) and row.type.name:
        yield "type without its name", replaced(type=Int(row.type.base))
    yield "since", replaced(since=row.since + 1 if row.since > 1 else 3)
    yield "when", replaced(when=None if row.when else "streaming")
    if row.when is None:
        yield "optional", replaced(optional=not row.optional)
    if not isinstance(row.type, PartName):
        yield "repeat", replaced(repeat=None if row.repeat else "relation_count")
    if row.bits:
        yield "bits", replaced(bits={4: "other"})
        yield "the name of a bit", replaced(bits=dict.fromkeys(row.bits, "other"))


def _undetected_changes(protocol: Protocol) -> list[str]:
    """The changes of one field of which the comparison with a page of the true spec finds nothing in the right file."""
    version = len(protocol.versions)
    page = parse_page(draw(protocol, version, HTML))
    todo = {
        message.name: [
            (row, index, *change)
            for index, row in enumerate(message.fields)
            for change in _changes(message.fields, index)
        ]
        for message in protocol.messages
    }
    undetected = []
    while todo:
        batch = {name: changes.pop() for name, changes in todo.items()}
        todo = {name: changes for name, changes in todo.items() if changes}
        altered = replace(
            protocol,
            messages=tuple(
                replace(message, fields=batch[message.name][3](message.fields, batch[message.name][1]))
                if message.name in batch
                else message
                for message in protocol.messages
            ),
        )
        paths = {difference.spec.path for difference in compare(page, altered, version)}
        undetected += [
            f"{name}.{row.name}: {what}" for name, (row, _, what, _) in batch.items() if row.place.path not in paths
        ]
    return undetected


def test_every_change_of_a_field_in_the_spec_is_found() -> None:
    assert _undetected_changes(LOGICALREP) == []


def test_every_change_of_a_field_of_the_envelope_is_found() -> None:
    assert _undetected_changes(WALSENDER) == []


# -- facts of descriptions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ("Length of message contents in bytes, including self.", "Length of the rest.", "AuthenticationOk.length"),
        ("The process ID of this backend.", "The object ID of this backend.", "BackendKeyData.process_id"),
        ("Specifies the object ID of the function to call.", "The function to call.", "FunctionCall.function_id"),
        ("zero (text) or one (binary)", "zero (binary) or one (text)", "Bind.parameter_formats"),
        ("0 indicates the overall", "2 indicates the overall", "CopyInResponse.overall_format"),
        ("-1 indicates a NULL parameter", "0 indicates an empty parameter", "ParameterValue.length"),
        ("extends to the end of the message", "ends somewhere", None),
        ("The number of column values that follow", "The column values that follow", "DataRow.column_count"),
        ("The length of the column value, in bytes", "The size of the column value, in bytes", "ColumnValue.length"),
        ("to describe a prepared statement", "to describe a portal", "Describe.described"),
        (">E</code>' if in a failed", ">F</code>' if in a failed", "ReadyForQuery.transaction_status"),
        ("the secret key was always 4 bytes", "the secret key was always 5 bytes", "BackendKeyData.secret_key"),
        ("Before protocol version 3.2, the", "Before protocol version 3.1, the", "BackendKeyData.secret_key"),
        ("the secret key was always", "the key was often", "BackendKeyData.secret_key"),
    ],
)  # fmt: skip
def test_an_altered_fact_of_a_description_is_found(old: str, new: str, row: str | None) -> None:
    """A page may say less than the spec has of sizes to the end of a message."""
    text, count = re.subn(r"\s+".join(map(re.escape, old.split())), new, read(PGWIRE_PAGE_18), count=1)
    assert count == 1
    rows = {difference.what for difference in compare(parse_page(text), PGWIRE, 2)}
    assert rows == ({row} if row else set())


# -- fragments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("protocol", [LOGICALREP, WALSENDER], ids=lambda protocol: protocol.name)
def test_every_fragment_of_a_page_agrees(protocol: Protocol, style: Style) -> None:
    text = draw(protocol, len(protocol.versions), style)
    chance = random.Random(f"{protocol.name} {style.name}")
    for _ in range(15):
        start, end = sorted(chance.sample(range(len(text)), 2))
        with contextlib.suppress(DocPageError):
            page = parse_page(text[start:end])
            # Some rows of one message alone could stand in either protocol.
            (page_protocol,) = protocols_on(page, (LOGICALREP, WALSENDER))
            assert page_protocol == protocol or page.messages[0].name is None
            assert compare(page, page_protocol, len(page_protocol.versions)) == [], (start, end)


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.stem)
def test_the_fragments_agree(path: Path) -> None:
    """One of them is about callbacks and has no table."""
    try:
        page = read_page(path)
    except DocPageError:
        assert "LogicalDecodeCommitPreparedCB" in read(path)
    else:
        assert compare(page, LOGICALREP, 4) == []


def test_what_a_release_brought_is_compared_alone() -> None:
    text = read(STATUS_19)
    assert differences(text, WALSENDER, 1) == []
    (difference,) = differences(text.replace("Byte1('s')", "Byte1('t')"), WALSENDER, 1)
    assert ": Primary status update.tag: the page has " in difference


def test_a_page_of_an_older_release_has_nothing_of_a_later_one() -> None:
    def without(names: list[str]) -> Protocol:
        return replace(
            WALSENDER, messages=tuple(message for message in WALSENDER.messages if message.name not in names)
        )

    brought = ["Primary status update", "Request primary status update"]
    assert differences(draw(without(brought), 1, HTML), WALSENDER, 1) == []
    for name in brought:
        (difference,) = compare(parse_page(draw(without([name]), 1, HTML)), WALSENDER, 1)
        assert difference.what == name


def test_a_fragment_within_one_message_is_known_by_its_rows() -> None:
    text = draw(LOGICALREP, 4, DOCBOOK)
    start = text.index("<term>Int64", text.index("<term>Rollback Prepared"))
    page = parse_page(text[start : text.index("<term>String", start)])
    assert protocols_on(page, (LOGICALREP, WALSENDER)) == (LOGICALREP,)
    assert compare(page, LOGICALREP, 4) == []


# -- what the pages of older releases print otherwise ------------------------------------------------------------------


def test_an_old_page_of_the_envelope_has_other_capitals_and_its_lists_within_an_entry() -> None:
    text = draw(WALSENDER, 1, OLD_DOCBOOK).replace("Hot standby", "Hot Standby")
    text = text.replace("<variablelist>", "<variablelist><varlistentry><term>START</term><listitem><variablelist>", 1)
    text = text.replace("</sect1>", "</listitem></varlistentry></variablelist></sect1>")
    assert differences(text, WALSENDER, 1) == []
    newer = draw(WALSENDER, 1, DOCBOOK).replace("Hot standby", "Hot Standby")
    assert [difference.printed for difference in compare(parse_page(newer), WALSENDER, 1)] == [
        '"Hot Standby feedback message (F)"'
    ]


def test_the_page_without_names_and_anchors_agrees_as_a_page_before_15() -> None:
    text = re.sub(r'(<span class="term">Int\d+) \(\w+\)', r"\1", read(PAGE_18))
    text = re.sub(r'<dt id="[^"]*">', "<dt>", text)
    text = re.sub(r"Int8\(0\)(</span></dt><dd><p>\s*Flags; currently unused)", r"Int8\1 (must be 0)", text)
    assert text.count("(must be 0)") == 6
    assert differences(text, LOGICALREP, 4) == []


def test_without_binary_values_the_page_prints_the_length_under_t() -> None:
    text = draw(LOGICALREP, 1, HTML)
    start = text.index("Or", text.index("Byte1('t')")) - 6
    end = text.index("<dt>", text.index("Byte1('b')"))
    older = text[:start].removesuffix("</dl></div>") + text[end:]
    assert [(difference.what, difference.printed) for difference in compare(parse_page(older), LOGICALREP, 1)] == [
        ("TupleData.cells, Binary", 'nothing after "Byten"'),
        ("Binary.kind", 'nothing after "Byten"'),
        ("Binary.length", 'nothing after "Byten"'),
        ("Binary.value", 'nothing after "Byten"'),
    ]


def test_the_spec_tells_what_is_printed_under_another_tag() -> None:
    without = replace(
        LOGICALREP,
        parts=tuple(
            replace(
                part,
                alternatives=tuple(
                    replace(alternative, fields=tuple(replace(row, printed_under=None) for row in alternative.fields))
                    for alternative in part.alternatives
                ),
            )
            for part in LOGICALREP.parts
        ),
    )
    page = parse_page(draw(LOGICALREP, 4, HTML))
    assert [difference.what for difference in compare(page, without, 4)] == ["Text.length", "Text.value"]
    text = draw(LOGICALREP, 4, HTML)
    binary = text.index("<dt>", text.rindex("Byte1('b')"))
    rows = text[binary : text.index("</dl>", binary)]
    under_t = text.index("</dl>", text.index("Byte1('t')"))
    both = parse_page(text[:under_t] + rows + text[under_t:])
    assert [difference.printed for difference in compare(both, LOGICALREP, 4)] == ['"Int32"', '"Byten"']


# -- pages with other things on them ----------------------------------------------------------------------------------


OTHER_SECTION = """
<sect1 id="protocol-message-formats"><title>Message Formats</title>
<variablelist>
<varlistentry><term>AuthenticationOk (B)</term><listitem><para><variablelist>
<varlistentry><term>Byte1('R')</term><listitem><para>The tag.</para></listitem></varlistentry>
<varlistentry><term>Int32(8)</term><listitem><para>The length.</para></listitem></varlistentry>
</variablelist></para></listitem></varlistentry>
</variablelist>
</sect1>
"""


def test_a_source_with_several_sections_is_compared_with_every_protocol() -> None:
    text = f"<chapter id='protocol'>{draw(WALSENDER, 1, SGML)}{OTHER_SECTION}{draw(LOGICALREP, 4, SGML)}</chapter>"
    page = parse_page(text)
    assert protocols_on(page, (LOGICALREP, WALSENDER)) == (LOGICALREP, WALSENDER)
    assert compare(page, LOGICALREP, 4) == []
    assert compare(page, WALSENDER, 1) == []


def test_messages_under_another_entry_of_the_section_are_left_out() -> None:
    other = OTHER_SECTION[OTHER_SECTION.index("<variablelist>") : OTHER_SECTION.index("</sect1>")]
    text = draw(WALSENDER, 1, DOCBOOK).replace(
        "</sect1>",
        f"<variablelist><varlistentry><term>BASE_BACKUP</term><listitem>{other}</listitem></varlistentry></variablelist></sect1>",
    )
    assert compare(parse_page(text), WALSENDER, 1) == []
    beside = draw(WALSENDER, 1, DOCBOOK).replace("</sect1>", f"{other}</sect1>")
    assert [difference.printed for difference in compare(parse_page(beside), WALSENDER, 1)] == [
        '"AuthenticationOk (B)"'
    ]


def test_a_page_of_other_messages_is_about_no_protocol() -> None:
    assert protocols_on(parse_page(OTHER_SECTION), (LOGICALREP, WALSENDER)) == ()


def test_a_whole_section_with_a_table_of_types_alone_is_about_no_protocol() -> None:
    types = OTHER_SECTION[
        OTHER_SECTION.index("<varlistentry><term>Byte1") : OTHER_SECTION.index("</variablelist></para>")
    ]
    text = f'<sect1 id="protocol-message-types"><title>Types</title><variablelist>{types}</variablelist></sect1>'
    assert protocols_on(parse_page(text), (LOGICALREP, WALSENDER)) == ()


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="logicalrep has no version 5"):
        compare(parse_page(draw(LOGICALREP, 4, HTML)), LOGICALREP, 5)


def test_a_message_with_very_many_rows_takes_no_long_time() -> None:
    row = "<varlistentry><term>Int32</term><listitem><para>Some words.</para></listitem></varlistentry>"
    text = SMALL_PAGE.replace("<varlistentry><term>String", row * 4_000 + "<varlistentry><term>String")
    start = time.process_time()
    assert len(compare(parse_page(text), LOGICALREP, 4)) > 1
    assert time.process_time() - start < 10


_PIECES = st.sampled_from(
    [
        "<variablelist>", "</variablelist>", "<varlistentry>", "</varlistentry>", "<term>", "</term>", "<listitem>",
        "</listitem>", "<para>", "</para>", "Or", "Byte1('K')", "Int8", "TupleData", "Begin", "</sect1>", "",
        "This field is available since protocol version 3.", "(only present for streamed transactions)",
    ]
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_damaged_page_can_be_compared(data: st.DataObject) -> None:
    text = draw(LOGICALREP, 4, DOCBOOK)
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + data.draw(_PIECES) + text[start + data.draw(st.integers(0, 300)) :]
    with contextlib.suppress(DocPageError):
        for difference in compare(parse_page(text), LOGICALREP, 4):
            assert "\n" not in str(difference)
