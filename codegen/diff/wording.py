"""How findings and tables say things: a row on one line, the words in which texts differ, lists of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codegen.diff.owners import Owner, since_of
from codegen.spec.model import Field, Message
from codegen.spec.notation import Byte1

_CONTEXT = 3
"""How many equal words are shown around those that differ."""


def row_text(row: Field, owner: Owner) -> str:
    """A row of a layout without its name: `Int64 (XLogRecPtr), since 4, when parallel`.

    A `since` that is the layout's own is left out.
    """
    return ", ".join([str(row.type), *_modifiers(row, since_of(owner))])


def _modifiers(row: Field, since: int) -> Iterator[str]:
    if row.since > since:
        yield f"since {row.since}"
    for key, name in (("when", row.when), ("size", row.size), ("repeat", row.repeat), ("is", row.is_named)):
        if name is not None:
            yield f"{key} {name}"
    for key, there in (("optional", row.optional), ("nonzero", row.nonzero), ("boolean", row.boolean)):
        if there:
            yield key
    if row.bits:
        yield "bits " + " ".join(f"{bit}={name}" for bit, name in row.bits.items())
    if row.values:
        yield "values " + " ".join(f"{value}={name}" for value, name in row.values.items())


def condition_text(row: Field) -> str:
    """When a row is there, to be read after "is there"."""
    if row.when is not None:
        return f"when {row.when}"
    return "optionally" if row.optional else "always"


def constants_text(row: Field) -> str:
    """What is legal in a row, to be read after "is"."""
    if not row.constants:
        return f"one of {listed(row.values)}" if row.values else "any number"
    return " or ".join(f"'{one}'" if isinstance(row.type, Byte1) else str(one) for one in row.constants)


def message_keys(message: Message) -> dict[str, str]:
    """The keys of a message that say where it stands and what it does; "" for one that is absent."""
    return {
        "since": str(message.since),
        "also when": message.also_when or "",
        "from": message.sender,
        "place": ", ".join(message.places),
        "opens": message.opens or "",
        "closes": message.closes or "",
        "sets": message.sets or "",
        "clears": message.clears or "",
        "transaction": message.transaction or "",
    }


def is_was(what: str, before: str | None, after: str | None) -> str:
    """What a key says now and said before."""
    return f"'{what}' is {after or 'none'}, was {before or 'none'}"


def says(what: str, before: str, after: str) -> str:
    """How a text differs: the words that do, and a few around them."""
    if not before:
        return f'has a {what} now: "{after}"'
    if not after:
        return f'has no {what} any more, which said "{before}"'
    was, now = before.split(), after.split()
    head = _equal_words(was, now)
    tail = _equal_words(was[head:][::-1], now[head:][::-1])
    return f"'{what}' says {_excerpt(now, head, tail)}, said {_excerpt(was, head, tail)}"


def _equal_words(some: list[str], others: list[str]) -> int:
    """How many words are the same at the beginning."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(some), len(others)))


def _excerpt(words: list[str], head: int, tail: int) -> str:
    start, end = max(head - _CONTEXT, 0), min(len(words) - tail + _CONTEXT, len(words))
    return '"' + ("... " if start else "") + " ".join(words[start:end]) + (" ..." if end < len(words) else "") + '"'


def listed(names: Iterable[str]) -> str:
    """Names one after the other; `none` if there are none."""
    return ", ".join(names) or "none"
