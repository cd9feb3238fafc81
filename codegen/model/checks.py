"""Consistency checks of the spec that need more than one key."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codegen.model import server_checks, taken
from codegen.model.layouts import OUTSIDE, REST, Alternative, Field, Message, Part, distinguishing_offset, parts_used
from codegen.model.model import Protocol, SessionFact, fact_of, value_of
from codegen.model.names import class_name
from codegen.model.nodes import Findings, allowed
from codegen.model.notation import NAMES, Byte1, Byten, PartName, Unknown
from codegen.model.places import Place
from codegen.model.row_checks import check_rows
from codegen.model.versions import View, views

_MOST_FACTS = 7
"""The session facts that fit into a byte next to one bit: the columnar decoder's status of a message."""
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_FACT = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_ADDRESS = re.compile(r"https://[A-Za-z0-9./_-]+", re.ASCII)


def check(protocol: Protocol, findings: Findings, *, complete: bool, damaged: set[str]) -> None:
    """Add a finding for every inconsistency.

    Skips what could not be read: how messages fit together unless `complete`, and the rows of `damaged` layouts.
    """
    _check_protocol(protocol, findings)
    _check_names(protocol, findings)
    _check_versions(protocol, findings)
    _check_layouts(protocol, protocol.messages, protocol.parts, damaged, findings)
    if complete:
        _check_blocks(protocol, findings)
        for shown in views(protocol):
            if not shown.messages:
                findings.add(protocol.versions[shown.version - 1].place, f"version {shown.version} has no message")
        if not damaged:
            _check_parts(protocol, findings)
            server_checks.check(protocol, findings)
    for message in protocol.messages:
        _check_message(protocol, message, damaged, findings)
    _check_presence(protocol, findings)
    for shown in views(protocol):
        _check_view(shown, damaged, findings)


def _check_layouts(
    protocol: Protocol, messages: Iterable[Message], parts: Iterable[Part], damaged: set[str], findings: Findings
) -> None:
    layouts: list[Message | Part | Alternative] = [*messages, *parts]
    layouts += [other for part in parts for other in part.alternatives]
    for layout in layouts:
        if layout.name not in damaged:
            check_rows(protocol, layout, findings)


def _check_presence(protocol: Protocol, findings: Findings) -> None:
    """Each row of a layout that some version has is in a version."""
    shown: list[Message | Part | Alternative] = []
    for version in views(protocol):
        shown += [*version.messages, *version.parts, *(other for part in version.parts for other in part.alternatives)]
    names, places = ({layout.name for layout in shown}, {row.place for layout in shown for row in layout.fields})
    for layout in [*protocol.layouts, *protocol.alternatives]:
        for row in layout.fields if layout.name in names else ():
            if row.place not in places and not findings.has(row.place):
                findings.add(row.place, f"{layout.name}.{row.name} is in no version")


def _check_view(shown: View, damaged: set[str], findings: Findings) -> None:
    """Add findings on one version, unless the place already has a finding for all versions."""
    view_findings = Findings()
    _check_layouts(shown.protocol, shown.messages, shown.parts, damaged, view_findings)
    for part in shown.parts:
        if part.name in damaged:
            continue
        if part.alternatives:
            _check_alternatives(part, view_findings)
        elif not part.fields:
            view_findings.add(part.place, f"{part.name} is empty")
    for message in shown.messages:
        if message.name not in damaged:
            _check_constant_length(message, view_findings)
            if not message.fields:
                view_findings.add(message.place, f"{message.name} is empty")
            elif not message.is_tagged and (message.fields[0].when is not None or message.fields[0].size == REST):
                text = "has no tag, so its first row must be always present, with one byte or more"
                view_findings.add(message.fields[0].place, f"{message.name} {text}")
    if not damaged:
        _check_distinct(shown.messages, view_findings)
    places = {finding.place for finding in findings}
    for finding in view_findings:
        if finding.place not in places:
            findings.add(finding.place, f"in version {shown.version}: {finding.text}")
            places.add(finding.place)


