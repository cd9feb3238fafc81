"""The text of every file of the generated package, from the model; the caller writes the files."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from codegen.emit.choices import choices_by_sender, untagged_names
from codegen.emit.columns import emit_columnar, walks_of
from codegen.emit.python_source import Block, Source, annotation_of, enumeration_name, packed, value_of
from codegen.emit.rendering import NOTICE, docstring, joined, render
from codegen.emit.steps import Branch, Run, Step, guards_of, python_checks_of
from codegen.emit.tables import table
from codegen.emit.walks import emit_walks
from codegen.lowering.operations import Choose, Constant, Integer, Measure, Repeat
from codegen.lowering.rows import looked_up, lower, whether
from codegen.model import taken
from codegen.model.layouts import Message, Part, parts_used
from codegen.model.model import Protocol
from codegen.model.names import class_name
from codegen.model.places import Finding, SpecError
from codegen.model.versions import View, unfiltered, views

PACKAGE = "logicalrep_protocol"
"""The package that logicalrep's wheel contains; other projects name their own."""
_RUFF = ["--isolated", "--quiet", "--no-cache", "--config=line-length=120", "--config=target-version='py311'"]
_CHECK = ["check", "--fix", "--select=I,F401", "--ignore-noqa"]


def emit(protocols: Iterable[Protocol]) -> dict[Path, str]:
    """Return every file of logicalrep's package by path below generated/, formatted.

    Raises SpecError if code cannot be generated.
    """
    return formatted(emitted(protocols), PACKAGE)


def emit_native(protocols: Iterable[Protocol]) -> str:
    """Return the text of native/src/walks.c."""
    messages = _with_blocks(tuple(protocol for protocol in protocols if not protocol.package))
    return emit_walks(walks_of(views(messages)))[0]


def emitted(protocols: Iterable[Protocol]) -> dict[str, str]:
    """Return the files of `emit`, not formatted."""
    all_protocols = tuple(protocols)
    # The protocols that share the top level of the package; each of the rest has a subpackage.
    protocols = tuple(protocol for protocol in all_protocols if not protocol.package)
    messages = _with_blocks(protocols)
    versions = views(messages)
    texts = {"py.typed": "", "layouts.py": _layouts_module(protocols)}
    for protocol in all_protocols:
        texts |= _own_package(protocol) if protocol.package else _version_modules(protocol)
    texts["versions.py"] = render("versions.py.j2", protocol=messages, versions=versions, package=PACKAGE)
    described, init_doc = _described(messages), _decoder_docstring(messages)
    texts["decoder.py"] = render(
        "decoder.py.j2",
        protocol=messages,
        described=described,
        init_doc=init_doc,
        sessions=_sessions(versions),
        paths=messages.paths,
        package=PACKAGE,
    )
    exported = _package_exports(protocols)
    texts["__init__.py"] = render("__init__.py.j2", protocols=protocols, exported=exported, package=PACKAGE)
    texts["testing.py"] = render(
        "testing.py.j2",
        protocols=all_protocols,
        modules=[version.module for protocol in protocols for version in protocol.versions],
        names=[protocol.name.upper() for protocol in protocols],
        packages=[protocol for protocol in all_protocols if protocol.package],
        package=PACKAGE,
    )
    walks = walks_of(versions)
    texts |= emit_columnar(walks, PACKAGE, emit_walks(walks)[1])
    return {f"{PACKAGE}/{name}": text for name, text in texts.items()}


def emit_project(protocol: Protocol) -> dict[Path, str]:
    """Return every file of another project's package by path, formatted. Raises SpecError as `emit`."""
    return formatted(project_emitted(protocol), protocol.package)


def project_emitted(protocol: Protocol) -> dict[str, str]:
    """Return the files of `emit_project`, not formatted."""
    return {f"{protocol.package}/py.typed": "", **_own_package(protocol)}


