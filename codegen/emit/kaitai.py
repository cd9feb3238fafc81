"""The spec as descriptions for the compiler of Kaitai Struct, which makes readers: `python -m codegen ksy`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from codegen.emit.choices import Choice, choices_by_sender
from codegen.emit.rendering import joined
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
from codegen.model.layouts import Message, Part
from codegen.model.model import Protocol, SessionFact, fact_of
from codegen.model.names import class_name, snake_case
from codegen.model.places import Finding, SpecError
from codegen.model.reader import load_either
from codegen.model.versions import View, views
from codegen.shared import add_spec

_Entry = dict[str, Any]

_BUILT_IN = re.compile("strz?|[usfb][0-9]+(le|be)?")
_ROOT = ("message", "rest", "kind", "first_byte")
"""The names of every description, which parameters cannot have."""
_COMPILER = "0.11"
"""The first release of the compiler that has all keys of the descriptions."""

_LIMITS = """\
# Made from the spec of {title} by `python -m codegen ksy`; kaitai-struct-compiler {compiler} or newer compiles it.
# It describes one message{sender}. `kind` is the message, `message` its fields.
# A description cannot say:
# - state: {state}
# - the order of messages, and that a number has been described before;
# - encodings: texts are read as UTF-8, and some languages replace other bytes instead of refusing them.
"""


class _Hex(int):
    """An integer that YAML has as 0x42."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Hex, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{value:02x}"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder that the files are written to")
    add_spec(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files and return the exit code. Raises SpecError for a faulty spec."""
    texts = descriptions(load_either(options.spec, options.project))
    options.directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = options.directory / name
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


def descriptions(protocols: Iterable[Protocol]) -> dict[str, str]:
    """Return a file by name for each version's senders. Raises SpecError if a row has no description."""
    return {
        f"{name}.ksy": text
        for protocol in protocols
        for view in views(protocol)
        for sender in _senders(protocol)
        if any(sender in message.senders for message in view.messages)
        for name, text in (_description(view, sender),)
    }


def description_name(view: View, sender: str) -> str:
    """Return the id of a description: `walsender_client`, `logicalrep_v4`."""
    parts = [view.protocol.name, *([view.module] if len(view.protocol.versions) > 1 else [])]
    return "_".join([*parts, *([sender] if len(_senders(view.protocol)) > 1 else [])])


def parameters(view: View) -> tuple[SessionFact, ...]:
    """Return the session facts that are parameters of a version's descriptions, in order."""
    rows = [layout.fields for layout in view.messages] + [part.fields for part in view.parts]
    operations = [operation for fields in rows for operation in lower(view, fields)]
    named = {fact_of(message.when) for message in view.messages}
    named |= {operation.fact for operation in operations if isinstance(operation, Conditional)}
    return tuple(fact for fact in view.protocol.session if fact.name in named)


def _senders(protocol: Protocol) -> list[str]:
    senders = {sender for message in protocol.messages for sender in message.senders}
    return [sender for sender in ("server", "client") if sender in senders]


def _description(view: View, sender: str) -> tuple[str, str]:
    protocol, name = view.protocol, description_name(view, sender)
    facts = parameters(view)
    head = _LIMITS.format(
        title=protocol.title,
        compiler=_COMPILER,
        sender=f" of the {sender}" if len(_senders(protocol)) > 1 else "",
        state=f"the parameters are facts of the session: {joined(fact.name for fact in facts)};"
        if facts
        else "the messages depend on none;",
    )
    text = yaml.dump(_Root(view, sender).entries(name), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
    return name, head + text


def _documented(doc: str, remark: str = "") -> _Entry:
    text = f"{doc} {remark}".strip()
    return {"doc": text} if text else {}


def _integer(integer: Integer) -> str:
    return f"{'s' if integer.signed else 'u'}{integer.width}"


def _type(name: str) -> str:
    """Return the name of a message's, a part's or an alternative's type."""
    name = snake_case(class_name(name))
    return f"{name}_" if _BUILT_IN.fullmatch(name) else name


def _free(name: str, names: Iterable[str]) -> str:
    """Return the name, with underscores if it is among the given ones."""
    while name in names:
        name += "_"
    return name


class _Root:
    """The description of a sender's messages of one version."""

    def __init__(self, view: View, sender: str) -> None:
        self.view = view
        self.messages = [message for message in view.messages if sender in message.senders]
        self.choices = choices_by_sender(view)[sender]
        self.types: dict[str, _Entry] = {}
        self.enums: dict[str, dict[int, str]] = {}

    def entries(self, name: str) -> _Entry:
        protocol = self.view.protocol
        kinds = self._kinds()
        for message in self.messages:
            self._add(message.name, self._layout(message.doc, lower(self.view, message.fields), message))
        kind = _free("message_kind", {*self.types, *self.enums})
        for fact in parameters(self.view):
            if fact.name in _ROOT:
                raise SpecError([Finding(fact.place, f"Kaitai Struct: a parameter cannot have the name {fact.name!r}")])
        facts = {
            _free(fact.name, self.types): dict(enumerate(fact.values)) for fact in parameters(self.view) if fact.values
        }
        params = [
            {"id": fact.name}
            | ({"type": "u1", "enum": _free(fact.name, self.types)} if fact.values else {"type": "bool"})
            | _documented(fact.doc)
            for fact in parameters(self.view)
        ]
        cases = {f"{kind}::{name}": name for name in kinds.values()}
        entries = {
            "meta": {
                "id": name,
                "title": f"{protocol.title}, version {self.view.protocol.versions[self.view.version - 1].display_name}",
                "ks-version": _COMPILER,
                "encoding": "UTF-8",
                "endian": "be" if protocol.byte_order == "big" else "le",
            },
            **_documented(protocol.doc, self.view.protocol.versions[self.view.version - 1].doc),
            **({"doc-ref": protocol.page} if protocol.page else {}),
            "params": params,
            "seq": [
                {"id": "message", "type": {"switch-on": "kind", "cases": cases}},
                {"id": "rest", "size-eos": True, "valid": {"expr": "_.length == 0"}, "doc": "Empty."},
            ],
            "instances": self._kind(kinds, kind),
            "types": self.types,
            "enums": {kind: {_Hex(code): name for code, name in kinds.items()}, **facts, **self.enums},
        }
        return {key: value for key, value in entries.items() if value}

    def _add(self, name: str, entry: _Entry) -> None:
        self.types[_type(name)] = entry

    def _kinds(self) -> dict[int, str]:
        """Return the messages' types by number: the tag, or a number above all tags without a tag of its own."""
        names = {class_name(message.name): _type(message.name) for message in self.messages}
        shared = [choice.name for choice in self.choices]
        own = {
            ord(message.tag): names[class_name(message.name)]
            for message in self.messages
            if class_name(message.name) not in shared
        }
        return own | {256 + number: names[name] for number, name in enumerate(shared)}

    def _kind(self, kinds: Mapping[int, str], enum: str) -> _Entry:
        first: _Entry = {"pos": 0, "type": "u1"}
        entry: _Entry = {"enum": enum, "doc": "The message."}
        if not self.choices:
            return {"kind": first | {"valid": {"in-enum": True}} | entry}
        value = "first_byte"
        for number, choice in reversed([*enumerate(self.choices, start=256)]):
            value = f"{self._condition(choice)} ? {number} : ({value})"
        leading = {
            _leading(offset, code): {"pos": offset, "type": f"u{len(code)}"}
            for choice in self.choices
            for offset, code in choice.constants
        }
        return {"first_byte": first, **leading, "kind": {"value": value} | entry}

    def _condition(self, choice: Choice) -> str:
        conditions = []
        if choice.fact:
            conditions.append(f"{choice.fact} == {_free(choice.fact, self.types)}::{choice.value}")
        if choice.first:
            conditions.append(" or ".join(f"first_byte == 0x{byte:02x}" for byte in choice.first))
        order = self.view.protocol.byte_order
        for offset, code in choice.constants:
            conditions.append(f"{_leading(offset, code)} == {int.from_bytes(code, order)}")
        return " and ".join(f"({condition})" for condition in conditions) or "true"

    def _layout(self, doc: str, operations: Operations, owner: Message | Part) -> _Entry:
        layout = _Layout(self, operations)
        layout.add(operations, "")
        url = self.view.protocol.official(owner) if self.view.protocol.page else ""
        return {**_documented(doc), **({"doc-ref": url} if url else {}), **layout.entries()}

    def part(self, part: Part) -> str:
        """Add a part with fields and return the name of its type."""
        name = _type(part.name)
        if name not in self.types:
            self.types[name] = {}
            self._add(part.name, self._layout(part.doc, lower(self.view, part.fields), part))
        return name

    def choice(self, choose: Choose) -> str:
        """Add a part of alternatives and return the name of its type."""
        name = _type(choose.part.name)
        alternatives = {_type(other.name): other for other in choose.part.alternatives}
        types, enum = {}, _free(choose.tag.name, alternatives)
        for type_name, other in alternatives.items():
            if len(other.fields) > 1:
                types[type_name] = self._layout(other.doc, choose.cases[other.fields[0].codes[0]], choose.part)
                types[type_name].pop("doc-ref", None)
        tag = {"id": choose.tag.name, "type": _integer(choose.tag), "enum": enum, "valid": {"in-enum": True}}
        cases = {f"{enum}::{type_name}": type_name for type_name in types}
        body = {"id": _free("body", [choose.tag.name]), "type": {"switch-on": choose.tag.name, "cases": cases}}
        entries = {
            **_documented(choose.part.doc),
            "seq": [tag, *([body] if cases else [])],
            "types": types,
            "enums": {enum: {_Hex(other.fields[0].codes[0]): name for name, other in alternatives.items()}},
        }
        self.types[name] = {key: value for key, value in entries.items() if value}
        return name

    def until(self, item: str, end: bytes) -> str:
        """Add the type of an item or of a list's end, and return its name. A zero byte belongs to the end, and a
        constant to the next row."""
        name = _free(f"{item}_or_{'end' if end else 'zero'}", (_type(part.name) for part in self.view.parts))
        mark = end or bytes(1)
        zero = [] if end else [{"id": "zero", "type": "u1", "if": "is_end"}]
        self.types[name] = {
            "doc": f"The item, or {'nothing before the constant' if end else 'the zero byte'} that ends the list.",
            "seq": [{"id": "item", "type": item, "if": "not is_end"}, *zero],
            "instances": {
                "ahead": {"pos": "_io.pos", "size": len(mark), "doc": "The next bytes."},
                "is_end": {"value": f"ahead == {_array(mark)}"},
            },
        }
        return name


def _array(data: bytes) -> str:
    """Return bytes as an expression of Kaitai Struct: `[0xff, 0xff]`."""
    return f"[{', '.join(f'0x{byte:02x}' for byte in data)}]"


def _leading(offset: int, code: bytes) -> str:
    return f"u{len(code)}_at_{offset}"


class _Layout:
    """The type of a message, a part or an alternative."""

    def __init__(self, root: _Root, operations: Operations) -> None:
        self.root = root
        self.names = {operation.name for operation in operations}
        self.seq: list[_Entry] = []
        self.instances: dict[str, _Entry] = {}
        self.enums: dict[str, dict[int, str]] = {}

    def entries(self) -> _Entry:
        entries = {"seq": self.seq, "instances": self.instances, "enums": self.enums}
        return {key: value for key, value in entries.items() if value}

    def add(self, operations: Operations, condition: str) -> None:
        for operation in operations:
            if isinstance(operation, Conditional):
                self.add(operation.body, self._condition(operation))
                continue
            entry: _Entry = {"id": operation.name} | self._attribute(operation)
            conditions = [text for text in (condition, entry.pop("if", "")) if text]
            if conditions:
                entry["if"] = " and ".join(f"({text})" for text in conditions) if conditions[1:] else conditions[0]
            doc = "" if operation.name == "tag" else operation.doc
            self.seq.append(entry | _documented(doc, operation.remark if doc else ""))
            for mask, name in (operation.flags if isinstance(operation, Take) else {}).items():
                when = {"if": condition} if condition else {}
                self.instances[name] = {"value": f"({operation.name} & 0x{mask:02x}) != 0"} | when

    def _condition(self, conditional: Conditional) -> str:
        if conditional.fact:
            return f"_root.{conditional.fact}"
        ahead = _free(f"{conditional.name}_ahead", self.names)
        self.instances[ahead] = {"pos": "_io.pos", "type": "u1", "doc": "The next byte."}
        return " or ".join(f"{ahead} == 0x{code:02x}" for code in conditional.ahead)

    def _attribute(self, operation: Operation) -> _Entry:
        match operation:
            case Constant():
                code = _Hex(operation.code) if operation.is_character else operation.code
                return {"type": _integer(operation), "valid": code}
            case Measure(of=""):
                valid: _Entry = {"expr": f"_ == _io.size - {operation.preceding}"}
                return {"type": _integer(operation), "valid": valid}
            case Measure():
                least = -1 if operation.nullable else 0
                return {"type": _integer(operation)} | ({"valid": {"min": least}} if operation.signed else {})
            case Take():
                return self._taken(operation)
            case Text():
                return {"type": "strz"}
            case Bytes(constant=constant) if constant:
                return {"contents": [_Hex(byte) for byte in constant]}
            case Bytes(count="", size=0):
                return {"size-eos": True}
            case Bytes():
                null = {"if": f"{operation.count} != -1"} if operation.nullable else {}
                return {"size": operation.size or operation.count} | null
            case Group():
                return {"type": self.root.part(operation.part)}
            case Choose():
                return {"type": self.root.choice(operation)}
            case Repeat():
                return self._repeated(operation)
        text = f"Kaitai Struct has no description of {operation.kind}, the operation of {operation.name}"
        raise SpecError([Finding(operation.place, text)])

    def _repeated(self, repeat: Repeat) -> _Entry:
        entry = self._attribute(repeat.body)
        if repeat.count:
            return entry | {"repeat": "expr", "repeat-expr": repeat.count}
        if isinstance(repeat.body, Text):
            return entry | {"repeat": "until", "repeat-until": '_ == ""'}
        name = self.root.until(entry["type"], repeat.end)
        return {"type": name, "repeat": "until", "repeat-until": "_.is_end"}

    def _taken(self, take: Take) -> _Entry:
        entry: _Entry = {"type": _integer(take)}
        assert take.refused in ((), (0,))
        named = self.root.view.protocol.types[take.named].values if take.named else {}
        if named:
            enum = snake_case(take.named)
            self.root.enums[enum] = dict(named)
        elif take.members:
            enum = take.name
            self.enums[enum] = {_Hex(code): name for code, name in take.members.items()}
        if take.refused and take.allowed and (named or take.members):
            names = dict(named or take.members)
            legal = [f"{enum}::{names[code]}" for code in take.allowed if code not in take.refused]
            return entry | {"enum": enum, "valid": {"any-of": legal}}
        if take.refused:
            # Zero alone is refused; other values may have no name, so that they are no enumeration.
            return entry | {"valid": {"expr": "_ != 0"} if take.signed else {"min": 1}}
        if named or take.members:
            return entry | {"enum": enum, "valid": {"in-enum": True}}
        allowed = [_Hex(code) if take.is_character else code for code in take.allowed]
        return entry | ({"valid": {"any-of": allowed}} if allowed else {})