def _check_constant_length(message: Message, findings: Findings) -> None:
    """A message with a constant length must have a fixed size."""
    for index, row in enumerate(message.fields):
        if row.measures is None or not row.is_constant:
            continue
        sizes = [_size(other) for other in message.fields[index:]]
        length = sum(size for size in sizes if size is not None)
        where = f"{message.name}.{row.name} is always {row.codes[0]}, but the length of the message"
        if None in sizes:
            findings.add(row.place, f"{where} is not always the same")
        elif row.codes[0] != length:
            findings.add(row.place, f"{where} is {length}")


def _size(row: Field) -> int | None:
    """Return a field's bytes; None if variable."""
    if row.repeat is not None or row.when is not None or row.optional:
        return None
    if isinstance(row.type, Byten):
        return row.type.count
    return row.width or None


def check_together(protocols: tuple[Protocol, ...], findings: Findings) -> None:
    """Add a finding for every conflict between protocols."""
    names: set[str] = set()
    modules: set[str] = set()
    for protocol in protocols:
        if protocol.name in names:
            findings.add(protocol.place, f"protocol {protocol.name!r} is defined twice")
        names.add(protocol.name)
        for version in protocol.versions:
            if f"{protocol.package}.{version.module}" in modules:
                findings.add(version.place, f"module {version.module!r} is defined twice")
            modules.add(f"{protocol.package}.{version.module}")
    for message in (message for protocol in protocols for message in protocol.messages):
        for carried in message.carries:
            if carried not in names:
                text = f"{message.name}: 'carries' names {carried!r}; {allowed(sorted(names), carried)}"
                findings.add(message.place, text)


def _check_protocol(protocol: Protocol, findings: Findings) -> None:
    if protocol.name and not _IDENTIFIER.fullmatch(protocol.name):
        findings.add(
            protocol.place, f"{protocol.name!r} is not a valid name of a protocol; lower-case letters, digits and _"
        )
    if protocol.page and not _ADDRESS.fullmatch(protocol.page):
        findings.add(protocol.place, f"{protocol.page!r} is not a page's URL; https://… is expected")
    for fact in protocol.session:
        if not _FACT.fullmatch(fact.name):
            findings.add(
                fact.place, f"{fact.name!r} is not a valid name of a session fact; lower-case words joined by _"
            )
        elif (owner := taken.fact(fact.name, protocol)) is not None:
            findings.add(fact.place, f"the session fact's name {fact.name!r} is taken by {owner}")
        elif fact.values and protocol.has_decoder:
            text = "has 'values', and batches have facts that are true or false only; the protocol needs a 'package'"
            findings.add(fact.place, f"{fact.name} {text}")
    for fact in protocol.session[_MOST_FACTS:]:
        findings.add(fact.place, f"{fact.name} is one session fact too many; the limit is {_MOST_FACTS}")
    for version in protocol.versions:
        if (owner := taken.module(version.module)) is not None:
            findings.add(version.place, f"the module's name {version.module!r} is taken by {owner}")


def _check_names(protocol: Protocol, findings: Findings) -> None:
    first: dict[str, Place] = {}
    named = [(layout.name, layout.place) for layout in protocol.layouts]
    named += [(alternative.name, alternative.place) for alternative in protocol.alternatives]
    rows = [row for layout in protocol.layouts for row in layout.fields if row.values]
    named += [(row.name.replace("_", " ").title(), row.place) for row in rows]
    for name, place in named:
        python = class_name(name)
        if (owner := taken.python_class(python, protocol)) is not None:
            findings.add(place, f"{name!r} would become the class {python}, a name that is taken by {owner}")
        elif python in first:
            findings.add(place, f"{name!r} is defined twice, first in {first[python]}")
        else:
            first[python] = place
    _check_distinct(protocol.messages, findings)
    refs: dict[str, Message | Part] = {}
    for layout in protocol.layouts:
        if layout.ref is not None and refs.setdefault(layout.ref, layout) is not layout:
            findings.add(
                layout.place, f"ref {layout.ref!r} of {layout.name} is also the ref of {refs[layout.ref].name}"
            )