def _own_package(protocol: Protocol) -> dict[str, str]:
    """Return the unformatted files of a protocol with a package of its own: in logicalrep's, or of another project."""
    texts = {
        "__init__.py": render(
            "package_init.py.j2",
            protocol=protocol,
            package=package_of(protocol),
            senders=_senders(protocol),
            conversation="FramedConversation" if all(map(_are_framed, views(protocol))) else "Conversation",
        ),
        "layouts.py": _layouts_module((protocol,)),
        **_version_modules(protocol),
    }
    return {f"{protocol.package}/{name}": text for name, text in texts.items()}


def _version_modules(protocol: Protocol) -> dict[str, str]:
    versions = views(protocol)
    blocks = [(view.module, _blocks(view)) for view in versions]
    return {f"{view.module}.py": _version_module(view, blocks[: view.version]) for view in versions}


def _senders(protocol: Protocol) -> list[str]:
    return sorted({sender for message in protocol.messages for sender in message.senders}, reverse=True)


def _are_framed(view: View) -> bool:
    """Return whether every message shows its size in the same way as all that share its tag or have none."""
    frames: dict[tuple[str, ...], set[tuple[int, int] | None]] = {}
    for message in view.messages:
        for sender in message.senders:
            place = (sender, message.tag) if message.is_tagged else (sender, "", message.when or "")
            frames.setdefault(place, set()).add(_frame(view, message))
    return all(len(group) == 1 and None not in group for group in frames.values())


def _frame(view: View, message: Message) -> tuple[int, int] | None:
    """Return the offset and width of the length among a message's first integers.

    The width is 0 for a message of integers alone, which ends at the offset. None if no integer shows the size.
    """
    offset = 0
    for operation in lower(view, message.fields):
        if (isinstance(operation, Measure) and not operation.of) or (
            isinstance(operation, Constant) and operation.is_length
        ):
            return offset, operation.width
        if not isinstance(operation, Integer):
            return None
        offset += operation.width
    return offset, 0


def _layouts_module(protocols: tuple[Protocol, ...]) -> str:
    """Return layouts.py: the layout tables of all protocols, each with the rows of all versions."""
    return render(
        "layouts.py.j2",
        protocols=protocols,
        paths=sorted({path for protocol in protocols for path in protocol.paths}),
        lower=lambda protocol, layout: lower(unfiltered(protocol), layout.fields),
        looked_up=looked_up,
        table=table,
        enumerations=[named for protocol in protocols for named in protocol.enumerations],
    )


def package_of(protocol: Protocol) -> str:
    """Return the dotted name of the package with a protocol's modules."""
    return protocol.package if protocol.is_alone else ".".join(filter(None, (PACKAGE, protocol.package)))


def _with_blocks(protocols: tuple[Protocol, ...]) -> Protocol:
    """Return the protocol with `blocks`, which gets a Decoder. Raises SpecError unless exactly one has blocks."""
    with_blocks = [protocol for protocol in protocols if protocol.has_decoder]
    if len(with_blocks) == 1:
        return with_blocks[0]
    names = ", ".join(protocol.name for protocol in with_blocks) or "none"
    text = f"exactly one protocol must have 'blocks', not {names}"
    raise SpecError([Finding((with_blocks or protocols)[0].place, text)])


def _described(protocol: Protocol) -> list[tuple[Message, str, str]]:
    """Return each message that describes a table or a type, with the Decoder's attribute of these descriptions, and the
    Python type of their keys."""
    return [
        (message, taken.described(message.name), protocol.types[row.named_type].python)
        for message in protocol.messages
        for row in message.fields
        if row.name == message.describes and row.named_type is not None
    ]


class _Session(NamedTuple):
    """A kind of session of a version, for an overload of Decoder."""

    messages: str
    """The union of the messages' types, as Python source."""
    without: frozenset[str]
    """The session facts that do not hold in it, as they allow more messages."""


