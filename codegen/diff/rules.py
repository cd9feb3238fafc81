"""What can change in a spec, rule by rule: its id, its severity, and the sentence that spec/README.md has for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Severity(StrEnum):
    """What a change means for whoever uses the protocol, the gravest first."""

    WIRE = "wire"
    """The bytes of a version that existed change, or which of them are accepted and what they mean."""
    API = "api"
    """Names or types in Python change; bytes do not."""
    NEW = "new"
    """It exists in a new version only."""
    DOC = "doc"
    """Wording, reference or note."""


@dataclass(frozen=True)
class Rule:
    """One kind of change."""

    id: str
    severity: Severity
    sentence: str


_WIRE, _API, _NEW, _DOC = Severity.WIRE, Severity.API, Severity.NEW, Severity.DOC

_RULES = (
    Rule("protocol-new", _NEW, "A protocol is new."),
    Rule("protocol-gone", _WIRE, "A protocol is gone."),
    Rule("protocol-renamed", _API, "A protocol has another name, and so has the constant that holds its layouts."),
    Rule("version-new", _NEW, "A version is new."),
    Rule("version-gone", _WIRE, "A version is gone."),
    Rule("version-module", _API, "The module of a version has another name."),
    Rule("version-server", _DOC, "A version is said to have come with another release of the server."),
    Rule("session-fact-new", _NEW, "A session fact comes with a new version."),
    Rule("session-fact-added", _API, "A session fact is added to versions that existed."),
    Rule("session-fact-gone", _API, "A session fact is gone."),
    Rule("session-fact-renamed", _API, "A session fact has another name."),
    Rule(
        "session-fact-since", _DOC, "A session fact is said to be known since another version; layouts have their own."
    ),
    Rule("block-new", _NEW, "A block comes with a new version, in which the message that opens it is new."),
    Rule("block-added", _API, "A block is added to versions that existed: one more value of `Decoder.block`."),
    Rule("block-gone", _API, "A block is gone: a value that `Decoder.block` no longer has."),
    Rule("block-renamed", _API, "A block has another name, and so has the value of `Decoder.block`."),
    Rule("message-new", _NEW, "A message comes with a new version."),
    Rule("message-added", _WIRE, "A message is added to a version that existed."),
    Rule("message-gone", _WIRE, "A message is gone."),
    Rule("message-renamed", _API, "A message has another name; its tag and most of its layout are as they were."),
    Rule("message-tag", _WIRE, "A message begins with another tag."),
    Rule("message-sender", _WIRE, "A message is sent by the other side (`from`)."),
    Rule(
        "message-since",
        _WIRE,
        "A message that stays has another `since`, and comes to or leaves versions that existed.",
    ),
    Rule("message-also-when", _WIRE, "Another session fact, or none, has a message sent to older versions as well."),
    Rule("message-place", _WIRE, "A message may stand elsewhere (`place`): a decoder accepts it there or refuses it."),
    Rule("message-opens", _WIRE, "A message opens another block, or none: what a decoder accepts next changes."),
    Rule("message-closes", _WIRE, "A message closes another block, or none: what a decoder accepts next changes."),
    Rule("message-sets", _WIRE, "A message sets another session fact, or none: later messages are read otherwise."),
    Rule("message-clears", _WIRE, "A message clears another session fact, or none: later messages are read otherwise."),
    Rule(
        "message-transaction",
        _API,
        "A message is said to do something else to its transaction, which Python code sees.",
    ),
    Rule("message-callback", _DOC, "A message is said to come from other callbacks of the output plugin."),
    Rule("part-new", _NEW, "A part comes with a new version."),
    Rule("part-added", _API, "A part is added: one more class. The rows that it brings are findings of their own."),
    Rule("part-gone", _API, "A part is gone, and its class. The rows that go with it are findings of their own."),
    Rule("part-renamed", _API, "A part has another name; most of its layout is as it was."),
    Rule("alternative-added", _WIRE, "A part has one more alternative."),
    Rule("alternative-gone", _WIRE, "A part has one alternative fewer."),
    Rule("alternative-renamed", _API, "An alternative has another name; its tag is as it was."),
    Rule("alternative-tag", _WIRE, "An alternative begins with another tag."),
    Rule("field-new", _NEW, "A field comes with a new version."),
    Rule("field-added", _WIRE, "A field is added to a version that existed."),
    Rule("field-gone", _WIRE, "A field is gone."),
    Rule("field-renamed", _API, "A field has another name; its place and its bytes are as they were."),
    Rule("field-order", _WIRE, "A field comes before or after another than it did."),
    Rule("field-since", _WIRE, "A field that stays has another `since`, and comes to or leaves versions that existed."),
    Rule("field-type", _WIRE, "A field has another type or width."),
    Rule("field-sign", _WIRE, "An integer becomes signed or unsigned, as it has another name in parentheses or `is`."),
    Rule("field-constant", _WIRE, "Other constants are legal in a field, or any value where it was a constant."),
    Rule("field-nonzero", _WIRE, "Zero becomes legal in a field, or is refused."),
    Rule("field-boolean", _WIRE, "A field becomes true or false and nothing else, or is so no longer."),
    Rule("field-values", _WIRE, "Other characters are legal in a field with named values."),
    Rule("field-condition", _WIRE, "A field is there under another condition (`when`, `optional`)."),
    Rule("field-size", _WIRE, "A Byten takes its length from elsewhere (`size`)."),
    Rule("field-repeat", _WIRE, "A field is repeated as often as another says, or no longer (`repeat`)."),
    Rule("field-python", _API, "A field has another type in Python; its bytes are as they were."),
    Rule("field-notation", _DOC, "The type of a field is written otherwise and means the same."),
    Rule("bit-added", _API, "One more bit of a field has a name."),
    Rule("bit-gone", _API, "A bit of a field has no name any more."),
    Rule("bit-renamed", _API, "A bit has another name."),
    Rule("bit-moved", _WIRE, "A name stands for another bit."),
    Rule("value-renamed", _API, "A value has another name."),
    Rule("value-moved", _WIRE, "A name stands for another value."),
    Rule("type-sign", _WIRE, "A named type becomes signed or unsigned, and with it every field of that type."),
    Rule("type-python", _API, "A named type has another class in Python, and with it every field of that type."),
    Rule("type-renamed", _DOC, "A named type has another name, and is in Python what it was."),
    Rule(
        "type-definition", _DOC, "A named type is added, gone or defined otherwise, and no field changes by that alone."
    ),
    Rule("doc-wording", _DOC, "A title or `doc` says something else."),
    Rule("doc-note", _DOC, "A `note` says something else."),
    Rule("doc-reference", _DOC, "A reference (`page`, `anchor`, `ref`) leads elsewhere."),
    Rule("doc-order", _DOC, "Things stand in another order where order means nothing."),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _RULES})
"""Every rule by its id, in the order of the table in spec/README.md."""


def rule_rows() -> Iterator[tuple[str, str, str]]:
    """The rows of that table: rule id, severity, sentence."""
    for rule in RULES.values():
        yield rule.id, str(rule.severity), rule.sentence