def _check_distinct(messages: tuple[Message, ...], findings: Findings) -> None:
    """Messages that share a tag or have none differ in the session's state or in a constant."""
    for index, message in enumerate(messages):
        for other in messages[:index]:
            senders = [sender for sender in message.senders if sender in other.senders]
            are_readable = all(_is_tag(shown.fields) or not shown.is_tagged for shown in (message, other))
            if not senders or not are_readable or not message.fields or not other.fields or message.tag != other.tag:
                continue
            if distinguishing_offset(other, message) is None:
                rival = f"{other.name} ({other.place}), which the {senders[0]} sends too"
                findings.add(
                    message.fields[0].place,
                    f"tag '{message.tag}' of {message.name} is also the tag of {rival}"
                    if message.is_tagged
                    else f"{message.name} has no tag and no constant that distinguishes it from {rival}",
                )
                break


def _check_versions(protocol: Protocol, findings: Findings) -> None:
    newest = len(protocol.versions)
    dated: list[SessionFact | Message | Alternative] = [*protocol.session, *protocol.messages, *protocol.alternatives]
    for thing in dated:
        if thing.since > newest:
            findings.add(thing.place, f"{thing.name} is since version {thing.since}, but the newest is {newest}")


def _check_blocks(protocol: Protocol, findings: Findings) -> None:
    for block in protocol.blocks:
        opening = [message for message in protocol.messages if message.opens == block]
        if not opening:
            findings.add(protocol.place, f"no message opens the block {block!r}")
        if not any(block in message.closes for message in protocol.messages):
            findings.add(protocol.place, f"no message closes the block {block!r}")
    for fact in protocol.session:
        setters = [message for message in protocol.messages if message.sets == fact.name]
        clearers = [message for message in protocol.messages if message.clears == fact.name]
        if bool(setters) != bool(clearers) and not fact.values:
            findings.add(fact.place, f"{fact.name} is set or cleared by a message, but not both")
    used = {callback for message in protocol.messages for callback in message.callbacks}
    for callback in protocol.callbacks:
        if callback not in used:
            findings.add(protocol.place, f"callback {callback!r} sends no message")


def _check_facts(protocol: Protocol, message: Message, findings: Findings) -> None:
    """Facts with values always have a value; only such facts distinguish messages."""
    for key, named in (("when", message.when), ("sets", message.sets), ("clears", message.clears)):
        values = protocol.fact_values.get(fact_of(named) or "", ())
        problem = ""
        if key == "clears" and values:
            problem = "which always has a value"
        elif values and named is not None and not value_of(named):
            problem = f"but not which of its values: {', '.join(values)}"
        elif key == "when" and named is not None and not values:
            problem = "which has no values"
        if problem:
            findings.add(message.place, f"{message.name}: {key!r} names {fact_of(named)}, {problem}")


def _check_message(protocol: Protocol, message: Message, damaged: set[str], findings: Findings) -> None:
    _check_facts(protocol, message, findings)
    is_readable = message.name not in damaged and not isinstance(message.fields[0].type, Unknown)
    is_begun = _is_begun(message) and message.fields[0].since == message.since and message.fields[0].until is None
    if is_readable and not is_begun and (message.is_tagged or message.when is None):
        tag = message.fields[0]
        actual = f", not with {tag.type}" if tag.name == "tag" and not _tells(tag) else ""
        findings.add(tag.place, f"{message.name} must begin with its tag: '- tag: Byte1('X')'{actual}")
    within = [place for place in message.places if place not in (OUTSIDE, *message.closes)]
    if message.opens is not None and within:
        text = f"opens a block, so it must close {within[0]!r}, where it may stand"
        findings.add(message.place, f"{message.name} {text}")
    for block in message.closes:
        if message.places and block not in message.places:
            findings.add(message.place, f"{message.name} closes the block {block!r}, so its place must have that")


def _is_begun(message: Message) -> bool:
    """Return whether a message begins with its tag, or with bytes that are always the same."""
    first = message.fields[:1]
    return _is_tag(message.fields) or any(isinstance(row.type, Byten) and row.is_constant for row in first)


def _is_tag(fields: tuple[Field, ...]) -> bool:
    return bool(fields) and fields[0].name == "tag" and _tells(fields[0])


