"""The model -> the text of every file of the generated package; writes nothing."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment

from codegen.emit import python_source
from codegen.emit.blocks import Block
from codegen.emit.columns import emit_columnar
from codegen.emit.python_source import NOTICE, Source, fact_docstring, joined, whether
from codegen.emit.steps import Conditional, Run, Single, Step, Tagged
from codegen.shared import templates
from codegen.spec import taken
from codegen.spec.model import Field, Finding, Message, Part, Protocol, SpecError, parts_used
from codegen.spec.names import class_name
from codegen.spec.notation import Byte1, Byten, Int, PartName, String
from codegen.spec.versions import View, views

_HERE = Path(__file__).parent
PACKAGE = "logicalrep_protocol"
_RUFF = [
    "--isolated",
    "--config=line-length=120",
    "--config=target-version='py311'",
]


def emit(protocols: Iterable[Protocol]) -> dict[Path, str]:
    """Every file of the package by its path below generated/, formatted; SpecError for what cannot be generated."""
    protocols = tuple(protocols)
    messages = _with_blocks(protocols)
    versions = views(messages)
    texts = {f"{PACKAGE}/py.typed": ""}
    environment = _environment()
    texts[f"{PACKAGE}/layouts.py"] = _layouts_module(protocols)
    for protocol in protocols:
        shown = views(protocol)
        blocks = [(now.module, _blocks(before, now)) for before, now in zip((None, *shown), shown, strict=False)]
        for now in shown:
            texts[f"{PACKAGE}/{now.module}.py"] = _version_module(now, blocks[: now.version])
    texts[f"{PACKAGE}/versions.py"] = _render(
        environment, "versions.py.j2", notice=NOTICE, protocol=messages, definitions=_definitions(versions)
    )
    documents = {"init_doc": _decoder_docstring(messages), "docstring_of": fact_docstring}
    described = _described(messages)
    texts[f"{PACKAGE}/decoder.py"] = _render(
        environment, "decoder.py.j2", notice=NOTICE, protocol=messages, described=described, **documents
    )
    texts[f"{PACKAGE}/__init__.py"] = _render(
        environment, "__init__.py.j2", notice=NOTICE, protocols=protocols, exported=_package_exports(protocols)
    )
    texts |= {f"{PACKAGE}/{name}": text for name, text in emit_columnar(versions).items()}
    return _formatted(texts)


def _with_blocks(protocols: tuple[Protocol, ...]) -> Protocol:
    """The protocol of the messages, that of which there is a decoder; SpecError unless it is one."""
    with_blocks = [protocol for protocol in protocols if protocol.blocks]
    if len(with_blocks) == 1:
        return with_blocks[0]
    names = ", ".join(protocol.name for protocol in with_blocks) or "none"
    text = f"one protocol has 'blocks', that of the messages, but here it is {names}"
    raise SpecError([Finding((with_blocks or protocols)[0].place, text)])


def _described(protocol: Protocol) -> list[tuple[Message, str, str]]:
    """The messages that describe something; where a decoder keeps each, and the type of the number that tells it."""
    return [
        (message, taken.described(message.name), protocol.types[row.named_type].python)
        for message in protocol.messages
        for row in message.fields
        if row.name == message.describes and row.named_type is not None
    ]


def _package_exports(protocols: tuple[Protocol, ...]) -> list[str]:
    """In the order of a sorted __all__: classes, then modules."""
    modules = [version.module for protocol in protocols for version in protocol.versions]
    return ["Decoder", *sorted([*modules, "versions"])]


def _environment(**names: Any) -> Environment:
    environment = templates(_HERE / "templates")
    environment.globals.update(
        {name: getattr(python_source, name) for name in ("any_of", "none_of", "hexadecimal", "quoted")},
        class_name=class_name,
        character=chr,
        **names,
    )
    return environment


def _render(environment: Environment, template: str, **values: Any) -> str:
    return environment.get_template(template).render(**values)


def _layouts_module(protocols: tuple[Protocol, ...]) -> str:
    environment = _environment(
        kind_of=_kind, codes_of=_codes, characters_of=lambda row: bool(row.values or _tagged(row))
    )
    return _render(environment, "layouts.py.j2", notice=NOTICE, protocols=protocols)


def _kind(row: Field) -> str:
    if isinstance(row.type, Int | Byte1):
        return "int"
    return {String: "string", Byten: "bytes", PartName: "part"}[type(row.type)]


def _codes(row: Field) -> tuple[int, ...]:
    constants = tuple(row.values) or row.constants
    return tuple(ord(constant) if isinstance(constant, str) else constant for constant in constants)


def _tagged(row: Field) -> bool:
    return isinstance(row.type, Byte1) and bool(row.constants)


def _definitions(versions: Iterable[View]) -> Callable[[Message], list[str]]:
    """For a message, the modules that define a class of its own for it."""

    def definitions(message: Message) -> list[str]:
        return [now.module for now in versions if message.name in {own.name for own in now.own_messages}]

    return definitions


def _version_module(now: View, every: list[tuple[str, list[Block]]]) -> str:
    """The module of a version; `every` has the module and the classes of each version up to it."""
    source, protocol = Source(now), now.protocol
    previous = protocol.versions[now.version - 2].module if now.version > 1 else ""
    *earlier, (_, blocks) = every
    defined = [name for block in blocks for name in _exported(block)]
    inherited = sorted({name for _, older in earlier for block in older for name in _exported(block)} - set(defined))
    choices = {f"_{block.constant}": module for module, older in every for block in older if block.alternatives}
    senders = sorted({message.sender for message in protocol.messages}, reverse=True)
    structs = {sender: f"{sender}_message" if len(senders) > 1 else "message" for sender in senders}
    messages = [block for block in blocks if block.tag]
    environment = _environment(
        annotation_of=source.annotation_of,
        value_of=source.value_of,
        checks_of=python_source.checks_of,
        guards_of=source.guards_of,
        packed=source.packed,
        cells_of=source.cells_of,
        facts=[fact.name for fact in protocol.layout_facts],
        has_texts=protocol.has_texts,
    )
    return _render(
        environment,
        "version.py.j2",
        module_doc=_module_docstring(protocol, now, messages, previous),
        any_doc=f"Any message of {_title(protocol, now)}.",
        parse_doc=_parse_docstring(protocol, now),
        layouts=protocol.name.upper(),
        version=now.version,
        previous=previous,
        inherited=inherited,
        choices=sorted((module, name) for name, module in choices.items() if module != now.module),
        exported=sorted([*inherited, *defined, *structs.values(), "AnyMessage", "parse"]),
        formats=sorted({name for block in blocks for name in _formats(source, block)}),
        blocks=blocks,
        messages=[class_name(message.name) for message in now.messages],
        structs=structs,
        senders=[(sender, [message for message in now.messages if message.sender == sender]) for sender in senders],
    )


def _title(protocol: Protocol, now: View) -> str:
    return f"protocol version {now.version}" if len(protocol.versions) > 1 else "the replication connection"


def _module_docstring(protocol: Protocol, now: View, messages: list[Block], previous: str) -> str:
    version = protocol.versions[now.version - 1]
    if len(protocol.versions) == 1:
        return python_source.docstring(protocol.doc, protocol.page, NOTICE)
    title = f"Protocol version {version.number}, of PostgreSQL {version.server} and later."
    names = ", ".join(block.name for block in messages)
    own = f"New or different are {names}; all else is as in {previous}." if previous else ""
    return python_source.docstring(title, version.doc, own, NOTICE)


_ENCODING = "`encoding` is the session's client_encoding as a Python codec."


def _parse_docstring(protocol: Protocol, now: View) -> str:
    sentences = []
    for fact in protocol.layout_facts:
        known = "" if fact.since <= now.version else f"; it changes nothing before version {fact.since}"
        sentences.append(f"`{fact.name}` says {whether(fact)}{known}.")
    if protocol.has_texts:
        sentences.append(_ENCODING)
    if len({message.sender for message in protocol.messages}) > 1:
        sentences.append("`sender` is who sent them.")
    first = "Parse one whole message. Raises DecodeError if the bytes are not exactly one."
    return python_source.docstring(first, " ".join(sentences))


def _decoder_docstring(protocol: Protocol) -> str:
    newest = len(protocol.versions)
    first = f"Take a protocol version, 1 to {newest}; ValueError for another, EncodingError for an unknown `encoding`."
    sentences = []
    for fact in protocol.given_facts:
        names = [message.name for message in protocol.messages if message.also_when == fact.name]
        more = f": {joined(names)} may come in older protocol versions too then" if names else ""
        sentences.append(f"`{fact.name}` says {whether(fact)}{more}.")
    return python_source.docstring(first, " ".join([*sentences, _ENCODING]))


def _blocks(before: View | None, now: View) -> list[Block]:
    """The classes of a module that those of the version before lack; parts stand before what contains them."""
    source = Source(now)
    blocks: list[Block] = []
    placed: set[str] = set()
    own_parts = {part.name: part for part in now.own_parts}

    def place(layout: Message | Part) -> None:
        for name in parts_used(layout.fields):
            if name not in placed and name in own_parts:
                placed.add(name)
                place(own_parts[name])
        was = before and before.layout(layout.name)
        # An enumeration belongs to the version that brought its field, and comes from there.
        known = {class_name(row.name.replace("_", " ")) for row in (was.fields if was else ())}
        block = source.message_block(layout) if isinstance(layout, Message) else source.part_block(layout)
        blocks.append(replace(block, enumerations=tuple(item for item in block.enumerations if item.name not in known)))

    for message in now.own_messages:
        place(message)
    return blocks


def _exported(block: Block) -> list[str]:
    return [
        block.name,
        *(alternative.name for alternative in block.alternatives if alternative.is_own),
        *(enumeration.name for enumeration in block.enumerations),
    ]


def _formats(source: Source, block: Block) -> set[str]:
    """The formats of all integers that stand together, to read and to write."""
    if block.alternatives:
        return set()
    formats: set[str] = set()

    def collect(items: tuple[Step, ...]) -> None:
        for step in items:
            if isinstance(step, Run):
                formats.add(step.format)
            elif isinstance(step, Conditional | Tagged):
                collect(step.steps)
            elif isinstance(step, Single) and step.kind == "cells":
                cells = source.cells_of(step)
                formats.update((cells.format, f"B{cells.signed_format}"))

    collect(block.steps)
    collect(block.build_steps)
    return formats


def _formatted(texts: Mapping[str, str]) -> dict[Path, str]:
    """The same files with unused imports removed, imports in order and everything laid out by the formatter."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in texts.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for arguments in (
            ["check", "--quiet", "--fix", "--select=I,F401", "--ignore-noqa"],
            ["format", "--quiet"],
        ):
            command = ["ruff", arguments[0], *_RUFF, *arguments[1:], "--no-cache", str(root)]
            if arguments[0] == "check":
                command[2:2] = [f"--config=lint.isort.known-first-party=['logicalrep_runtime', '{PACKAGE}']"]
            result = subprocess.run(_ruff(command), capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise RuntimeError(f"{' '.join(command[:2])} refused the emitted code:\n{result.stdout}{result.stderr}")
        return {Path(name): (root / name).read_text(encoding="utf-8") for name in texts}


def _ruff(command: list[str]) -> list[str]:
    """The command with the formatter that is installed beside this interpreter."""
    from ruff import find_ruff_bin  # type: ignore[import-untyped,unused-ignore]

    return [str(find_ruff_bin()), *command[1:]]
