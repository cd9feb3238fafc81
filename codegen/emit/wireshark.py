"""The spec as a dissector for Wireshark: `python -m codegen lua`. The template interprets operations, given as data."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codegen.emit.choices import choices_by_sender
from codegen.emit.rendering import joined, render
from codegen.lowering.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
)
from codegen.lowering.rows import lower
from codegen.model.layouts import Alternative, Message, Part
from codegen.model.model import Protocol, fact_of, value_of
from codegen.model.names import class_name, snake_case
from codegen.model.places import Finding, SpecError
from codegen.model.reader import load_either
from codegen.model.versions import View, views
from codegen.shared import add_spec

_HAND_ON = Path(__file__).parent / "pgsql.lua"
"""The program that finds the carried messages of PostgreSQL's sessions."""
_TIMES = "timestamp[us, UTC]"
_POSITIONS = "Lsn"
"""The class whose numbers are printed as two hexadecimal halves."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the file of the dissector, NAME.lua")
    add_spec(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file and return the exit code. Raises SpecError for a faulty spec."""
    options.file.write_text(dissector(load_either(options.spec, options.project)), encoding="utf-8")
    print(f"wrote {options.file}")
    return 0


def dissector(protocols: Iterable[Protocol]) -> str:
    """Return the text of the dissector. Raises SpecError if it cannot read a row.

    Wireshark reads the protocol that carries others: the dissector reads what CopyData carries, of several protocols
    the first. Without such a protocol, the dissector reads TCP.
    """
    all_protocols = tuple(protocols)
    carried = {message.carries[0] for protocol in all_protocols for message in protocol.messages if message.carries}
    included = [protocol for protocol in all_protocols if not carried or protocol.name in carried]
    outermost = [
        message.carries[0]
        for protocol in all_protocols
        if protocol not in included
        for message in protocol.messages
        if message.carries
    ]
    return render(
        "wireshark.lua.j2",
        protocols=[(protocol, _data(protocol)) for protocol in included],
        carried=outermost[0] if outermost else "",
        carriers=joined(protocol.name for protocol in all_protocols if protocol not in included),
        hand_on=_HAND_ON.read_text(encoding="utf-8"),
        lua=lua,
    )


def lua(value: Any) -> str:
    """Return a value as a literal of Lua."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            return f'"{text}"'
        case Mapping():
            items = (f"{key} = " if isinstance(key, str) else f"[{key}] = " for key in value)
            return f"{{{', '.join(key + lua(item) for key, item in zip(items, value.values(), strict=True))}}}"
    return f"{{{', '.join(map(lua, value))}}}"


def _data(protocol: Protocol) -> dict[str, Any]:
    """Return the fields and the versions of a protocol."""
    fields = _Fields(protocol)
    return {"fields": fields.definitions, "versions": [_version(view, fields) for view in views(protocol)]}


class _Fields:
    """The fields of filters: `protocol.row`, or `protocol.layout.row` if rows of that name differ."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        kinds: dict[str, set[str]] = defaultdict(set)
        for view in views(protocol):
            for _, operation in _rows(view):
                kinds[operation.name].add(lua(_definition(protocol, operation)))
        self.shared = {name for name, kinds_of_name in kinds.items() if len(kinds_of_name) == 1}
        self.definitions: dict[str, dict[str, Any]] = {}

    def key(self, layout: str, operation: Operation) -> str:
        """Define a row's field and return its key, the end of its name in filters."""
        key = operation.name if operation.name in self.shared else f"{layout}.{operation.name}"
        self.definitions[key] = _definition(self.protocol, operation)
        return key

    def flags(self, key: str, take: Take) -> list[str]:
        """Define the bits of a row and return their keys."""
        for mask, name in take.flags.items():
            self.definitions[f"{key}.{name}"] = {"type": "bool", "label": name, "mask": mask, "width": 8 * take.width}
        return [f"{key}.{name}" for name in take.flags.values()]


def _definition(protocol: Protocol, operation: Operation) -> dict[str, Any]:
    operation = operation.body if isinstance(operation, Repeat) else operation
    definition: dict[str, Any] = {"label": operation.name}
    match operation:
        case Integer(is_character=True):
            values = operation.members if isinstance(operation, Take) else {}
            return definition | {"type": "char"} | ({"values": dict(values)} if values else {})
        case Integer():
            kind = f"{'' if operation.signed else 'u'}int{8 * operation.width}"
            named = protocol.types.get(operation.named) if isinstance(operation, Take) else None
            return definition | {"type": kind} | ({"values": dict(named.values)} if named and named.values else {})
        case Text():
            return definition | {"type": "string"}
        case Bytes():
            return definition | {"type": "string" if operation.is_text else "bytes"}
    return {}


