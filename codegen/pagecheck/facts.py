"""Facts in a row's description that the spec has as modifiers and named types, beyond the row's type and presence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codegen.model.layouts import MESSAGE, REST, Field
from codegen.model.notation import Int
from codegen.pagecheck.expected import ExpectedRow
from codegen.pagecheck.quoting import quoted
from codegen.pagecheck.wording import words

NAMED_TYPES: Mapping[str, re.Pattern[str]] = {
    "TimestampTz": re.compile(r"\bmicroseconds since midnight on 2000-01-01\b"),
    "FullTransactionId": re.compile(r"\balong with its epoch\b"),
    "Epoch": re.compile(r"^The epoch of\b"),
    "TransactionId": re.compile(r"^The (?:standby's current global|lowest catalog_)xmin\b|^The .*\bglobal xmin,"),
    "XLogRecPtr": re.compile(r"\bWAL\b"),
    "Oid": re.compile(r"\bobject ID\b"),
    "FormatCode": re.compile(r"\bzero \(text\) or one \(binary\)"),
    "CopyFormat": re.compile(r"^0 indicates the overall COPY format\b"),
    "Count": re.compile(r"\bnumber of\b", re.IGNORECASE),
}
"""The wording of a named type that the page does not print in parentheses; the first match counts."""

_NOT_TOLD = {"Count"}
"""Types whose wording does not tell them from a signed integer."""

_LENGTH = re.compile(r"\blength of message contents in bytes, including self\b", re.IGNORECASE)
NULL = re.compile(r"(?<!\w)-1 indicates a NULL\b|\bor -1 if there is no\b")
_TO_THE_END = re.compile(r"\bextends to the end of the message\b")
_LETTER = re.compile(r"'(\w)'([^']*)")
_NUMBER = re.compile(r"(?<![-\w])(\d)\b([^0-9]*)", re.ASCII)
_IN_WORDS = re.compile(r"\b(zero|one) \((\w+)\)")
_COUNTS = re.compile(r"\bnumber\b", re.IGNORECASE)
_MEASURES = re.compile(r"\blength\b", re.IGNORECASE)


def facts_that_differ(description: str, wanted: ExpectedRow) -> Iterator[tuple[str, str]]:
    """Yield the differing facts, printed and specified."""
    field, measured = wanted.field, wanted.measured
    checks = (
        (_LENGTH.search(description) is not None) == (field.measures == MESSAGE) or f"measures: {field.measures}",
        _named_type_fits(description, wanted),
        _null_fits(description, field, measured),
        not _TO_THE_END.search(description) or field.size == REST or f"size: {field.size}",
        _measured_fits(description, field, measured),
        _letters_fit(description, field),
    )
    yield from ((quoted(description), quoted(check)) for check in checks if isinstance(check, str))


def _named_type_fits(description: str, wanted: ExpectedRow) -> bool | str:
    field = wanted.field
    if not isinstance(field.type, Int) or field.type.name is not None or field.boolean:
        return True
    named = field.is_named
    specified = f"is: {named}" if named else "no named type"
    told = next((name for name, wording in NAMED_TYPES.items() if wording.search(description)), None)
    if named is None and told not in _NOT_TOLD:
        return told is None or specified
    if named in NAMED_TYPES and named != told:
        return specified
    return _values_fit(description, wanted.values)


def _values_fit(description: str, values: Mapping[int, str]) -> bool | str:
    """Return whether the description names the values of an enumeration by number."""
    listed = {("zero", "one").index(number): name for number, name in _IN_WORDS.findall(description)}
    listed = listed or {int(number): after for number, after in _NUMBER.findall(description)}
    texts = {number: re.findall(r"\w+", listed.get(number, "")) for number in values}
    if all(any(word.startswith(name) for word in texts[number]) for number, name in values.items()):
        return True
    return ", ".join(f"{number}: {name}" for number, name in values.items())


def _null_fits(description: str, field: Field, measured: Field | None) -> bool | str:
    is_told = NULL.search(description) is not None
    may_be_null = measured is not None and measured.may_be_null
    if is_told == may_be_null:
        return True
    return "may be null: true" if may_be_null else f"{(measured or field).name} without may be null"


def _measured_fits(description: str, field: Field, measured: Field | None) -> bool | str:
    """Return whether the description calls the row a number or a length, if another row is repeated or sized by it."""
    if measured is None:
        return True
    if measured.repeat == field.name:
        return _COUNTS.search(description) is not None or f"repeat: {field.name}"
    return _MEASURES.search(description) is not None or f"size: {field.name}"


def _letters_fit(description: str, field: Field) -> bool | str:
    """Return whether the description names the values of a character, if it has any in quotes."""
    listed = {letter: words(after) for letter, after in _LETTER.findall(description)}
    if not listed or not field.values:
        return True
    fits = listed.keys() == field.values.keys() and all(
        words(name.replace("_", " ")) <= listed[letter] for letter, name in field.values.items()
    )
    return fits or ", ".join(f"{letter}: {name}" for letter, name in field.values.items())