def _sessions(versions: tuple[View, ...]) -> Iterator[tuple[int, _Session]]:
    """Yield the kinds of sessions of each version: without the messages that a session fact adds, and with all."""
    for view in versions:
        later_messages: dict[str, list[str]] = {}
        for message in view.protocol.messages:
            if message.since > view.version and message.is_sent_in(view.version):
                module = view.protocol.versions[message.since - 1].module
                later_messages.setdefault(message.also_when or "", []).append(f"{module}.{class_name(message.name)}")
        facts = frozenset(later_messages) - {""}
        always = " | ".join([f"{view.module}.AnyMessage", *later_messages.pop("", [])])
        yield view.version, _Session(always, facts)
        if facts:
            yield (
                view.version,
                _Session(" | ".join([always, *chain.from_iterable(later_messages.values())]), frozenset()),
            )


def _package_exports(protocols: tuple[Protocol, ...]) -> list[str]:
    """Return the names for __all__ as ruff sorts them: classes, then modules."""
    modules = [version.module for protocol in protocols for version in protocol.versions]
    return ["Decoder", *sorted([*modules, "versions"])]


def _version_module(view: View, versions: list[tuple[str, list[Block]]]) -> str:
    """Return the text of a version's module. `versions` are the modules and new classes of all versions up to it."""
    source, protocol = Source(view), view.protocol
    previous = protocol.versions[view.version - 2].module if view.version > 1 else ""
    *previous_versions, (_, blocks) = versions
    defined = [name for block in blocks for name in _exported(block)]
    inherited = sorted(
        {name for _, older in previous_versions for block in older for name in _exported(block)} - set(defined)
    )
    choices = {
        f"_{block.variable.upper()}": module for module, older in versions for block in older if block.alternatives
    }
    senders = _senders(protocol)
    choices_of = choices_by_sender(view)
    structs = {sender: f"{sender}_message" if len(senders) > 1 else "message" for sender in senders}
    messages = [block for block in blocks if block.is_message]
    return render(
        "version.py.j2",
        source=source,
        python_checks_of=python_checks_of,
        guards_of=guards_of,
        annotation_of=annotation_of,
        value_of=value_of,
        packed=packed,
        enumeration_name=enumeration_name,
        paths=protocol.paths,
        facts=[fact.name for fact in protocol.layout_facts],
        row_facts=[fact.name for fact in protocol.row_facts],
        values={name: (f"Literal{list(values)}", values[0]) for name, values in protocol.fact_values.items()},
        untagged=untagged_names(view),
        has_choices=any(choices_of.values()),
        choices_of=choices_of,
        package=package_of(protocol),
        prefix="<" if protocol.byte_order == "little" else ">",
        enumerations=[named.python for named in protocol.enumerations],
        has_texts=protocol.has_texts,
        module_doc=_module_docstring(protocol, view, messages, previous),
        any_doc=f"Any message of {_title(protocol, view)}.",
        parse_doc=_parse_docstring(protocol, view, _WHOLE),
        parse_from_doc=_parse_docstring(protocol, view, _AT_AN_OFFSET),
        layouts=protocol.name.upper(),
        version=view.version,
        previous=previous,
        inherited=inherited,
        choices=sorted((module, name) for name, module in choices.items() if module != view.module),
        exported=sorted(
            [*inherited, *defined, *structs.values(), "AnyMessage", "from_dict", "parse", "parse_from", "to_dict"]
        ),
        formats=sorted({name for block in blocks for name in _formats(block)}),
        blocks=blocks,
        messages=[class_name(message.name) for message in view.messages],
        structs=structs,
        senders=[(sender, [message for message in view.messages if sender in message.senders]) for sender in senders],
    )


def _title(protocol: Protocol, view: View) -> str:
    return (
        f"protocol version {protocol.versions[view.version - 1].display_name}"
        if len(protocol.versions) > 1
        else f"the {protocol.name} protocol"
    )


