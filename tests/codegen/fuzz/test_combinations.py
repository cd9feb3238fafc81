"""Combinations of modifiers that the search found: right, or refused at the row or message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codegen.fuzz.examine import Examination, examine
from codegen.fuzz.specs import TYPES, Spec, write
from codegen.model.reader import load
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.layout import MessageLayout, ProtocolLayout
from logicalrep_runtime.operations import Constant, Take
from tests.codegen.model.generation import run_generated

EXPECTED = {"expected": {"doc": "It is expected.", "values": {"a": "A.", "b": "B."}}}
SESSION = {**EXPECTED, "stormy": {"doc": "It is stormy."}}
A, B = {"when": "expected = a"}, {"when": "expected = b"}


def row(name: str, kind: str, **modifiers: Any) -> dict[str, Any]:
    return {name: kind, **{key.replace("_", " "): value for key, value in modifiers.items()}, "doc": "D."}


def tagged(*rows: dict[str, Any], tag: str = "A", **keys: Any) -> dict[str, Any]:
    return untagged({"tag": f"Byte1('{tag}')"}, *rows, **keys)


def untagged(*rows: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"doc": "D.", **{key.replace("_", " "): value for key, value in keys.items()}, "fields": list(rows)}


def part(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"part of": [], "doc": "D.", "fields": list(rows)}


def cells(*rows: dict[str, Any]) -> dict[str, Any]:
    alternative = {"doc": "D.", "fields": [row("code", "Byte1('x')"), *rows]}
    return {"part of": [], "doc": "D.", "one of": {"Cx": alternative}}


def examined(folder: Path, layouts: dict[str, Any], *, versions: int = 1, **protocol: Any) -> Examination:
    return examine(written_spec(layouts, versions=versions, **protocol), folder, "1")


def written_spec(layouts: dict[str, Any], *, versions: int, **protocol: Any) -> Spec:
    return {
        "protocol": {
            "protocol": "x",
            "title": "X",
            "doc": "X.",
            "versions": {number: {"module": f"v{number}", "doc": "D."} for number in range(1, versions + 1)},
            "session": SESSION if any("when" in layout for layout in layouts.values()) else {},
            "files": ["m"],
            **({} if "blocks" in protocol else {"package": "x_protocol"}),
            **protocol,
        },
        "types": {name: {**keys, "doc": "D."} for name, keys in TYPES.items()},
        "layouts": layouts,
        "columns": "blocks" in protocol,
    }


COUNT, SIZE = row("n", "Int16"), row("value_size", "Int8")
RIGHT: dict[str, tuple[int, dict[str, Any]]] = {
    "references to described objects": (
        1, {"Ma": tagged(row("k", "Int32 (Oid)"), describes="k"), "Mb": tagged(COUNT, row("r", "Int32 (Oid)", looks_up="Ma", repeat="n"), tag="B")},
    ),
    "bytes of a fixed number": (1, {"Ma": tagged(row("x", "Byte3"))}),
    "a row that ends without a successor": (2, {"Ma": tagged(row("old", "Int16", until=1), row("v", "Int16"))}),
    "a part's row that ends": (2, {"Ma": tagged(row("p", "Pa")), "Pa": part(row("v", "Int16"), row("old", "Int8(1)", until=1))}),
    "any character": (1, {"Ma": tagged(row("c", "Byte1", any_character=True))}),
    "any character with names": (1, {"Ma": tagged(row("c", "Byte1", any_character=True, values={"d": "done"}))}),
    "one sender, a shared tag": (1, {"Ma": tagged(row("c", "Int16(1)")), "Mb": tagged(row("c", "Int16(2)"))}),
    "a constant that is not first": (
        1, {"Ma": untagged(row("t", "Int32"), row("c", "Int8(1)"), **A), "Mb": untagged(row("t", "Int32"), row("c", "Int8(2)"), **A)},
    ),
    "several constants": (
        1, {"Ma": untagged(row("c", "Int16(1)"), row("d", "Int8(0)"), **A), "Mb": untagged(row("c", "Int16(1)"), row("d", "Int8(2)"), **A)},
    ),
    "a constant zero behind the end of a message with a tag": (
        1, {"Ma": untagged(row("t", "Int16"), row("c", "Int16(0)"), **A), "Mb": tagged(row("x", "Int8"))},
    ),
    "a tag shared from version 2 on": (2, {"Ma": tagged(row("x", "Int16"), **A), "Mb": tagged(row("y", "Int16"), since=2, **B)}),
    "a tag of its own under a session fact": (1, {"Ma": tagged(row("x", "Int16"), **A), "Mb": tagged(row("y", "Int16"), tag="B")}),
    "named values above 255 first in a message without a tag": (1, {"Ma": untagged(row("x", "Int16 (Level)"), **A)}),
    "integers alone, one of a later version": (2, {"Ma": tagged(row("x", "Int16"), row("y", "Int8", since=2))}),
    "a shared tag with lengths in different places": (
        1, {"Ma": tagged(row("c", "Int32(1)"), row("x", "Int8")), "Mb": tagged(row("c", "Int32(2)"))},
    ),
    "messages without a tag with and without a length": (
        1,
        {"Ma": untagged(row("length", "Int32", measures="message"), row("c", "Int8(1)"), row("s", "String"), **A),
         "Mb": untagged(row("t", "Int32"), row("c", "Int8(2)"), **A)},
    ),
    "alternatives with unsigned sizes": (1, {"Ma": tagged(COUNT, row("x", "Cells", repeat="n")), "Cells": cells(SIZE, row("value", "Byten", size="value_size"))}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_combination_is_right(tmp_path: Path, name: str) -> None:
    versions, layouts = RIGHT[name]
    examination = examined(tmp_path, layouts, versions=versions)
    assert (examination.faults, examination.refused) == ([], [])
    assert examination.messages > 0


MEASURES = "Ma.length: 'measures' belongs to the first row after the tag only"
ALWAYS_ONE = "Ma.x: 'measures' belongs to a row without 'repeat' and 'when' only"
NONZERO = "Ma.x: 'nonzero' belongs to an integer without constant only"
TEXTS = [row("name", "String"), row("value", "String")]
TELLS = "Ma: 'tells encoding'"
REPEAT = "Ma.x: 'repeat' belongs to an integer without constant, a text or a part only"
UNTIL_ZERO = "Ma.x: 'repeat: until zero' belongs to a text or a part with 'fields' only"
ANY = "'any character' belongs to a Byte1 without constant only, alone or with 'values'"
REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "a length that is not first": (1, {"Ma": tagged(COUNT, row("length", "Int32", measures="message"))}, MEASURES),
    **{
        f"nonzero beside {key}": (1, {"Ma": tagged(row("x", "Int8", nonzero=True, **{key: value}))}, f"{NONZERO}, not beside {key!r}")
        for key, value in {"boolean": True, "bits": {1: "red"}, "values": {"d": "done"}}.items()
    },
    "a length that is not zero": (
        1, {"Ma": tagged(row("x", "Int32", measures="message", nonzero=True))}, f"{NONZERO}, not beside 'measures'",
    ),
    "a repeated length": (1, {"Ma": tagged(row("x", "Int32", measures="message", repeat="until zero"))}, ALWAYS_ONE),
    "a length that depends on a fact": (1, {"Ma": tagged(row("x", "Int32", measures="message", when="stormy"), **A)}, ALWAYS_ONE),
    "a row that ends before it begins": (3, {"Ma": tagged(row("x", "Int8", since=3, until=1))}, "Ma.x is in no version"),
    "a row that ends before its part begins": (
        2, {"Ma": tagged(), "Mb": tagged(row("p", "Pa"), tag="B", since=2), "Pa": part(row("v", "Int8"), row("x", "Int8", until=1))},
        "Pa.x is in no version",
    ),
    "an end in a version that does not exist": (1, {"Ma": tagged(row("x", "Int8", until=3))}, "Ma.x is until version 3, but the newest is 1"),
    "a message without rows in version 1": (
        2, {"Ma": untagged(row("x", "Int16", since=2), **A), "Mb": tagged()}, "in version 1: Ma is empty",
    ),
    "a message with the name of the layouts": (1, {"X": tagged(row("y", "Int8"))}, "'X' would become the class X, a name that is taken by"),
    "named values with the name of the layouts": (
        1, {"Ma": tagged(row("x", "Int8", values={"d": "done"}))}, "'X' would become the class X, a name that is taken by",
    ),
    "a described number of a later version": (
        2, {"Ma": tagged(row("x", "Int8"), row("k", "Int32 (Oid)", since=2), describes="k")},
        "Ma: 'describes' names 'k', which is not a number that is always present",
    ),
    "a described number that is a size": (
        1, {"Ma": tagged(row("k", "Int32 (Unsigned)"), row("x", "Byten", size="k"), describes="k")},
        "Ma: 'describes' names 'k', which is not a number that is always present",
    ),
    "a reference that is a size": (
        1, {"Mb": tagged(row("k", "Int32 (Unsigned)"), describes="k", tag="B"),
            "Ma": tagged(row("k", "Int32 (Unsigned)", looks_up="Mb"), row("x", "Byten", size="k"))},
        "Ma.k: what looks up Mb must be an integer of type Unsigned that is always present",
    ),
    "a reference that is older than the description": (
        2, {"Mb": tagged(row("k", "Int32 (Oid)"), describes="k", tag="B", since=2), "Ma": tagged(row("k", "Int32 (Oid)", looks_up="Mb"))},
        "Ma.k: what looks up Mb is older than that message, of version 2",
    ),
    "an encoding that nothing tells": (1, {"Ma": tagged(*TEXTS, tells_encoding="name")}, f"{TELLS} is 'name'; 'SETTING in FIELD: FIELD' is expected"),
    "an encoding that no text tells": (
        1, {"Ma": tagged(*TEXTS, row("x", "Int8"), tells_encoding="encoding in name: x")}, f"{TELLS} names 'x', which is not a text that is always present",
    ),
    "an encoding without codecs": (1, {"Ma": tagged(*TEXTS, tells_encoding="encoding in name: value")}, f"{TELLS} needs the 'encodings' of the protocol"),
    "messages of no protocol": (1, {"Ma": tagged(row("x", "Byten", size="rest"), carries="y")}, "Ma: 'carries' names 'y'; allowed: x"),
    "no constant that distinguishes": (
        1, {"Ma": untagged(row("x", "Int16"), **A), "Mb": untagged(row("y", "Int16"), **A)},
        "Mb has no tag and no constant that distinguishes it from Ma",
    ),
    "a shared tag under a fact and always": (
        1, {"Ma": tagged(row("x", "Int16"), **A), "Mb": tagged(row("y", "Int16"))}, "tag 'A' of Mb is also the tag of Ma",
    ),
    "a constant behind a row that may be absent": (
        1,
        {name: tagged(row("k", "Byte1('K') | Byte1('L')", optional=True), row("v", "Int8", when="k"), row("c", f"Byte1('{code}')"))
         for name, code in (("Ma", "M"), ("Mb", "N"))},
        "tag 'A' of Mb is also the tag of Ma",
    ),
    "repeated bytes": (1, {"Ma": tagged(COUNT, row("x", "Byte4", repeat="n"))}, REPEAT),
    "the rest, repeated": (1, {"Ma": tagged(COUNT, row("x", "Byten", size="rest", repeat="n"))}, REPEAT),
    "texts until zero under an optional field": (
        1, {"Ma": tagged(row("k", "Byte1('K') | Byte1('L')", optional=True), row("x", "String", when="k", repeat="until zero"), row("c", "Byte1('N')"))},
        "Ma.x: 'repeat' cannot go with 'when'",
    ),
    "integers until zero": (1, {"Ma": tagged(row("x", "Int8", repeat="until zero"))}, UNTIL_ZERO),
    "alternatives until zero": (1, {"Ma": tagged(row("x", "Cells", repeat="until zero")), "Cells": cells()}, UNTIL_ZERO),
    "an unsigned size that is -1": (
        1, {"Ma": tagged(row("n", "Int8"), row("x", "Byten", size="n", may_be_null=True))},
        "Ma.x: 'may be null' needs a size that can be -1, and n is unsigned",
    ),
    "a null alternative": (
        1, {"Ma": tagged(COUNT, row("x", "Cells", repeat="n")),
            "Cells": cells(row("s", "Int32"), row("value", "Byten", size="s", may_be_null=True))},
        "Cx may hold one value beside its tag, a Byten with its size",
    ),
    "an alternative of a fixed size": (
        1, {"Ma": tagged(COUNT, row("x", "Cells", repeat="n")), "Cells": cells(row("value", "Byte4"))},
        "Cx may hold one value beside its tag, a Byten with its size",
    ),
    "any character of two bytes": (1, {"Ma": tagged(row("x", "Int16", any_character=True))}, f"Ma.x: {ANY}"),
    "any character that is a truth value": (1, {"Ma": tagged(row("x", "Byte1", boolean=True, any_character=True))}, f"Ma.x: {ANY}"),
    "a message without rows": (2, {"Ma": untagged(row("x", "Int16", until=1), **A), "Mb": tagged()}, "in version 2: Ma is empty"),
    "a tag that ends": (2, {"Ma": {"doc": "D.", "fields": [{"tag": "Byte1('A')", "until": 1}, row("x", "Int8")]}}, "Ma must begin with its tag"),
    "a version without messages": (2, {"Ma": tagged(since=2)}, "version 1 has no message"),
    "a field called size": (1, {"Ma": tagged(row("size", "Int16"))}, "Ma.size: 'size' is a modifier, so no field can have that name"),
    "repeat: rest": (
        1, {"Ma": tagged(row("x", "Int16", repeat="rest"))},
        "Ma.x: 'repeat' names an earlier integer, or reads 'until zero'; only a 'size' can be 'rest'",
    ),
    "a numeric tag": (1, {"Ma": untagged({"tag": "Int8(1)"})}, "Ma must begin with its tag: '- tag: Byte1('X')', not with Int8(1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_combination_is_refused(tmp_path: Path, name: str) -> None:
    versions, layouts, text = REFUSED[name]
    examination = examined(tmp_path, layouts, versions=versions)
    assert examination.faults == []
    assert [str(finding.place.line > 0) for finding in examination.refused if finding.text.startswith(text)] == ["True"]


def test_a_second_part_with_alternatives_is_one_finding(tmp_path: Path) -> None:
    """The part that must not be used is a part of the message nevertheless."""
    second = {**cells(), "one of": {"Cy": {"doc": "D.", "fields": [row("code", "Byte1('y')")]}}}
    rows = [COUNT, row("x", "Cells", repeat="n"), row("m", "Int16"), row("y", "More", repeat="m")]
    examination = examined(tmp_path, {"Ma": tagged(*rows), "Cells": cells(), "More": second})
    text = "Ma.y: only one field of a layout can be of a part with 'one of'"
    assert [finding.text for finding in examination.refused] == [text]


BLOCKS = {"blocks": {"stream": "From Open to Close."}}
STREAM = {
    "Open": tagged(tag="Y", place="outside", opens="stream"),
    "Close": tagged(tag="Z", place="stream", closes="stream"),
}


@pytest.mark.parametrize(
    ("rows", "protocol", "text"),
    [
        ([COUNT, row("x", "String", repeat="n")], {}, "x repeats a text, which batches have no column for"),
        ([row("x", "Pa", repeat="until zero")], {}, "x repeats until a zero byte, which batches have no column for"),
        ([COUNT, row("x", "Byten", size="n", may_be_null=True)], {}, "x may be null, which batches have no column for"),
        ([row("x", "Byte1", any_character=True)], {}, "x is any character, which batches have no column for"),
        ([], {"byte order": "little"}, "batches read integers with 'byte order: big' only"),
        ([], {"session": EXPECTED}, "expected has 'values', and batches have facts that are true or false only"),
    ],
)
def test_what_batches_cannot_have_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], protocol: dict[str, Any], text: str
) -> None:
    layouts = {**STREAM, "Ma": tagged(*rows, place="anywhere"), "Pa": part(row("v", "Int16"))}
    examination = examined(tmp_path, layouts, **BLOCKS, **protocol)
    assert examination.faults == []
    assert [finding.text[: len(text)] for finding in examination.refused] == [text]


UNKNOWN_TAG = """
from logicalrep_protocol import Decoder
try:
    Decoder(1).decode(b"C")
except ValueError as error:
    print(error)
"""


def test_a_decoder_refuses_the_first_message_of_a_later_version(tmp_path: Path) -> None:
    layouts = {"Late": tagged(tag="C", place="anywhere", since=2), **STREAM}
    write(written_spec(layouts, versions=2, **BLOCKS), tmp_path / "spec")
    refusal = "Late: tag at offset 0: expected a message of protocol version 1, found 'C', Late of version 2\n"
    assert run_generated(load(tmp_path / "spec"), tmp_path, UNKNOWN_TAG) == refusal


def test_the_error_of_a_type_with_one_legal_value_names_the_value() -> None:
    @dataclass
    class Ma:
        v: int
        tag: str = "A"

    rows = (Constant(name="tag", width=1, code=65, is_character=True), Take(name="v", width=1, allowed=(3,)))
    message = MessageLayout(name="Ma", tag="A", since=1, sender="server", reference="", operations=rows)
    layouts = ProtocolLayout(
        name="x", versions=(1,), session={}, tracked=(), parse_arguments=(), messages=(message,), parts={}
    )
    error = encode_error(layouts, 1, Ma(v=4), ValueError())
    assert str(error) == "Ma: v: expected a whole number from 3 to 3, found 4"
