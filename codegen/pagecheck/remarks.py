"""Facts in a page's sentences about a row, a message or a table.

`OTHER` reports a sentence that no pattern matches, so that new or altered wording is noticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ConditionKind = Literal["streamed", "parallel", "optional", "previous", "depends", "other"]
BlockKind = Literal["fields", "each", "until zero", "after", "one of", "or", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a row, and its wording."""

    kind: ConditionKind
    text: str
    constants: tuple[str, ...] = ()
    """The tags in the wording, 'O' and 'K'."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Facts about a table in the text before it."""

    kind: BlockKind
    repeated_for: str | None = None
    """The noun after "for each"."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The alternative tags of a message, from the sentence after its table."""

    constants: tuple[str, ...]
    may_be_none: bool


@dataclass(frozen=True, slots=True)
class OlderRow:
    """A row's fixed length in older versions, from the sentence after the table."""

    subject: str
    """The row in words, "secret key"."""
    version: str
    """The name of the version that changed the row."""
    length: int


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")
_SINCE = re.compile(r"\bavailable since protocol version (\d{1,4})\b", re.ASCII)
_PRESENCE = re.compile(r"\b(?:present|optional|omitted|absent)\b|\bonly (?:if|when|for|in|during)\b", re.IGNORECASE)
_IN_PARENTHESES = re.compile(r"\(([^()]*)\)")
_AFTER_A_COMMA = re.compile(r",\s+((?:only|present)\b.*?)\.?$")
_QUOTED = re.compile(r"'(.)'")
_REPEATED = re.compile(r"\brepeated for each ([^.,:;()]+)")
_FOR_EACH = re.compile(r"\bfor each ([^.,:;()]+)|\bthen, for (?!each\b)([^.,:;()]+)", re.IGNORECASE)
_SPECIFIED = re.compile(r"\bEach (\w+) is specified as\b")
_PAIR = re.compile(r"\b(?:following (?:pair of )?fields? appears?|there is the following|is specified as)\b")
_AFTER = re.compile(r"^After the last \w+, the following fields? appears?\b")
_ENDED = re.compile(r"\bzero byte\b.*\bterminator\b")
_OF_OTHERS = re.compile(
    r"\bothers are optional\b|\bonly in PostgreSQL \d|\bused only for\b|\bonly appears if an Execute\b"
)
"""Sentences about the presence of something other than the row or table."""
_MUST_BE = re.compile(r"\(must be (\d{1,20})\)", re.ASCII)
_CHOICE = re.compile(
    r"\bmay contain either an? '(.)' message part or an? '(.)' message part( or neither of them)?,? but never both\b"
)
_OLDER = re.compile(r"\bBefore protocol version (\d[\d.]*), the ([a-z ]+) was always (\d{1,3}) bytes long\b", re.ASCII)
_NAMES = re.compile(r"following messages? \(([^()]*)\)")

_CONDITIONS: tuple[tuple[ConditionKind, re.Pattern[str]], ...] = (
    ("streamed", re.compile(r"^only present for streamed transactions$")),
    ("parallel", re.compile(r"^present only when streaming is set to parallel$")),
    ("previous", re.compile(r"^only present if the previous '.'(?: or '.')* part is present$", re.IGNORECASE)),
    ("optional", re.compile(r"^this field is optional and is only present if (?!not\b)", re.IGNORECASE)),
    ("depends", re.compile(r"^this field is (?:is )?present if (?!not\b)", re.IGNORECASE)),
)


def sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def since(text: str) -> int | None:
    """Return N of "available since protocol version N", the newest if several; None without."""
    return max((int(number) for number in _SINCE.findall(text)), default=None)


def condition(text: str) -> Condition | None:
    """Return the condition in a row's text; None without."""
    clauses = [clause for sentence in sentences(text) if (clause := _clause(sentence)) is not None]
    if not clauses:
        return None
    words = "; ".join(clauses)
    constants = tuple(_QUOTED.findall(words))
    for kind, pattern in _CONDITIONS:
        if len(clauses) == 1 and pattern.search(words):
            return Condition(kind, words, constants)
    return Condition("other", words, constants)


def _clause(sentence: str) -> str | None:
    """Return the part of a sentence about presence."""
    if not _PRESENCE.search(sentence) or _OF_OTHERS.search(sentence):
        return None
    for words in _IN_PARENTHESES.findall(sentence):
        if _PRESENCE.search(words):
            return str(words)
    if match := _AFTER_A_COMMA.search(sentence):
        return match[1]
    return sentence.rstrip(".")


def repeated(text: str) -> str | None:
    """Return "relation" for "repeated for each relation"; None if the row is not repeated."""
    match = _REPEATED.search(text)
    return match[1].strip() if match else None


def fixed_value(text: str) -> str | None:
    """Return the value of "(must be 0)", which later pages print as Int8(0)."""
    match = _MUST_BE.search(text)
    return match[1] if match else None


def boundary(text: str) -> Boundary:
    """Return the facts about a table in the text before it."""
    match = _FOR_EACH.search(text) or _SPECIFIED.search(text)
    subject = next((group.strip() for group in match.groups() if group), None) if match else None
    if re.fullmatch(r"or[:.]?", text, re.IGNORECASE):
        return Boundary("or")
    if re.search(r"\bone of the following (?:sub)?messages appears\b", text):
        return Boundary("one of", subject)
    if subject and re.search(r"\bfollowing message part appears\b", text):
        return Boundary("each", subject)
    if _AFTER.search(text):
        return Boundary("after")
    if _PAIR.search(text):
        return Boundary("until zero" if _ENDED.search(text) else "each", subject)
    return Boundary("other", subject)


def choice(text: str) -> Choice | None:
    """Return the tags of which at most one is present; None if the text is about something else."""
    match = _CHOICE.search(text)
    return Choice((match[1], match[2]), bool(match[3])) if match else None


def older_row(text: str) -> OlderRow | None:
    """Return a row's length in older versions; None if the text is about something else."""
    match = _OLDER.search(text)
    return OlderRow(match[2], match[1], int(match[3])) if match else None


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names in "The following messages (Stream Start, Stream Stop, and Stream Abort) …"."""
    match = _NAMES.search(text)
    if match is None:
        return ()
    return tuple(name.strip() for name in re.split(r",|\band\b", match[1]) if name.strip())


def is_about_the_following(text: str) -> bool:
    """Return whether a text between lists of messages describes the next list."""
    return re.search(r"\bthe following messages?\b", text, re.IGNORECASE) is not None
