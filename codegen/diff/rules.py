"""The kinds of change in a spec: a table of rules for compare.py and spec/README.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from codegen.diff.wording import key_of, says


class Severity(StrEnum):
    """The effects of a change on users of the protocol, the most severe first."""

    WIRE = "wire"
    """The bytes of an existing version change, or which bytes are legal, or their meaning."""
    API = "api"
    """Names or types in Python change; bytes do not."""
    ADDED = "added"
    """New in a new version."""
    DOC = "doc"
    """Wording, reference or note."""


WORDS, ORDER = "words", "order"
"""The wordings of findings on texts, and on things in another order."""


@dataclass(frozen=True)
class Rule:
    """A kind of change."""

    of: str
    """The kind of thing; "doc" for every kind with the attributes."""
    what: str
    severity: Severity
    """The severity in an existing version. An addition in a new version is always `added`."""
    attributes: tuple[str, ...]
    """The compared attributes of the model or of fields.py; () for a special comparison."""
    sentence: str
    says: str = "'{key}' is {now}, was {was}"
    unless: tuple[str, ...] = ()
    """Rules and severities whose findings on the same thing make this rule redundant."""

    @property
    def id(self) -> str:
        return f"{self.of}-{self.what}"

    def text(self, attribute: str, old_text: str, new_text: str) -> str:
        """Return the text of a finding on an attribute, as a predicate of the subject."""
        if self.says == WORDS:
            return says(key_of(attribute), old_text, new_text)
        return self.says.format(key=key_of(attribute), was=old_text or "none", now=new_text or "none")


_WIRE, _API, _ADDED, _DOC = Severity.WIRE, Severity.API, Severity.ADDED, Severity.DOC


def _rule(
    of: str, what: str, severity: Severity, attributes: str, sentence: str, says: str = Rule.says, unless: str = ""
) -> Rule:
    return Rule(of, what, severity, tuple(attributes.split()), sentence, says, tuple(unless.split()))


_IS_WAS = "is {now}, was {was}"

_TABLE = (
    _rule("protocol", "added", _ADDED, "", "A protocol is added."),
    _rule("protocol", "gone", _WIRE, "", "A protocol is removed."),
    _rule("protocol", "renamed", _API, "", "A protocol and the constant with its layouts have another name."),
    _rule("protocol", "package", _API, "package", "The modules of a protocol are in another package."),
    _rule("protocol", "byte-order", _WIRE, "byte_order", "Integers have another byte order."),
    _rule("protocol", "encodings", _WIRE, "encodings", "Names of encodings mean other codecs."),
    _rule("version", "added", _ADDED, "", "A version is added."),
    _rule("version", "gone", _WIRE, "", "A version is removed."),
    _rule("version", "name", _API, "name", "A version has another name in errors and docstrings."),
    _rule("version", "module", _API, "module", "The module of a version has another name."),
    _rule("version", "server", _DOC, "server", "The server's release for a version is another."),
    _rule("session-fact", "added", _API, "", "A session fact is added."),
    _rule("session-fact", "gone", _API, "", "A session fact is removed."),
    _rule("session-fact", "renamed", _API, "", "A session fact has another name."),
    _rule("session-fact", "values", _API, "values", "A session fact has other values."),
    _rule("session-fact", "since", _DOC, "since", "The first version of a session fact is another."),
    _rule("block", "added", _API, "", "A block is added: one more value of `Decoder.block`."),
    _rule("block", "gone", _API, "", "A block is removed: one value fewer of `Decoder.block`."),
    _rule("block", "renamed", _API, "", "A block, and with it the value of `Decoder.block`, has another name."),
    _rule("message", "added", _WIRE, "", "A message is added."),
    _rule("message", "gone", _WIRE, "", "A message is removed."),
    _rule("message", "renamed", _API, "", "A message has another name; its tag and most of its layout are the same."),
    _rule("message", "tag", _WIRE, "", "A message begins with another tag.", _IS_WAS),
    _rule("message", "sender", _WIRE, "sender", "A message is sent by the other side (`from`)."),
    _rule("message", "since", _WIRE, "since", "An existing message is added to or removed from existing versions."),
    _rule("message", "also-since", _WIRE, "also_since", "Servers send a message to clients of other older versions."),
    _rule("message", "also-when", _WIRE, "also_when", "Servers send a message to older versions under another fact."),
    _rule("message", "place", _WIRE, "places", "A message has other legal places."),
    _rule("message", "when", _WIRE, "when", "A message comes under another session fact."),
    _rule("message", "carries", _API, "carries", "A message carries messages of other protocols, or of none."),
    _rule("message", "encoding", _WIRE, "tells_encoding", "A message sets the session's encoding by other fields."),
    _rule("message", "opens", _WIRE, "opens", "A message opens another block, or none."),
    _rule("message", "closes", _WIRE, "closes", "A message closes other blocks, or none."),
    _rule("message", "sets", _WIRE, "sets", "A message sets another session fact, or none."),
    _rule("message", "clears", _WIRE, "clears", "A message clears another session fact, or none."),
    _rule("message", "describes", _WIRE, "describes", "Another field identifies the described object in decoders."),
    _rule("message", "transaction", _API, "transaction", "A message has another effect on its transaction."),
    _rule("message", "release", _DOC, "release", "The server's release for a message is another."),
    _rule("message", "callback", _DOC, "callbacks", "Other callbacks of the plugin send a message."),
    _rule("part", "added", _API, "", "A part is added, and its class; the field of that type has its own finding."),
    _rule("part", "gone", _API, "", "A part is removed, and its class; the field of that type has its own finding."),
    _rule("part", "renamed", _API, "", "A part has another name; most of its layout is the same."),
    _rule("alternative", "added", _WIRE, "", "A part has one more alternative."),
    _rule("alternative", "gone", _WIRE, "", "A part has one alternative fewer."),
    _rule("alternative", "renamed", _API, "", "An alternative has another name; its tag is the same."),
    _rule("alternative", "since", _WIRE, "since", "An alternative is added to or removed from existing versions."),
    _rule("alternative", "tag", _WIRE, "", "An alternative begins with another tag.", _IS_WAS),
    _rule("field", "added", _WIRE, "", "A field is added."),
    _rule("field", "gone", _WIRE, "", "A field is removed."),
    _rule("field", "renamed", _API, "", "A field, and the column of that name, has another name; no bytes change."),
    _rule("field", "order", _WIRE, "", "A field has another position among the fields.", "comes {now}, came {was}"),
    _rule("field", "since", _WIRE, "since until", "An existing field is added to or removed from existing versions."),
    _rule(
        "field", "condition", _WIRE, "condition", "A field is present under another condition (`when`, `optional`).",
        "is present {now}, was present {was}",
    ),
    _rule("field", "size", _WIRE, "size", "A Byten takes its length from another field."),
    _rule("field", "repeat", _WIRE, "repeat", "A field has another count of repetitions, or none."),
    _rule("field", "measures", _WIRE, "measures", "A field becomes or stops being the length of its message."),
    _rule("field", "null", _WIRE, "may_be_null", "A field may now be null, or may no longer be null."),
    _rule("field", "type", _WIRE, "type", "A field has another type or width.", _IS_WAS),
    _rule(
        "field", "accepts", _WIRE, "accepts", "Other values are legal (constants, `values`, `boolean`, `nonzero`).",
        "accepts {now}, accepted {was}", "field-type",
    ),
    _rule(
        "field", "sign", _WIRE, "sign", "An integer of another named type becomes signed or unsigned.",
        _IS_WAS, "field-type",
    ),
    _rule("field", "looks-up", _WIRE, "looks_up", "A field refers to the object of another message, or to none."),
    _rule(
        "field", "python", _API, "python", "A field and its column have another type; bytes are the same.",
        "is {now} in Python, was {was}", "wire",
    ),
    _rule(
        "field", "epoch", _WIRE, "epoch", "Values of a field count from another moment.",
        unless="wire field-python",
    ),
    _rule(
        "field", "notation", _DOC, "notation", "The type of a field has another notation with the same meaning.",
        "is written {now}, was {was}", "wire field-python",
    ),
    _rule(
        "field", "column", _API, "batch_column", "A field's column in batches has another name.",
        "fills the column {now} of batches, was {was}", "field-renamed",
    ),
    _rule("field", "text", _API, "holds_text", "The bytes of a field become text, or are no longer text."),
    _rule("bit", "added", _API, "", "One more bit of a field has a name."),
    _rule("bit", "gone", _API, "", "A bit of a field no longer has a name."),
    _rule("bit", "renamed", _API, "", "A bit has another name."),
    _rule("bit", "moved", _WIRE, "", "A name means another bit."),
    _rule("value", "renamed", _API, "", "A value has another name."),
    _rule("value", "moved", _WIRE, "", "A name means another value."),
    _rule("type", "sign", _WIRE, "", "A named type, and with it every field of it, becomes signed or unsigned."),
    _rule("type", "python", _API, "", "A named type, and with it every field of it, has another class in Python."),
    _rule("type", "values", _WIRE, "values", "A named type, and with it every field of it, has other legal values."),
    _rule("type", "epoch", _WIRE, "epoch", "A named type, and with it every field of it, counts from another moment."),
    _rule("type", "arrow", _API, "arrow", "A named type, and with it each column, has another Arrow type."),
    _rule("type", "added", _DOC, "", "A named type is added."),
    _rule("type", "gone", _DOC, "", "A named type is removed."),
    _rule("type", "renamed", _DOC, "", "A named type has another name; its class in Python is the same."),
    _rule(
        "type", "definition", _DOC, "base signed python made_by",
        "A named type has another definition; no field changes.",
    ),
    _rule(
        "doc", "wording", _DOC, "title doc software outside described_as",
        "A title or `doc` has another text.", WORDS,
    ),
    _rule("doc", "note", _DOC, "note page_note", "A `note` or `page note` has another text.", WORDS),
    _rule(
        "doc", "reference", _DOC, "page anchor ref printed_as printed_under printed_apart listed_in checked_against",
        "A reference to PostgreSQL's documentation leads to another place.", WORDS,
    ),
    _rule(
        "doc", "order", _DOC, "session blocks messages parts places alternatives values",
        "Items have another order where order has no effect.", ORDER,
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""The rules by id, in the order of the table in spec/README.md."""


def rules_of(kind: str) -> Iterator[Rule]:
    """Return the rules that compare attributes of a kind of thing."""
    return (rule for rule in _TABLE if rule.of in (kind, "doc") and rule.attributes)


def rule_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the table in spec/README.md: rule id, severity, sentence."""
    for rule in _TABLE:
        both = rule.what == "added" and rule.of != "bit" and rule.severity in (_WIRE, _API)
        yield rule.id, f"{rule.severity}, {_ADDED}" if both else rule.severity, rule.sentence