def _rows(view: View) -> Iterator[tuple[str, Operation]]:
    """Yield the rows of a version that have a field of filters, with the name of their layout."""
    layouts: list[Message | Part | Alternative] = [*view.messages, *view.parts]
    layouts += [other for part in view.parts for other in part.alternatives]
    for layout in layouts:
        for operation in _flat(lower(view, layout.fields)):
            if _definition(view.protocol, operation):
                yield layout.name, operation


def _flat(operations: Operations) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, Conditional):
            yield from _flat(operation.body)
        else:
            yield operation


def _version(view: View, fields: _Fields) -> dict[str, Any]:
    choices = choices_by_sender(view)
    version: dict[str, Any] = {
        "parts": {
            class_name(layout.name): _Rows(view, fields, layout).rows(lower(view, layout.fields))
            for part in view.parts
            for layout in (part.alternatives or (part,))
        }
    }
    messages = {class_name(message.name): message for message in view.messages}
    for sender, choices_of_sender in choices.items():
        chosen = [choice.name for choice in choices_of_sender]
        version[sender] = {
            "choices": [
                {
                    "message": choice.name,
                    "constants": [{"at": offset, "hex": code.hex()} for offset, code in choice.constants],
                }
                | ({"first": dict.fromkeys(choice.first, True)} if choice.first else {})
                | ({"fact": choice.fact, "value": choice.value} if choice.fact else {})
                for choice in choices_of_sender
            ],
            "tags": {
                ord(message.tag): name
                for name, message in messages.items()
                if sender in message.senders and name not in chosen
            },
        }
    version["messages"] = {name: _message(view, fields, message) for name, message in messages.items()}
    return version


def _message(view: View, fields: _Fields, message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": message.name,
        "rows": _Rows(view, fields, message).rows(lower(view, message.fields)),
    }
    if message.sets is not None:
        entry["sets"] = {"fact": fact_of(message.sets), "value": value_of(message.sets) or True}
    if message.clears is not None:
        entry["clears"] = message.clears
    if message.carries:
        entry["carries"] = message.carries[0]
    if message.describes is not None:
        entry["describes"] = message.describes
        entry["label"] = [row.name for row in lower(view, message.fields) if isinstance(row, Text)]
    return entry


class _Rows:
    """The rows of a layout as data."""

    def __init__(self, view: View, fields: _Fields, layout: Message | Part | Alternative) -> None:
        self.view = view
        self.fields = fields
        self.layout = layout

    def rows(self, operations: Operations) -> list[dict[str, Any]]:
        return [self._row(operation) for operation in operations]

    def _row(self, operation: Operation) -> dict[str, Any]:
        row: dict[str, Any] = {"op": operation.kind, "name": operation.name}
        if _definition(self.view.protocol, operation):
            row["field"] = self.fields.key(snake_case(class_name(self.layout.name)), operation)
        if isinstance(operation, Integer):
            row |= {"width": operation.width, "signed": operation.signed}
        match operation:
            case Constant():
                length = {"preceding": int(self.layout.fields[0].name == "tag")} if operation.is_length else {}
                return row | {"code": operation.code} | length
            case Measure(of=""):
                return row | {"preceding": operation.preceding}
            case Measure():
                return row | {"least": -1 if operation.nullable else 0}
            case Take():
                return row | self._taken(operation, row["field"])
            case Text():
                return row
            case Bytes():
                size: dict[str, Any] = {"fixed_size": operation.size} if operation.size else {}
                size |= {"is_text": True} if operation.is_text else {}
                size |= {"constant": operation.constant.hex()} if operation.constant else {}
                return row | size | ({"count": operation.count} if operation.count else {})
            case Group():
                return row | {"part": class_name(operation.part.name)}
            case Choose():
                names = {other.fields[0].codes[0]: class_name(other.name) for other in operation.part.alternatives}
                return row | {"cases": names}
            case Repeat():
                body = self._row(operation.body)
                last = {"before": operation.end.hex()} if operation.end else {}
                return row | {"body": body} | ({"count": operation.count} if operation.count else last)
            case Conditional():
                body_rows = self.rows(operation.body)
                ahead = {"ahead": dict.fromkeys(operation.ahead, True)} if operation.ahead else {}
                return row | {"rows": body_rows} | ahead | ({"fact": operation.fact} if operation.fact else {})
        text = f"the dissector cannot read {operation.kind}, the operation of {operation.name}"
        raise SpecError([Finding(operation.place, text)])

    def _taken(self, take: Take, key: str) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        if take.allowed:
            entry["allowed"] = dict.fromkeys(take.allowed, True)
        if take.refused:
            entry["refuses_zero"] = True
        if take.flags:
            entry["flags"] = self.fields.flags(key, take)
        named = self.view.protocol.types.get(take.named)
        if take.python == _POSITIONS:
            entry["shown"] = "position"
        elif named is not None and named.arrow == _TIMES:
            entry |= {"shown": "time", "epoch": named.epoch // 1_000_000}
        looks_up = next((row.looks_up for row in self.layout.fields if row.name == take.name), None)
        return entry | ({"looks_up": looks_up} if looks_up else {})
