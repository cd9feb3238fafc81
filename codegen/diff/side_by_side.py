"""A layout before and after, row by row, with a mark at what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codegen.diff.compare import Comparison
from codegen.diff.owners import Owner
from codegen.diff.pair import Pair
from codegen.diff.rows import out_of_order
from codegen.diff.rules import Severity
from codegen.diff.wording import message_keys, row_text
from codegen.spec.model import Alternative, Message, Part, Protocol


@dataclass(frozen=True)
class Line:
    """A row or key on both sides, "" on the one that has it not."""

    mark: str
    """changed, renamed, moved, gone or new; "" for what is as it was."""
    before: str
    after: str


@dataclass(frozen=True)
class Table:
    """A layout on both sides."""

    protocol: str
    name: str
    """Its name now, or before if it is gone."""
    old_name: str
    lines: tuple[Line, ...]


def tables(comparison: Comparison) -> Iterator[Table]:
    """Every message and part with a finding that is more than wording, in the order of the page."""
    for pair in comparison.pairs:
        touched = {
            change.spot.layout
            for change in comparison.changes
            if change.protocol == pair.new.name and change.severity is not Severity.DOC
        }
        old_names = {now: was for was, now in pair.names.layouts.items()}
        originals, old, new = _layouts(pair.original), _layouts(pair.old), _layouts(pair.new)
        for name in [*new, *(name for name in old if name not in new)]:
            if name in touched:
                old_name = old_names.get(name, name)
                lines = _lines(pair, originals.get(old_name), old.get(name), new.get(name))
                yield Table(pair.new.name, name, old_name, tuple(lines))


_Layout = Message | Part


def _layouts(protocol: Protocol) -> dict[str, _Layout]:
    layouts: list[_Layout] = [*protocol.messages, *protocol.parts]
    return {layout.name: layout for layout in layouts}


def _lines(pair: Pair, original: _Layout | None, old: _Layout | None, new: _Layout | None) -> Iterator[Line]:
    if isinstance(original, Message) and isinstance(old, Message) and isinstance(new, Message):
        yield from _keys(message_keys(original), message_keys(old), message_keys(new))
    yield from _rows(_Rows(original), _Rows(old), _Rows(new))
    before = {layout.name: layout for layout in _alternatives(old)}
    after = {layout.name: layout for layout in _alternatives(new)}
    originals = {pair.names.layouts.get(layout.name, layout.name): layout for layout in _alternatives(original)}
    for name in [*after, *(name for name in before if name not in after)]:
        yield from _rows(
            _Rows(originals.get(name) if name in before else None), _Rows(before.get(name)), _Rows(after.get(name))
        )


def _alternatives(layout: _Layout | None) -> tuple[Alternative, ...]:
    return layout.alternatives if isinstance(layout, Part) else ()


def _keys(original: Mapping[str, str], old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Line]:
    """The keys that changed; those that did not are no part of a layout."""
    for key, after in new.items():
        if old[key] != after:
            yield Line("changed", f"{key}: {original[key] or 'none'}", f"{key}: {after or 'none'}")


class _Rows:
    """The rows of a layout as texts."""

    def __init__(self, layout: Owner | None) -> None:
        prefix = f"{layout.name}." if isinstance(layout, Alternative) else ""
        texts = {} if layout is None else {row.name: row_text(row, layout) for row in layout.fields}
        self.names = list(texts)
        self.paths = [f"{prefix}{name}" for name in texts]
        self.texts = [f"{prefix}{name}: {text}" for name, text in texts.items()]


def _rows(original: _Rows, old: _Rows, new: _Rows) -> Iterator[Line]:
    """Rows that stay in their order side by side, all others on a line of their own."""
    common = [name for name in new.names if name in old.names]
    moved = set(out_of_order([name for name in old.names if name in common], common))
    anchored = [name for name in common if name not in moved]
    rest = list(range(len(old.names)))

    def alone() -> Iterator[Line]:
        while rest and old.names[rest[0]] not in anchored:
            index = rest.pop(0)
            yield Line("moved" if old.names[index] in moved else "gone", original.texts[index], "")

    for index, name in enumerate(new.names):
        yield from alone()
        if name in anchored:
            was = rest.pop(0)
            yield Line(_mark(original, old, new, was, index), original.texts[was], new.texts[index])
        else:
            yield Line("moved" if name in moved else "new", "", new.texts[index])
    yield from alone()


def _mark(original: _Rows, old: _Rows, new: _Rows, was: int, now: int) -> str:
    if old.texts[was] != new.texts[now]:
        return "changed"
    return "renamed" if original.paths[was] != new.paths[now] else ""
