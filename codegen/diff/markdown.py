"""A comparison as a review comment: a table of findings, and each changed layout, before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codegen.diff.fields import read, row_text
from codegen.diff.owners import own_and_inner
from codegen.diff.pair import Pair
from codegen.diff.rendering import Report, counts, summary
from codegen.diff.rules import Severity, rules_of
from codegen.diff.wording import key_of, one_line
from codegen.model.layouts import Message, Part
from codegen.model.model import Protocol
from codegen.shared import out_of_order

_Line = tuple[str, str, str]
"""The mark (changed, renamed, moved, gone, added or none), a row or key before, and after."""


def render_markdown(report: Report) -> str:
    """Return a table of findings, each affected layout before and after side by side, and the summary."""
    comparison = report.comparison
    lines = ["### Spec diff", "", f"{_escaped(report.title)}: {counts(report)}.", ""]
    if comparison.changes:
        lines += ["| severity | rule | what changed | versions | where |", "|---|---|---|---|---|"]
        for change in comparison.changes:
            severity = f"**{change.severity}**" if change.severity is Severity.WIRE else str(change.severity)
            acceptance = report.acceptance(change)
            texts = [
                f"{change.spot.subject} {change.text}" + (f" ({acceptance})" if acceptance else ""),
                change.versions,
                report.place(change) + report.old_place(change),
            ]
            lines.append(f"| {' | '.join([severity, f'`{change.rule.id}`', *map(_escaped, texts)])} |")
        lines.append("")
    if remarks := list(report.remarks()):
        lines += [*(f"- {level}: {_escaped(f'{place}: {text}')}" for level, place, text in remarks), ""]
    for pair in comparison.pairs:
        touched = {change.spot.layout for change in comparison.of_protocol(pair)}
        for name in dict.fromkeys([*_layouts(pair.new), *_layouts(pair.old)]):
            if name in touched:
                lines += [*_table(pair, name), ""]
    lines += [f"- {_escaped(line)}" for line in summary(report)]
    return "\n".join(lines) + "\n"


def _layouts(protocol: Protocol) -> dict[str, Message | Part]:
    return {layout.name: layout for layout in protocol.layouts}


def _table(pair: Pair, name: str) -> Iterator[str]:
    """Yield a layout before and after, with the names of each side."""
    old_name = next((old_layout for old_layout, new_layout in pair.names.layouts.items() if new_layout == name), name)
    originals, old, new = (_layouts(side) for side in (pair.original, pair.old, pair.new))
    yield f"#### {_escaped(name)}" + (f" (was {_escaped(old_name)})" if old_name != name else "")
    yield ""
    yield "| | before | after |"
    yield "|---|---|---|"
    lines = [
        *_keys(originals.get(old_name), old.get(name), new.get(name)),
        *_rows(_texts(originals.get(old_name)), _texts(old.get(name)), _texts(new.get(name))),
    ]
    for mark, old_text, new_text in lines:
        yield f"| {f'**{mark}**' if mark else ''} | {_code(old_text)} | {_code(new_text)} |"


def _keys(original: Message | Part | None, old: Message | Part | None, new: Message | Part | None) -> Iterator[_Line]:
    """Yield a message's changed keys."""
    if old is None or new is None:
        return
    for rule in rules_of("message"):
        for attribute in rule.attributes if rule.severity is not Severity.DOC else ():
            if read(attribute, old)[0] != read(attribute, new)[0]:
                old_text, new_text = (
                    f"{key_of(attribute)}: {read(attribute, side)[1] or 'none'}" for side in (original, new)
                )
                yield "changed", old_text, new_text


def _texts(layout: Message | Part | None) -> list[tuple[str, str]]:
    """Return the rows' names and texts; rows of alternatives have the alternative's name as a prefix."""
    return [
        (row.name if owner is layout else f"{owner.name}.{row.name}", row_text(row, owner))
        for owner in (own_and_inner(layout) if layout else ())
        for row in owner.fields
    ]


def _rows(
    original: Sequence[tuple[str, str]], old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]
) -> Iterator[_Line]:
    """Yield rows in the same order side by side, other rows on separate lines."""
    old_texts, new_texts = dict(old), dict(new)
    common = [name for name in new_texts if name in old_texts]
    moved = set(out_of_order([name for name in old_texts if name in common], common))
    rest = [(name, own, text) for (name, _), (own, text) in zip(old, original, strict=True)]

    def alone() -> Iterator[_Line]:
        while rest and (rest[0][0] in moved or rest[0][0] not in new_texts):
            name, own, text = rest.pop(0)
            yield "moved" if name in moved else "gone", f"{own}: {text}", ""

    for name, text in new:
        yield from alone()
        if name in old_texts and name not in moved:
            _, own, old_text = rest.pop(0)
            mark = "changed" if old_texts[name] != text else "renamed" if own != name else ""
            yield mark, f"{own}: {old_text}", f"{name}: {text}"
        else:
            yield "moved" if name in moved else "added", "", f"{name}: {text}"
    yield from alone()


def _code(text: str) -> str:
    """Return text as code in a table's cell, where a bar would end the cell."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{one_line(text)}{fence}".replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", one_line(text))
