"""One spec, from its files to messages: everything that reads or writes its bytes must agree with the oracle."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from codegen.emit.package import PACKAGE, emit_native, emitted, project_emitted
from codegen.fuzz.columns import batches
from codegen.fuzz.native import COMPILER, build_module, loaded, walked_by
from codegen.fuzz.oracle import NullError, Oracle, RefusedError, Values
from codegen.fuzz.specs import Spec, complete, write
from codegen.model.places import Finding, SpecError
from codegen.model.reader import load, load_project

_MESSAGES = 3
"""Messages of each kind for each state of a session."""
_STATES = 4
"""Combinations of session facts."""
_MUTATIONS = 3
"""Mutated copies of each message."""


@dataclass(frozen=True)
class Fault:
    """A disagreement."""

    check: str
    summary: str
    detail: str = ""


@dataclass(frozen=True)
class Examination:
    """What became of a spec."""

    faults: list[Fault]
    refused: list[Finding] = dataclasses.field(default_factory=list)
    """The checker's findings."""
    messages: int = 0


class _HangError(BaseException):
    """A spec that takes too long."""


def hang(*_: object) -> None:
    """End the examination of a spec, as the handler of a signal."""
    raise _HangError


def examine(spec: Spec, folder: Path, seed: str) -> Examination:
    """Generate a spec's package into an empty folder and use it."""
    write(spec, folder / "spec")
    spec = complete(spec)
    walks = ""
    try:
        if spec["columns"]:
            protocols = load(folder / "spec")
            texts, package, walks = emitted(protocols), PACKAGE, emit_native(protocols)
        else:
            project = load_project(folder / "spec")
            texts, package = project_emitted(project), project.package
    except SpecError as error:
        unplaced = [finding for finding in error.findings if finding.place.line < 1 or finding.place.column < 1]
        faults = [Fault("finding", "has no line or column", str(finding)) for finding in unplaced]
        return Examination(faults, error.findings)
    except _HangError:
        return Examination([Fault("generator", "takes too long")])
    except Exception as error:
        return Examination([_crash("generator", error)])
    for name, text in texts.items():
        (folder / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "out" / name).write_text(text, encoding="utf-8")
    run = _Run(spec, seed)
    try:
        with _imported(folder / "out", package) as module:
            run.package(module, package)
            if walks:
                run.columns(module, walks, folder)
    except _HangError:
        run.faults.append(Fault("package", "takes too long"))
    except Exception as error:
        run.faults.append(_crash("import", error))
    return Examination(run.faults, [], run.messages)


def _crash(check: str, error: BaseException) -> Fault:
    last = traceback.extract_tb(error.__traceback__)[-1]
    summary = f"{type(error).__name__} in {Path(last.filename).name}:{last.name}: {error}"
    return Fault(check, summary, "".join(traceback.format_exception(error)[-4:]).strip())


