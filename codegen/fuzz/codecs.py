"""All readers and writers of a version's messages, and the sessions that they read in."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from codegen.fuzz.oracle import Oracle, Values
from codegen.fuzz.specs import Spec


class Codecs:
    """The readers and writers of a version."""

    def __init__(self, spec: Spec, package: ModuleType, version: int, oracle: Oracle, *, two_way: bool) -> None:
        self._spec = spec
        self._package = package
        self._version = version
        self._oracle = oracle
        self._two_way = two_way
        self._module = importlib.import_module(f"{package.__name__}.v{version}")
        self._walk = importlib.import_module("logicalrep_runtime.layout_walk").walk
        self._layouts = importlib.import_module(f"{package.__name__}.layouts").X
        self._arguments = inspect.signature(self._module.parse).parameters

    def object_of(self, title: str, values: Values) -> Any:
        """Return the message or part with the values."""
        rows = {next(iter(row)): row for row in self._spec["layouts"][title]["fields"]}
        arguments = {}
        for name, value in values.items():
            part = rows[name][name] if name in rows else ""
            if part in self._spec["layouts"] and value is not None:
                is_list = isinstance(value, tuple)
                value = tuple(self.object_of(part, item) for item in value) if is_list else self.object_of(part, value)
            arguments[name] = value
        return getattr(self._module, title)(**arguments)

    def writers(self, message: Any, facts: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield each writer's name, and a call that returns the message's bytes."""
        named = {name: fact for name, fact in facts.items() if isinstance(fact, bool)}
        yield "build", message.build
        if any(name.startswith("native_write") for name in vars(self._module)):
            yield "build without native", lambda: self._without_native(message.build)
        yield "Struct.build", lambda: message.struct.build(message, **named)

    def readers(
        self, data: bytes, sender: str, facts: Mapping[str, Any], reading: tuple[str, Values] | None
    ) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield each reader's name, and a call that returns a message, its bytes, or None for no message."""
        arguments = {**facts, "sender": sender}
        accepted = {name: arguments[name] for name in self._arguments if name in arguments}
        yield "parse", lambda: self._module.parse(data, **accepted)
        yield "parse_from", lambda: self._parsed_from(data, accepted)
        own = (
            vars(self._module).get(name) for name in ("native_read", "native_read_of_server", "native_read_of_client")
        )
        if any(own):
            yield "parse without native", lambda: self._without_native(lambda: self._module.parse(data, **accepted))
        struct = getattr(self._module, f"{sender}_message" if self._two_way else "message")
        yield "Struct.parse", lambda: struct.parse(data, **facts)
        yield (
            "walk",
            lambda: b"".join(
                step.data
                for step in self._walk(self._layouts, self._version, data, facts=facts, sender=sender, strict=True)
            ),
        )
        if not self._spec["columns"]:
            yield "Session", lambda: self.conversation(facts, reading).decode(data, sender=sender)
        elif sender == "server":
            yield "Decoder", lambda: self.decoder(facts, reading).decode(data)
            yield (
                "Decoder without native",
                lambda: self._without_native(lambda: self.decoder(facts, reading).decode(data)),
            )

    def _parsed_from(self, data: bytes, accepted: dict[str, Any]) -> Any:
        """Parse a message behind another byte. Return None if the message ends before the data."""
        message, end = self._module.parse_from(b"\xff" + data, 1, **accepted)
        return message if end == len(data) + 1 else None

    def _without_native(self, call: Callable[[], Any]) -> Any:
        modules = [
            module for name, module in sys.modules.items() if f"{name}.".startswith(f"{self._package.__name__}.")
        ]
        native = [
            (module, {name: value for name, value in vars(module).items() if name.startswith("native_")})
            for module in modules
        ]
        try:
            for module, functions in native:
                vars(module).update(dict.fromkeys(functions))
            return call()
        finally:
            for module, functions in native:
                vars(module).update(functions)

    def conversation(self, facts: Mapping[str, Any], reading: tuple[str, Values] | None) -> Any:
        """Return a session before a message, where the references of its reading are described."""
        session = self._package.Session(self._version)
        session.facts.update(facts)
        # A constant may show the version, so a session reads the bytes of others.
        session.parsers = {self._version: session.parsers[self._version]}
        self._describe(session, reading)
        return session

    def _describe(self, session: Any, reading: tuple[str, Values] | None) -> None:
        for describing, numbers in self._oracle.references(*reading).items() if reading else ():
            session.described[describing].update(dict.fromkeys(numbers))

    def decoder(self, facts: Mapping[str, Any], reading: tuple[str, Values] | None) -> Any:
        decoder = self._package.Decoder(self._version)
        for name, value in facts.items():
            setattr(decoder, name, value)
        self._describe(decoder, reading)
        return _AnyPlace(decoder)


class _AnyPlace:
    """A decoder that is where the message may come."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def decode(self, data: bytes) -> Any:
        if data[:1] == b"Z":
            self._decoder.block = "stream"
        return self._decoder.decode(data)


def plain(value: Any) -> Any:
    """Return a message's or a part's values by their names."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
