"""Readers that the compiler of Kaitai Struct makes of the descriptions, in Python and JavaScript."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kaitaistruct import KaitaiStream, KaitaiStruct, KaitaiStructError

from codegen.emit.kaitai import description_name, parameters
from codegen.lowering.operations import Choose, Conditional, Group, Integer, Operation, Operations, Repeat
from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.model import Protocol
from codegen.model.names import class_name, snake_case
from codegen.model.versions import View, views
from codegen.vectors.codec import awaited
from codegen.vectors.command import vectors
from tests.conftest import ROOT
from tests.documents import example

HERE = Path(__file__).parent
MODULES = ROOT / "build" / "kaitai" / "node_modules"
NODE = shutil.which("node")

NEEDS_NODE = pytest.mark.skipif(
    NODE is None or not MODULES.is_dir(),
    reason="no compiler of Kaitai Struct: make build/kaitai/ready needs npm and Node.js",
)

Answer = dict[str, Any]
"""`message` and `fields` of a message, or `refused`, the error of the reader."""


class Sent(NamedTuple):
    """A message; `fields` has the form of vectors, and is None for bytes that are no message."""

    view: View
    sender: str
    facts: Mapping[str, Any]
    data: bytes
    message: Message | None
    fields: Mapping[str, Any] | None

    @property
    def description(self) -> str:
        return description_name(self.view, self.sender)

    @property
    def arguments(self) -> list[Any]:
        """The parameters of the description: facts, those with values by number."""
        return [
            list(fact.values).index(self.facts[fact.name]) if fact.values else bool(self.facts.get(fact.name))
            for fact in parameters(self.view)
        ]


def of_vectors(protocols: Iterable[Protocol]) -> Iterator[Sent]:
    """The vectors of every version."""
    for protocol in protocols:
        for shown in views(protocol):
            messages = {message.name: message for message in shown.messages}
            for vector in vectors(shown):
                message = messages.get(vector.get("message", ""))
                facts = awaited(shown, message) | vector.get("session", {})
                data = bytes.fromhex(vector["bytes"])
                yield Sent(shown, vector.get("from", "server"), facts, data, message, vector.get("fields"))


def node(*arguments: object, text: str = "") -> str:
    """Return what a program of Node.js prints."""
    command = [str(NODE), *map(str, arguments)]
    environment = {"NODE_PATH": str(MODULES)}
    process = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=False)
    if process.returncode:
        raise AssertionError(process.stderr)
    return process.stdout


def compile_all(descriptions: Path, out: Path, *languages: str) -> None:
    """Compile each description of a folder, to a folder of each language."""
    node(HERE / "compile.cjs", ",".join(languages), out, *sorted(descriptions.glob("*.ksy")))


def read_in_python(folder: Path, messages: Iterable[Sent]) -> Iterator[Answer]:
    """Yield what the Python classes read."""
    classes: dict[str, Any] = {}
    for sent in messages:
        name = sent.description
        if name not in classes:
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            classes[name] = getattr(module, _class_of(name))
        try:
            message = classes[name](*sent.arguments, KaitaiStream(io.BytesIO(sent.data))).message
        except (KaitaiStructError, UnicodeDecodeError) as error:
            yield {"refused": repr(error)}
        else:
            yield {"message": type(message).__name__, "fields": _public(message)}


def read_in_javascript(folder: Path, messages: Iterable[Sent]) -> Iterator[Answer]:
    """Yield what the JavaScript classes read, with the names of Python."""
    lines = (json.dumps([_class_of(sent.description), sent.arguments, sent.data.hex()]) for sent in messages)
    setup = folder / "exact.cjs"
    setup.write_text(example("docs/reference/other-languages.md", "BigInt.asIntN"), "utf-8")
    for line in node(HERE / "read.cjs", setup, folder, text="\n".join(lines)).splitlines():
        yield json.loads(line, object_hook=_object)


def _object(fields: dict[str, Any]) -> Any:
    if fields.keys() == {"bigint"}:
        return int(fields["bigint"])
    return {_snake_case(name): item for name, item in fields.items()}


def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _class_of(description: str) -> str:
    return "".join(map(str.capitalize, description.split("_")))


def _public(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_public(item) for item in value]
    if isinstance(value, KaitaiStruct):
        return {name: _public(item) for name, item in vars(value).items() if not name.startswith("_")}
    return value


def expected(sent: Sent) -> Answer:
    """Return the message's name and fields as a reader has them."""
    assert sent.message is not None
    assert sent.fields is not None
    name = _class_of(snake_case(class_name(sent.message.name)))
    return {"message": name, "fields": _fields(sent.view, lower(sent.view, sent.message.fields), sent.fields)}


def _fields(view: View, operations: Operations, values: Mapping[str, Any]) -> Answer:
    fields: Answer = {}
    for operation in operations:
        if isinstance(operation, Conditional):
            fields |= _fields(view, operation.body, values)
        elif operation.name in values and values[operation.name] is not None:
            fields[operation.name] = _value(view, operation, values[operation.name])
    return fields


def _value(view: View, operation: Operation, value: Any) -> Any:
    match operation:
        case Repeat(count="", body=Group()):
            return [
                *({"item": _value(view, operation.body, item)} for item in value),
                {} if operation.end else {"zero": 0},
            ]
        case Repeat(count=""):
            return [*value, ""]
        case Repeat():
            return [_value(view, operation.body, item) for item in value]
        case Group():
            return _fields(view, lower(view, operation.part.fields), value)
        case Choose():
            tag = {operation.tag.name: ord(value[operation.tag.name])}
            body = _fields(view, operation.cases[tag[operation.tag.name]], value)
            return tag | ({"body": body} if body else {})
        case Integer():
            return ord(value) if operation.is_character else int(value)
    return value