@contextmanager
def _imported(folder: Path, package: str) -> Iterator[ModuleType]:
    """Import a package from a folder for a while."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]


class _Run:
    def __init__(self, spec: Spec, seed: str) -> None:
        self.spec = spec
        self.seed = seed
        self.faults: list[Fault] = []
        self.messages = 0
        self.drawn: dict[int, list[tuple[str, bytes, Values, Mapping[str, Any]]]] = {}
        """The messages of the server by version."""

    def package(self, module: ModuleType, package: str) -> None:
        """Examine every version."""
        facts = list(_states(self.spec))
        facts = random.Random(self.seed).sample(facts, min(_STATES, len(facts)))
        for version in self.spec["protocol"]["versions"]:
            self.drawn[version] = []
            versioned = importlib.import_module(f"{package}.v{version}")
            senders = sorted({sender for title in self.spec["layouts"] for sender in _senders(self.spec, title)})
            examined = _Version(self, module, versioned, version, two_way=len(senders) > 1)
            for sender, state in product(senders, facts):
                self.drawn[version] += examined.session(sender, state)

    def columns(self, module: ModuleType, walks: str, folder: Path) -> None:
        """Examine batches, walked by `parse` and, if there is a compiler, by the native walks of the spec."""
        columnar = importlib.import_module(f"{module.__name__}.columnar")
        for check in ("columns", "native columns")[: 1 if COMPILER is None else 2]:
            try:
                native = loaded(build_module(walks, folder)) if check == "native columns" else None
                with walked_by(native):
                    faults = batches(self.spec, columnar, module, self.drawn)
                    self.faults.extend(Fault(check, summary, detail) for summary, detail in faults)
            except Exception as error:
                self.faults.append(_crash(check, error))


def _states(spec: Spec) -> Iterator[dict[str, Any]]:
    """Yield the combinations of session facts."""
    session = spec["protocol"]["session"]
    choices = [list(keys["values"]) if "values" in keys else [False, True] for keys in session.values()]
    for values in product(*choices):
        yield dict(zip(session, values, strict=True))


def _senders(spec: Spec, title: str) -> tuple[str, ...]:
    layout = spec["layouts"][title]
    sender = layout.get("from", "server")
    return () if "part of" in layout else ("server", "client") if sender == "both" else (sender,)


class _Version:
    """The module of a version."""

    def __init__(self, run: _Run, package: ModuleType, module: ModuleType, version: int, *, two_way: bool) -> None:
        self.run = run
        self.package = package
        self.module = module
        self.version = version
        self.two_way = two_way
        self.oracle = Oracle(run.spec, version)
        self.decode_error = importlib.import_module("logicalrep_runtime.errors").DecodeError
        self.encode_error = importlib.import_module("logicalrep_runtime.errors").EncodeError
        self.construct_error = importlib.import_module("construct").ConstructError
        self.walk = importlib.import_module("logicalrep_runtime.layout_walk").walk
        self.layouts = importlib.import_module(f"{package.__name__}.layouts").X
        self.arguments = inspect.signature(module.parse).parameters

    def session(self, sender: str, facts: Mapping[str, Any]) -> list[tuple[str, bytes, Values, Mapping[str, Any]]]:
        """Examine the messages of one side in one state; return them."""
        drawn = []
        state = "".join(map(str, facts.values()))
        for title, number in product(self.oracle.messages(sender, facts), range(_MESSAGES)):
            draw = random.Random(f"{self.run.seed}.{self.version}.{sender}.{state}.{title}.{number}")
            try:
                data, values = self.oracle.draw(title, facts, draw)
            except NullError as error:
                self.fault("oracle", "a null value has no bytes", f"{title}: {error}")
                continue
            except RefusedError:
                continue
            self.run.messages += 1
            shown = f"{title} of the {sender} in version {self.version} with {dict(facts)}: {data[:60].hex(' ')}"
            for check in (self.written, self.read):
                try:
                    check(title, data, values, sender, facts, shown)
                except Exception as error:
                    self.run.faults.append(_crash(check.__name__, error))
            for _ in range(_MUTATIONS):
                try:
                    self.altered(self.object_of(title, values), title, facts, draw)
                except Exception as error:
                    self.run.faults.append(_crash("altered", error))
            for _ in range(_MUTATIONS):
                mutated = _mutated(data, draw)
                try:
                    self.mutated(mutated, sender, facts, f"mutated {title}, {shown} to {mutated[:60].hex(' ')}")
                except Exception as error:
                    self.run.faults.append(_crash("mutated", error))
            if sender == "server":
                drawn.append((title, data, values, facts))
        return drawn

    def fault(self, check: str, summary: str, detail: str) -> None:
        self.run.faults.append(Fault(check, summary, detail))

    def class_of(self, title: str) -> Any:
        return getattr(self.module, title)

    def object_of(self, title: str, values: Values) -> Any:
        """Return the message or part with the values."""
        rows = {next(iter(row)): row for row in self.run.spec["layouts"][title]["fields"]}
        arguments = {}
        for name, value in values.items():
            part = rows[name][name] if name in rows else ""
            if part in self.run.spec["layouts"] and value is not None:
                is_list = isinstance(value, tuple)
                value = tuple(self.object_of(part, item) for item in value) if is_list else self.object_of(part, value)
            arguments[name] = value
        return self.class_of(title)(**arguments)

    def written(
        self, title: str, data: bytes, values: Values, sender: str, facts: Mapping[str, Any], shown: str
    ) -> None:
        """All writers give the oracle's bytes."""
        for check, build in self.writers(self.object_of(title, values), facts):
            if (built := build()) != data:
                self.fault(check, "writes other bytes", f"{shown}\nbuild {built[:60].hex(' ')}")

    def writers(self, message: Any, facts: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        named = {name: fact for name, fact in facts.items() if isinstance(fact, bool)}
        yield "build", message.build
        if any(name.startswith("native_write") for name in vars(self.module)):
            yield "build without native", lambda: self.without_native(message.build)
        yield "Struct.build", lambda: message.struct.build(message, **named)

    def altered(self, message: Any, title: str, facts: Mapping[str, Any], draw: random.Random) -> None:
        """All writers refuse an attribute that does not fit its row, and write another value that does."""
        if (altered := _altered(message, self.run.spec["layouts"], facts, draw)) is None:
            return
        expected = self.oracle_bytes(title, _plain(altered), facts)
        shown = f"{altered} in version {self.version} with {dict(facts)}"
        for check, build in self.writers(altered, facts):
            try:
                built = build()
            except (self.encode_error, self.construct_error) as error:
                if expected is not None:
                    self.fault(check, "refuses right attributes", f"{shown}\n{error}")
                continue
            except Exception as error:
                self.run.faults.append(dataclasses.replace(_crash(check, error), detail=f"{shown}\n{error!r}"))
                continue
            if expected is None:
                self.fault(check, "accepts wrong attributes", f"{shown}\n{built[:60].hex(' ')}")
            elif built != expected:
                self.fault(check, "writes other bytes", f"{shown}\nbuild {built[:60].hex(' ')}")

    def oracle_bytes(self, title: str, values: Values, facts: Mapping[str, Any]) -> bytes | None:
        """Return the bytes of values; None if no bytes have these values."""
        try:
            data = self.oracle.written(title, values, facts)
            return data if self.oracle.read(title, data, facts) == values else None
        except (RefusedError, NullError, TypeError, AttributeError, ValueError, LookupError, StopIteration):
            return None

    def read(self, title: str, data: bytes, values: Values, sender: str, facts: Mapping[str, Any], shown: str) -> None:
        """All readers give the oracle's attributes."""
        if title not in self.oracle.candidates(data, sender, facts):
            return  # A message without a tag comes first.
        readings = self.oracle_readings(data, sender, facts)
        if [name for name, _ in readings] != [title]:
            self.fault("oracle", "several messages have these bytes", f"{shown}\n{readings}")
            return
        if readings[0][1] != values:
            self.fault("oracle", "reads other values than it wrote", f"{shown}\n{values}\n{readings}")
            return
        self.agree(data, readings, sender, facts, shown)
        if sender == "server" and any(self.oracle.references(*readings[0]).values()):
            try:
                if self.run.spec["columns"]:
                    self.decoder(facts, None).decode(data)
                else:
                    self.conversation(facts, None).decode(data, sender=sender)
                self.fault("Session", "accepts a reference to nothing", shown)
            except self.decode_error:
                pass
        is_tagged = any("tag" in row for row in self.run.spec["layouts"][title]["fields"])
        awaited = self.oracle.messages(sender, facts)
        # While a message without a tag is awaited, the boundaries of other messages are unknown.
        is_framed = not is_tagged or all("tag" in self.run.spec["layouts"][name]["fields"][0] for name in awaited)
        if is_framed and hasattr(self.package, "Session") and hasattr(self.package.Session, "receive"):
            session = self.conversation(facts, readings[0])
            received = [*session.receive(data[:1], sender=sender), *session.receive(data[1:], sender=sender)]
            if [(whole, _plain(message)) for whole, message in received] != [(data, readings[0][1])]:
                self.fault("Session.receive", "does not yield the message", f"{shown}\n{received}")

    def mutated(self, data: bytes, sender: str, facts: Mapping[str, Any], shown: str) -> None:
        """All readers accept and refuse the same bytes."""
        readings = self.oracle_readings(data, sender, facts)
        if len(readings) > 1:
            self.fault("oracle", "several messages have these bytes", f"{shown}\n{readings}")
        else:
            self.agree(data, readings, sender, facts, shown)

    def oracle_readings(self, data: bytes, sender: str, facts: Mapping[str, Any]) -> list[tuple[str, Values]]:
        """Return the messages that the bytes may be."""
        readings = []
        for title in self.oracle.candidates(data, sender, facts):
            try:
                readings.append((title, self.oracle.read(title, data, facts)))
            except RefusedError:
                continue
        return readings

    def agree(
        self, data: bytes, readings: list[tuple[str, Values]], sender: str, facts: Mapping[str, Any], shown: str
    ) -> None:
        """Compare every reader with the oracle's reading; no reading means that the bytes are illegal."""
        wanted = readings[0] if readings else None
        for check, read in self.readers(data, sender, facts, wanted):
            try:
                message = read()
            except (self.decode_error, self.construct_error) as error:
                if wanted is not None:
                    self.fault(check, "refuses right bytes", f"{shown}\n{error}")
                continue
            except Exception as error:
                self.run.faults.append(dataclasses.replace(_crash(check, error), detail=f"{shown}\n{error!r}"))
                continue
            if message is None and wanted is None:
                continue
            if message is None:
                self.fault(check, "refuses right bytes", shown)
            elif isinstance(message, bytes):
                if message != data:
                    self.fault(check, "has other bytes", f"{shown}\n{message.hex(' ')}")
                elif wanted is None:
                    self.fault(check, "accepts wrong bytes", shown)
            elif wanted is None:
                self.fault(check, "accepts wrong bytes", f"{shown}\n{message}")
            elif (type(message).__name__, _plain(message)) != wanted or not _same_types(_plain(message), wanted[1]):
                self.fault(check, "reads other values", f"{shown}\n{message}\nwanted {wanted}")

    def readers(
        self, data: bytes, sender: str, facts: Mapping[str, Any], wanted: tuple[str, Values] | None
    ) -> Iterator[tuple[str, Callable[[], Any]]]:
        arguments = {**facts, "sender": sender}
        accepted = {name: arguments[name] for name in self.arguments if name in arguments}
        yield "parse", lambda: self.module.parse(data, **accepted)
        yield "parse_from", lambda: self.parsed_from(data, accepted)
        own = (
            vars(self.module).get(name) for name in ("native_read", "native_read_of_server", "native_read_of_client")
        )
        if any(own):
            yield "parse without native", lambda: self.without_native(lambda: self.module.parse(data, **accepted))
        struct = getattr(self.module, f"{sender}_message" if self.two_way else "message")
        yield "Struct.parse", lambda: struct.parse(data, **facts)
        yield (
            "walk",
            lambda: b"".join(
                step.data
                for step in self.walk(self.layouts, self.version, data, facts=facts, sender=sender, strict=True)
            ),
        )
        if not self.run.spec["columns"]:
            yield "Session", lambda: self.conversation(facts, wanted).decode(data, sender=sender)
        elif sender == "server":
            yield "Decoder", lambda: self.decoder(facts, wanted).decode(data)
            yield (
                "Decoder without native",
                lambda: self.without_native(lambda: self.decoder(facts, wanted).decode(data)),
            )

    def parsed_from(self, data: bytes, accepted: dict[str, Any]) -> Any:
        """Parse a message behind another byte. Return None if the message ends before the data."""
        message, end = self.module.parse_from(b"\xff" + data, 1, **accepted)
        return message if end == len(data) + 1 else None

    def without_native(self, call: Callable[[], Any]) -> Any:
        modules = [module for name, module in sys.modules.items() if f"{name}.".startswith(f"{self.package.__name__}.")]
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

    def conversation(self, facts: Mapping[str, Any], wanted: tuple[str, Values] | None) -> Any:
        """Return a session before the wanted message, whose references are described."""
        session = self.package.Session(self.version)
        session.facts.update(facts)
        # A constant may show the version, so a session reads the bytes of others.
        session.parsers = {self.version: session.parsers[self.version]}
        self.describe(session, wanted)
        return session

    def describe(self, session: Any, wanted: tuple[str, Values] | None) -> None:
        for describing, numbers in self.oracle.references(*wanted).items() if wanted else ():
            session.described[describing].update(dict.fromkeys(numbers))

    def decoder(self, facts: Mapping[str, Any], wanted: tuple[str, Values] | None) -> Any:
        decoder = self.package.Decoder(self.version)
        for name, value in facts.items():
            setattr(decoder, name, value)
        places = [keys["place"] for keys in self.run.spec["layouts"].values() if "place" in keys]
        assert places
        self.describe(decoder, wanted)
        return _AnyPlace(decoder)


class _AnyPlace:
    """A decoder that is where the message may come."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def decode(self, data: bytes) -> Any:
        if data[:1] == b"Z":
            self._decoder.block = "stream"
        return self._decoder.decode(data)


def _plain(value: Any) -> Any:
    """Return a message's or a part's values by their names."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


_ODD: list[tuple[type, list[Any]]] = [
    (bool, [2, -1, None, "x"]),
    (int, [-1, 0, 255, 256, 1 << 15, 1 << 31, 1 << 32, 1 << 63, 1 << 64, None, "1", 1.5]),
    (str, ["", "\0", "a\0b", "Q", "QQ", "é", "Ā", "\ud800", None, 5, b"x"]),
    (bytes, [b"", b"?", b"xx", None, "x", 5]),
    (tuple, [(), None, 5, (None,), ("a\0",), (b"",), (1 << 70,)]),
]
"""Values in place of a value of a type."""


def _altered(value: Any, layouts: dict[str, Any], facts: Mapping[str, Any], draw: random.Random) -> Any:
    """Return a message or part with another value of one attribute; None if there is none to alter.

    Whether an attribute is present decides its session fact, so an absent one stays absent, and the reverse.
    """
    conditions = {next(iter(row)): row.get("when") for row in layouts[type(value).__name__]["fields"]}
    values = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = [name for name in values if values[name] is not None or conditions.get(name) not in facts]
    if not names:
        return None
    name = draw.choice(names)
    old = values[name]
    if dataclasses.is_dataclass(old) and draw.random() < 0.7:
        if (new := _altered(old, layouts, {}, draw)) is None:
            return None
    else:
        odd = next((odd for kind, odd in _ODD if isinstance(old, kind)), [None, 5, "x", b"x"])
        new = draw.choice([other for other in odd if other is not None or conditions.get(name) not in facts])
    return type(value)(**values | {name: new})


def _same_types(actual: Any, wanted: Any) -> bool:
    """Return whether values have the types that the oracle has, or subclasses."""
    if isinstance(wanted, dict):
        return all(_same_types(actual[name], value) for name, value in wanted.items())
    if isinstance(wanted, tuple):
        return all(map(_same_types, actual, wanted))
    return isinstance(actual, type(wanted)) and isinstance(actual, bool) == isinstance(wanted, bool)


def _mutated(data: bytes, draw: random.Random) -> bytes:
    kind, at = draw.randrange(5), draw.randrange(len(data))
    changed = draw.choice([0, 1, 2, 127, 128, 255, *b"ABCKLNOP", draw.randrange(256)])
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data + draw.randbytes(draw.randint(1, 3))
    if kind == 2:
        return data[:at] + data[at + 1 :]
    if kind == 3 and at:
        return data[: at - 1] + (b"\xff" * 8)[: len(data) - at + 1] + data[at + 7 :]
    return data[:at] + bytes((changed,)) + data[at + 1 :]