def _module_docstring(protocol: Protocol, view: View, messages: list[Block], previous: str) -> str:
    version = protocol.versions[view.version - 1]
    if len(protocol.versions) == 1:
        return docstring(protocol.doc, protocol.page, NOTICE)
    servers = f", of {protocol.software} {version.server} and later" if version.server else ""
    title = f"Protocol version {version.display_name}{servers}."
    names = ", ".join(block.name for block in messages)
    own = f"New or changed: {names}. The rest equals {previous}." if previous else ""
    return docstring(title, version.doc, own, NOTICE)


_ENCODING = "`encoding` is the session's client_encoding as a Python codec."


_WHOLE = "Parse one whole message. Raises DecodeError unless the bytes are exactly one message."
_AT_AN_OFFSET = (
    "Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the "
    "rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte."
)


def _parse_docstring(protocol: Protocol, view: View, first: str) -> str:
    sentences = []
    for fact in protocol.layout_facts:
        effect = "" if fact.since <= view.version else f" (no effect before version {fact.since})"
        sentences.append(f"`{fact.name}`: {whether(fact)}{effect}.")
    if protocol.has_texts:
        sentences.append(_ENCODING)
    if len({message.sender for message in protocol.messages}) > 1:
        sentences.append("`sender` is the side that sent the message.")
    return docstring(first, " ".join(sentences))


def _decoder_docstring(protocol: Protocol) -> str:
    newest = len(protocol.versions)
    first = f"`version` is 1 to {newest}; raises ValueError for another, EncodingError for an unknown `encoding`."
    sentences = []
    for fact in protocol.argument_facts:
        names = [message.name for message in protocol.messages if message.also_when == fact.name]
        more = f"; servers then send {joined(names)} in older protocol versions too" if names else ""
        sentences.append(f"`{fact.name}`: {whether(fact)}{more}.")
    return docstring(first, " ".join([*sentences, _ENCODING]))


def _blocks(view: View) -> list[Block]:
    """Return the classes that are new or changed in a version, each after the parts that it uses."""
    source = Source(view)
    layouts: list[Message | Part] = []
    own_parts = {part.name: part for part in view.own_parts}

    def place(layout: Message | Part) -> None:
        for name in parts_used(layout.fields):
            if name in own_parts and own_parts[name] not in layouts:
                place(own_parts[name])
        layouts.append(layout)

    for message in view.own_messages:
        place(message)
    return [source.block(layout) for layout in layouts]


def _exported(block: Block) -> list[str]:
    """Return the names of a class, its alternatives and its enumerations."""
    own = [alternative.name for alternative in block.alternatives if alternative.is_own]
    return [block.name, *own, *(enumeration_name(operation.name) for operation in block.enumerations)]


def _formats(block: Block) -> set[str]:
    """Return the `struct` formats of all runs of integers, for reading and writing."""
    formats: set[str] = set()

    def collect(items: tuple[Step, ...]) -> None:
        for step in items:
            if isinstance(step, Run):
                formats.add(step.format)
            elif isinstance(step, Branch):
                collect(step.steps)
            elif isinstance(step, Repeat) and isinstance(step.body, Choose):
                formats.update((step.body.letter.upper(), f"B{step.body.letter}"))

    collect(block.steps)
    collect(block.build_steps)
    if block.measure is not None:
        formats.add(block.measure.letter)
    return formats


def formatted(texts: Mapping[str, str], package: str) -> dict[Path, str]:
    """Return the files as ruff writes them: formatted, with sorted imports and no unused ones. Raises RuntimeError."""
    from ruff import find_ruff_bin  # type: ignore[import-untyped,unused-ignore]

    ours = f"--config=lint.isort.known-first-party={['logicalrep_runtime', package]}"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in texts.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for command in ([*_CHECK, ours], ["format"]):
            arguments = [str(find_ruff_bin()), *command, *_RUFF, str(root)]
            result = subprocess.run(arguments, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise RuntimeError(f"ruff {command[0]} refused the emitted code:\n{result.stdout}{result.stderr}")
        return {Path(name): (root / name).read_text(encoding="utf-8") for name in texts}
