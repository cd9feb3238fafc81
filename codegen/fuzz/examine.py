"""One spec, from its files to messages: everything that reads or writes its bytes must agree with the oracle."""

from __future__ import annotations

import dataclasses
import importlib
import random
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from codegen.emit.package import PACKAGE, emit_native, emitted, project_emitted
from codegen.fuzz.alterations import alter_attribute, mutate_bytes
from codegen.fuzz.codecs import Codecs, plain
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
            run.package(module)
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

    def package(self, package: ModuleType) -> None:
        """Examine every version."""
        facts = list(_states(self.spec))
        facts = random.Random(self.seed).sample(facts, min(_STATES, len(facts)))
        for version in self.spec["protocol"]["versions"]:
            self.drawn[version] = []
            senders = sorted({sender for title in self.spec["layouts"] for sender in _senders(self.spec, title)})
            examined = _Version(self, package, version, two_way=len(senders) > 1)
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

    def __init__(self, run: _Run, package: ModuleType, version: int, *, two_way: bool) -> None:
        self.run = run
        self.package = package
        self.version = version
        self.oracle = Oracle(run.spec, version)
        self.codecs = Codecs(run.spec, package, version, self.oracle, two_way=two_way)
        self.decode_error = importlib.import_module("logicalrep_runtime.errors").DecodeError
        self.encode_error = importlib.import_module("logicalrep_runtime.errors").EncodeError
        self.construct_error = importlib.import_module("construct").ConstructError

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
                    self.altered(self.codecs.object_of(title, values), title, facts, draw)
                except Exception as error:
                    self.run.faults.append(_crash("altered", error))
            for _ in range(_MUTATIONS):
                mutated = mutate_bytes(data, draw)
                try:
                    self.mutated(mutated, sender, facts, f"mutated {title}, {shown} to {mutated[:60].hex(' ')}")
                except Exception as error:
                    self.run.faults.append(_crash("mutated", error))
            if sender == "server":
                drawn.append((title, data, values, facts))
        return drawn

    def fault(self, check: str, summary: str, detail: str) -> None:
        self.run.faults.append(Fault(check, summary, detail))

    def written(
        self, title: str, data: bytes, values: Values, sender: str, facts: Mapping[str, Any], shown: str
    ) -> None:
        """All writers give the oracle's bytes."""
        for check, build in self.codecs.writers(self.codecs.object_of(title, values), facts):
            if (built := build()) != data:
                self.fault(check, "writes other bytes", f"{shown}\nbuild {built[:60].hex(' ')}")

    def altered(self, message: Any, title: str, facts: Mapping[str, Any], draw: random.Random) -> None:
        """All writers refuse an attribute that does not fit its row, and write another value that does."""
        if (altered := alter_attribute(message, self.run.spec["layouts"], facts, draw)) is None:
            return
        expected = self.oracle_bytes(title, plain(altered), facts)
        shown = f"{altered} in version {self.version} with {dict(facts)}"
        for check, build in self.codecs.writers(altered, facts):
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
                    self.codecs.decoder(facts, None).decode(data)
                else:
                    self.codecs.conversation(facts, None).decode(data, sender=sender)
                self.fault("Session", "accepts a reference to nothing", shown)
            except self.decode_error:
                pass
        is_tagged = any("tag" in row for row in self.run.spec["layouts"][title]["fields"])
        awaited = self.oracle.messages(sender, facts)
        # While a message without a tag is awaited, the boundaries of other messages are unknown.
        is_framed = not is_tagged or all("tag" in self.run.spec["layouts"][name]["fields"][0] for name in awaited)
        if is_framed and hasattr(self.package, "Session") and hasattr(self.package.Session, "receive"):
            session = self.codecs.conversation(facts, readings[0])
            received = [*session.receive(data[:1], sender=sender), *session.receive(data[1:], sender=sender)]
            if [(whole, plain(message)) for whole, message in received] != [(data, readings[0][1])]:
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
        reading = readings[0] if readings else None
        for check, read in self.codecs.readers(data, sender, facts, reading):
            try:
                message = read()
            except (self.decode_error, self.construct_error) as error:
                if reading is not None:
                    self.fault(check, "refuses right bytes", f"{shown}\n{error}")
                continue
            except Exception as error:
                self.run.faults.append(dataclasses.replace(_crash(check, error), detail=f"{shown}\n{error!r}"))
                continue
            if message is None and reading is None:
                continue
            if message is None:
                self.fault(check, "refuses right bytes", shown)
            elif isinstance(message, bytes):
                if message != data:
                    self.fault(check, "has other bytes", f"{shown}\n{message.hex(' ')}")
                elif reading is None:
                    self.fault(check, "accepts wrong bytes", shown)
            elif reading is None:
                self.fault(check, "accepts wrong bytes", f"{shown}\n{message}")
            elif (type(message).__name__, plain(message)) != reading or not _same_types(plain(message), reading[1]):
                self.fault(check, "reads other values", f"{shown}\n{message}\nwanted {reading}")


def _same_types(actual: Any, wanted: Any) -> bool:
    """Return whether values have the types that the oracle has, or subclasses."""
    if isinstance(wanted, dict):
        return all(_same_types(actual[name], value) for name, value in wanted.items())
    if isinstance(wanted, tuple):
        return all(map(_same_types, actual, wanted))
    return isinstance(actual, type(wanted)) and isinstance(actual, bool) == isinstance(wanted, bool)