def _tells(row: Field) -> bool:
    """Return whether a byte is always present and constant, so that it identifies a layout."""
    return isinstance(row.type, Byte1) and row.is_constant and not row.optional and row.when is None


def _check_parts(protocol: Protocol, findings: Findings) -> None:
    parts = {part.name: part for part in protocol.parts}
    users: dict[str, list[str]] = {name: [] for name in parts}
    owners = [(message.name, message.fields) for message in protocol.messages]
    owners += [(part.name, _all_fields(part)) for part in protocol.parts]
    all_known = not any(isinstance(row.type, Unknown) for _, fields in owners for row in fields)
    for owner, fields in owners:
        choices = []
        for row in fields:
            if not isinstance(row.type, PartName):
                continue
            where, name = f"{owner}.{row.name}", row.type.name
            if name not in parts:
                near = allowed([*parts, *NAMES], name)
                findings.add(row.place, f"{where}: there is no part or type {name!r}; {near}")
                continue
            choices += [row] if parts[name].alternatives else []
            if owner not in users[name]:
                users[name].append(owner)
            if row in choices and row.repeat is None:
                findings.add(row.place, f"{where}: a part with 'one of' must be repeated")
            elif row in choices[1:]:
                findings.add(row.place, f"{where}: only one field of a layout can be of a part with 'one of'")
    for part in protocol.parts:
        if all_known and sorted(part.part_of) != sorted(users[part.name]):
            declared, actual = ", ".join(part.part_of), ", ".join(users[part.name]) or "nothing"
            findings.add(part.place, f"{part.name} says that it is part of {declared}, but it is part of {actual}")
        if part.alternatives:
            _check_alternatives(part, findings)
    for part in protocol.parts:
        if (circle := _circle(part, parts)) is not None:
            findings.add(part.place, f"{part.name} contains itself: {' > '.join(circle)}")


def _all_fields(part: Part) -> tuple[Field, ...]:
    return part.fields + tuple(row for alternative in part.alternatives for row in alternative.fields)


def _circle(start: Part, parts: dict[str, Part]) -> list[str] | None:
    """Return the path from a part back to itself; None if there is none."""
    trail: list[tuple[Part, list[str]]] = [(start, [start.name])]
    visited: set[str] = set()
    while trail:
        part, way = trail.pop()
        for name in parts_used(_all_fields(part)):
            if name == start.name:
                return [*way, name]
            if name in parts and name not in visited:
                visited.add(name)
                trail.append((parts[name], [*way, name]))
    return None


def _check_alternatives(part: Part, findings: Findings) -> None:
    """Alternatives have distinct tags, and fit into two columns: tags and values."""
    seen: dict[str, str] = {}
    tag_names = {alternative.fields[0].name for alternative in part.alternatives if alternative.fields}
    lengths = set()
    value_names = set()
    for alternative in part.alternatives:
        if not alternative.fields or any(isinstance(row.type, Unknown) for row in alternative.fields):
            continue
        tag, *rest = alternative.fields
        if not _tells(tag) or tag.since != alternative.since or tag.until is not None:
            findings.add(tag.place, f"{alternative.name} must begin with a constant: '- {tag.name}: Byte1('X')'")
            continue
        if alternative.tag in seen:
            other = seen[alternative.tag]
            findings.add(tag.place, f"'{alternative.tag}' of {alternative.name} is also the tag of {other}")
        seen[alternative.tag] = alternative.name
        if any(findings.has(row.place) for row in rest):
            continue
        values = [row for row in rest if row.name not in {other.size for other in rest}]
        value_names |= {row.name for row in values}
        lengths |= {str(row.type) for row in rest if row not in values}
        is_legal = all(isinstance(row.type, Byten) and row.size is not None and not row.may_be_null for row in values)
        if len(values) > 1 or not is_legal:
            findings.add(
                alternative.place, f"{alternative.name} may hold one value beside its tag, a Byten with its size"
            )
    if len(tag_names) > 1 or len(value_names) > 1:
        findings.add(
            part.place, f"the alternatives of {part.name} must use one name for their tags and one for their values"
        )
    if len(lengths) > 1:
        findings.add(part.place, f"the alternatives of {part.name} must have sizes of one type, not {sorted(lengths)}")
