"""What must fit together in the spec: every rule that takes more than one key to see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from codegen.spec import server_checks, taken
from codegen.spec.model import OUTSIDE, REST, Alternative, Field, Message, Part, Place, Protocol, parts_used
from codegen.spec.names import class_name
from codegen.spec.nodes import Findings, allowed
from codegen.spec.notation import NAMES, Byte1, Byten, Int, PartName, Unknown
from codegen.spec.versions import View, views

_MOST_FACTS = 7
"""The session facts that fit beside one bit in a byte, as the columnar decoder keeps them of a refused message."""
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_FACT = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_ADDRESS = re.compile(r"https://[A-Za-z0-9./_-]+", re.ASCII)


def check(protocol: Protocol, findings: Findings, *, complete: bool, damaged: set[str]) -> None:
    """Add a finding for everything that does not fit together.

    What cannot be judged, as it could not be read, is passed over: how messages go together unless `complete`, and how
    the rows of the `damaged` layouts do.
    """
    _check_protocol(protocol, findings)
    _check_names(protocol, findings)
    _check_versions(protocol, findings)
    if complete:
        _check_blocks(protocol, findings)
        if not damaged:
            _check_parts(protocol, findings)
            server_checks.check(protocol, findings)
    for message in protocol.messages:
        _check_message(protocol, message, damaged, findings)
    _check_layouts(protocol, protocol.messages, protocol.parts, damaged, findings)
    for shown in views(protocol):
        _check_view(shown, damaged, findings)


def _check_layouts(
    protocol: Protocol, messages: Iterable[Message], parts: Iterable[Part], damaged: set[str], findings: Findings
) -> None:
    layouts: list[Message | Part | Alternative] = [*messages, *parts]
    layouts += [other for part in parts for other in part.alternatives]
    for layout in layouts:
        if layout.name not in damaged:
            _check_layout(protocol, layout, findings)


def _check_view(shown: View, damaged: set[str], findings: Findings) -> None:
    """Add a finding for what does not fit together in a version, where nothing is found in all of them already."""
    found = Findings()
    _check_layouts(shown.protocol, shown.messages, shown.parts, damaged, found)
    for part in shown.parts:
        if part.name in damaged:
            continue
        if part.alternatives:
            _check_alternatives(part, found)
        elif not part.fields:
            found.add(part.place, f"{part.name} is empty")
    places = {finding.place for finding in findings}
    for finding in found:
        if finding.place not in places:
            findings.add(finding.place, f"in version {shown.version}: {finding.text}")
            places.add(finding.place)


def check_together(protocols: tuple[Protocol, ...], findings: Findings) -> None:
    """Add a finding for everything in which the protocols do not fit each other."""
    names: set[str] = set()
    modules: set[str] = set()
    for protocol in protocols:
        if protocol.name in names:
            findings.add(protocol.place, f"protocol {protocol.name!r} is there twice")
        names.add(protocol.name)
        for version in protocol.versions:
            if version.module in modules:
                findings.add(version.place, f"module {version.module!r} is there twice")
            modules.add(version.module)


def _check_protocol(protocol: Protocol, findings: Findings) -> None:
    if protocol.name and not _IDENTIFIER.fullmatch(protocol.name):
        findings.add(protocol.place, f"{protocol.name!r} is no name of a protocol; lower-case letters, digits and _")
    if protocol.page and not _ADDRESS.fullmatch(protocol.page):
        findings.add(protocol.place, f"{protocol.page!r} is no address of a page; https://… is expected")
    for fact in protocol.session:
        if not _FACT.fullmatch(fact.name):
            findings.add(fact.place, f"{fact.name!r} is no name of a session fact; lower-case words joined by _")
        elif (owner := taken.fact(fact.name, protocol)) is not None:
            findings.add(fact.place, f"the session fact's name {fact.name!r} is taken by {owner}")
    for fact in protocol.session[_MOST_FACTS:]:
        findings.add(fact.place, f"{fact.name} is one session fact too many; there may be {_MOST_FACTS}")
    for version in protocol.versions:
        if (owner := taken.module(version.module)) is not None:
            findings.add(version.place, f"the module's name {version.module!r} is taken by {owner}")


def _check_names(protocol: Protocol, findings: Findings) -> None:
    first: dict[str, Place] = {}
    named = [(message.name, message.place) for message in protocol.messages]
    named += [(part.name, part.place) for part in protocol.parts]
    named += [(alternative.name, alternative.place) for part in protocol.parts for alternative in part.alternatives]
    layouts: list[Message | Part] = [*protocol.messages, *protocol.parts]
    rows = [row for layout in layouts for row in layout.fields if row.values]
    named += [(row.name.replace("_", " ").title(), row.place) for row in rows]
    for name, place in named:
        python = class_name(name)
        if (owner := taken.python_class(python, protocol)) is not None:
            findings.add(place, f"{name!r} would become the class {python}, a name that is taken by {owner}")
        elif python in first:
            findings.add(place, f"{name!r} is there twice, first in {first[python]}")
        else:
            first[python] = place
    tags: dict[tuple[str, str], Message] = {}
    for message in protocol.messages:
        if not _is_tag(message.fields):
            continue
        other = tags.setdefault((message.sender, message.tag), message)
        if other is not message:
            findings.add(
                message.fields[0].place,
                f"tag '{message.tag}' of {message.name} is also that of {other.name} ({other.place}), "
                f"which the {message.sender} sends too",
            )
    refs: dict[str, Message | Part] = {}
    for layout in layouts:
        if layout.ref is not None and refs.setdefault(layout.ref, layout) is not layout:
            findings.add(layout.place, f"ref {layout.ref!r} of {layout.name} is also that of {refs[layout.ref].name}")


def _check_versions(protocol: Protocol, findings: Findings) -> None:
    newest = len(protocol.versions)
    for fact in protocol.session:
        if fact.since > newest:
            findings.add(fact.place, f"{fact.name} is since version {fact.since}, but the newest is {newest}")
    for message in protocol.messages:
        if message.since > newest:
            findings.add(message.place, f"{message.name} is since version {message.since}, but the newest is {newest}")

    for part in protocol.parts:
        for other in part.alternatives:
            if other.since > newest:
                findings.add(other.place, f"{other.name} is since version {other.since}, but the newest is {newest}")


def _check_blocks(protocol: Protocol, findings: Findings) -> None:
    for block in protocol.blocks:
        for verb in ("opens", "closes"):
            messages = [message for message in protocol.messages if getattr(message, verb) == block]
            if len(messages) != 1:
                named = ", ".join(message.name for message in messages) or "none"
                findings.add(protocol.place, f"one message {verb} the block {block!r}, but here it is {named}")
    for fact in protocol.session:
        setters = [message for message in protocol.messages if message.sets == fact.name]
        clearers = [message for message in protocol.messages if message.clears == fact.name]
        if bool(setters) != bool(clearers):
            findings.add(fact.place, f"{fact.name} is set or cleared by a message, but not both")
    used = {callback for message in protocol.messages for callback in message.callbacks}
    for callback in protocol.callbacks:
        if callback not in used:
            findings.add(protocol.place, f"callback {callback!r} sends no message")


def _check_message(protocol: Protocol, message: Message, damaged: set[str], findings: Findings) -> None:
    if message.name not in damaged and not (_is_tag(message.fields) and message.fields[0].since == message.since):
        findings.add(message.fields[0].place, f"{message.name} must begin with its tag: '- tag: Byte1('X')'")
    if message.opens is not None and message.places not in ((), (OUTSIDE,)):
        findings.add(message.place, f"{message.name} opens a block, so its place must be {OUTSIDE!r} alone")
    own = {message.closes}
    if message.closes is not None and message.places and not own <= set(message.places) <= own | {OUTSIDE}:
        places = f"{message.closes!r}, with or without {OUTSIDE!r}"
        findings.add(message.place, f"{message.name} closes a block, so its place must be {places}")


def _is_tag(fields: tuple[Field, ...]) -> bool:
    return bool(
        fields
        and fields[0].name == "tag"
        and isinstance(fields[0].type, Byte1)
        and len(fields[0].type.constants) == 1
        and not fields[0].optional
        and fields[0].when is None
    )


def _check_parts(protocol: Protocol, findings: Findings) -> None:
    parts = {part.name: part for part in protocol.parts}
    users: dict[str, list[str]] = {name: [] for name in parts}
    owners = [(message.name, message.fields) for message in protocol.messages]
    owners += [(part.name, _all_fields(part)) for part in protocol.parts]
    for owner, fields in owners:
        for row in fields:
            if isinstance(row.type, PartName):
                if row.type.name not in parts:
                    text = f"{owner}.{row.name}: there is no part or type {row.type.name!r}"
                    near = allowed([*parts, *NAMES], row.type.name)
                    findings.add(row.place, f"{text}; {near}")
                elif parts[row.type.name].alternatives and row.repeat is None:
                    findings.add(row.place, f"{owner}.{row.name}: a part with 'one of' must be repeated")
                elif parts[row.type.name].alternatives and row is not _first_choice(fields, parts):
                    findings.add(
                        row.place, f"{owner}.{row.name}: only one field of a layout can be of a part with 'one of'"
                    )
                elif owner not in users[row.type.name]:
                    users[row.type.name].append(owner)
    for part in protocol.parts:
        if sorted(part.part_of) != sorted(users[part.name]):
            said, found = ", ".join(part.part_of), ", ".join(users[part.name]) or "nothing"
            findings.add(part.place, f"{part.name} says that it is part of {said}, but it is part of {found}")
        if part.alternatives:
            _check_alternatives(part, findings)
    for part in protocol.parts:
        if (circle := _circle(part, parts)) is not None:
            findings.add(part.place, f"{part.name} contains itself: {' > '.join(circle)}")


def _first_choice(fields: tuple[Field, ...], parts: Mapping[str, Part]) -> Field | None:
    """The first field of a part with 'one of'."""
    return next(
        (row for row in fields for name in parts_used((row,)) if name in parts and parts[name].alternatives), None
    )


def _all_fields(part: Part) -> tuple[Field, ...]:
    return part.fields + tuple(row for alternative in part.alternatives for row in alternative.fields)


def _circle(start: Part, parts: dict[str, Part]) -> list[str] | None:
    """The way from a part back to itself."""
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
    """Alternatives are told apart by a tag, and held as two columns: the tags, and the values of those with one."""
    seen: dict[str, str] = {}
    tag_names = {alternative.fields[0].name for alternative in part.alternatives if alternative.fields}
    lengths = set()
    value_names = set()
    for alternative in part.alternatives:
        if not alternative.fields or any(isinstance(row.type, Unknown) for row in alternative.fields):
            continue
        tag, *rest = alternative.fields
        constant = isinstance(tag.type, Byte1) and len(tag.type.constants) == 1 and not (tag.optional or tag.when)
        if not constant or tag.since != alternative.since:
            findings.add(tag.place, f"{alternative.name} must begin with a constant: '- {tag.name}: Byte1('X')'")
            continue
        character = str(tag.constants[0])
        if character in seen:
            findings.add(tag.place, f"'{character}' of {alternative.name} is also that of {seen[character]}")
        seen[character] = alternative.name
        values = [row for row in rest if row.name not in {other.size for other in rest}]
        value_names |= {row.name for row in values}
        lengths |= {str(row.type) for row in rest if row not in values}
        if len(values) > 1 or any(not isinstance(row.type, Byten) for row in values):
            findings.add(
                alternative.place, f"{alternative.name} may hold one value beside its tag, a Byten with its size"
            )
    if len(tag_names) > 1 or len(value_names) > 1:
        findings.add(part.place, f"the alternatives of {part.name} must name their tags alike, and their values")
    if len(lengths) > 1:
        findings.add(part.place, f"the alternatives of {part.name} must have sizes of one type, not {sorted(lengths)}")


def _check_layout(protocol: Protocol, layout: Message | Part | Alternative, findings: Findings) -> None:
    owner, fields = layout.name, layout.fields
    seen: dict[str, Field] = {}
    names = [row.name for row in fields]
    sizes_used: set[str] = set()
    for index, row in enumerate(fields):
        where = f"{owner}.{row.name}"
        if row.name in seen:
            findings.add(row.place, f"{where} is there twice, first in line {seen[row.name].place.line}")
        what = taken.attribute(row.name)
        if not isinstance(layout, Alternative) and any(row.name == fact.name for fact in protocol.session):
            what = "a session fact"
        if what is not None and not (row.name == "tag" and index == 0):
            findings.add(row.place, f"{where}: the name {row.name!r} is taken by {what}")
        for bit in row.bits.values():
            others = [name for other in seen.values() for name in other.bits.values()]
            what = "another field or bit" if bit in (*names, *others) else taken.attribute(bit)
            if what is not None:
                findings.add(row.place, f"{where}: the bit's name {bit!r} is taken by {what}")
        _check_since(protocol, where, row, layout.since, findings)
        _check_when(protocol, where, row, seen, fields, findings)
        _check_extent(where, row, seen, names, fields, sizes_used, findings)
        _check_value(protocol, where, row, findings)
        if row.optional:
            _check_optional(where, index, fields, findings)
        seen.setdefault(row.name, row)


def _check_since(protocol: Protocol, where: str, row: Field, since: int, findings: Findings) -> None:
    newest = len(protocol.versions)
    if row.since > newest and row.since != since:
        findings.add(row.place, f"{where} is since version {row.since}, but the newest is {newest}")
    if row.since < since:
        findings.add(row.place, f"{where} is since version {row.since}, but what it belongs to is since {since}")


def _check_when(
    protocol: Protocol,
    where: str,
    row: Field,
    seen: dict[str, Field],
    fields: tuple[Field, ...],
    findings: Findings,
) -> None:
    if row.when is None:
        return
    names = [other.name for other in fields]
    facts = {fact.name: fact for fact in protocol.session}
    if row.when in facts and "tag" not in names:
        findings.add(row.place, f"{where}: only the fields of a message can depend on {row.when}, not those of a part")
        return
    if row.when in facts:
        if all(len(other.constants) == 1 for other in fields if other.when == row.when):
            findings.add(
                row.place, f"{where}: only constants depend on {row.when}, so no attribute tells whether it is"
            )
        if row.since < facts[row.when].since:
            findings.add(
                row.place,
                f"{where} is since version {row.since}, but {row.when} is known since {facts[row.when].since} only",
            )
        return
    earlier = [name for name, other in seen.items() if other.optional]
    if row.when in seen and not seen[row.when].optional:
        problem = "is always there"
    elif row.when not in seen and row.when in names:
        problem = "comes later"
    elif row.when not in seen:
        problem = "is nothing"
    else:
        return
    near = allowed([*facts, *earlier], row.when)
    findings.add(row.place, f"{where}: 'when' names {row.when!r}, which {problem}; {near}")


def _check_extent(
    where: str,
    row: Field,
    seen: dict[str, Field],
    names: list[str],
    fields: tuple[Field, ...],
    sizes_used: set[str],
    findings: Findings,
) -> None:
    """A size for every Byten and nothing else; a count for what repeats; each an earlier integer used once."""
    if isinstance(row.type, Unknown):
        return
    is_bytes = isinstance(row.type, Byten)
    if is_bytes and row.size is None:
        findings.add(row.place, f"{where} has no 'size'; allowed: an earlier integer, or {REST}")
    if not is_bytes and row.size is not None:
        findings.add(row.place, f"{where}: 'size' belongs to a Byten only")
    if row.size == REST:
        if row is not fields[-1] or "tag" not in names:
            findings.add(row.place, f"{where}: only the last field of a message can take the rest")
        return
    if row.repeat is not None and (not isinstance(row.type, PartName | Int) or row.constants):
        findings.add(row.place, f"{where}: 'repeat' belongs to an integer without constant or a part only")
    for key, target in (("size", row.size), ("repeat", row.repeat)):
        if target is None:
            continue
        integers = [name for name, other in seen.items() if _is_plain_integer(other)]
        if target not in integers:
            problem = "comes later" if target in names else "is nothing"
            problem = "is no plain integer" if target in seen else problem
            near = allowed(integers, target)
            findings.add(row.place, f"{where}: {key!r} names {target!r}, which {problem}; {near}")
        elif target in sizes_used:
            findings.add(row.place, f"{where}: {key!r} names {target}, which is used already")
        elif row.when is not None:
            findings.add(row.place, f"{where}: {key!r} cannot go with 'when'")
        elif seen[target].since > row.since:
            findings.add(
                row.place, f"{where}: {key!r} names {target}, which is since version {seen[target].since} only"
            )
        sizes_used.add(target)


def _is_plain_integer(row: Field) -> bool:
    return isinstance(row.type, Unknown) or (
        isinstance(row.type, Int)
        and not row.constants
        and row.named_type is None
        and row.when is None
        and row.repeat is None
        and not (row.bits or row.values or row.boolean or row.nonzero)
    )


def _check_value(protocol: Protocol, where: str, row: Field, findings: Findings) -> None:
    named = row.named_type
    if isinstance(row.type, Unknown):
        return
    if isinstance(row.type, Int) and named is not None:
        if row.is_named is not None and (row.type.name is not None or row.constants):
            findings.add(row.place, f"{where}: 'is' belongs to an integer without name and constant only")
        elif named not in protocol.types:
            findings.add(row.place, f"{where}: {named!r} is no named type; {allowed(protocol.types, named)}")
        elif protocol.types[named].base != row.type.base:
            findings.add(row.place, f"{where}: {named} is {protocol.types[named].base}, not {row.type.base}")
    elif row.is_named is not None:
        findings.add(row.place, f"{where}: 'is' belongs to an integer without name and constant only")
    one_byte = isinstance(row.type, Byte1) or (isinstance(row.type, Int) and row.type.base == "Int8")
    free = not row.constants and named is None and row.repeat is None
    for key, there in (("boolean", row.boolean), ("bits", bool(row.bits)), ("values", bool(row.values))):
        if there and not (one_byte and free):
            findings.add(row.place, f"{where}: {key!r} belongs to an Int8 or Byte1 without constant only")
    if sum((row.boolean, bool(row.bits), bool(row.values))) > 1:
        findings.add(row.place, f"{where}: only one of 'boolean', 'bits' and 'values' can be there")
    if row.nonzero and not (isinstance(row.type, Int) and not row.constants and row.repeat is None):
        findings.add(row.place, f"{where}: 'nonzero' belongs to an integer without constant only")
    if isinstance(row.type, Byte1) and free and not (row.boolean or row.bits or row.values):
        findings.add(row.place, f"{where}: a Byte1 needs a constant, 'boolean', 'bits' or 'values'")


def _check_optional(where: str, index: int, fields: tuple[Field, ...], findings: Findings) -> None:
    """What follows an optional tag must tell, by its own constant, that the tag is absent."""
    row = fields[index]
    if any(isinstance(other.type, Unknown) for other in fields[index:]):
        return
    if not isinstance(row.type, Byte1) or len(row.constants) < 2 or row.when is not None:
        findings.add(row.place, f"{where}: 'optional' belongs to a Byte1 with two or more constants only")
        return
    rest = list(fields[index + 1 :])
    depending = [other for other in rest if other.when == row.name]
    if not depending or rest[: len(depending)] != depending:
        findings.add(row.place, f"{where}: the fields that follow it at once must be those with 'when: {row.name}'")
        return
    after = rest[len(depending) :]
    if not after or not isinstance(after[0].type, Byte1) or after[0].optional or after[0].when is not None:
        findings.add(row.place, f"{where}: a constant of one byte must follow, to tell whether it is there")
    elif set(after[0].constants) & set(row.constants):
        findings.add(row.place, f"{where} and {after[0].name} share a constant, so neither tells which is there")
