"""The columns of each version: as data for the package, and as steps for the native walks (walks.py).

A column's name is the field's name or its `batch column`. Every message with such a field fills the column, in the
message's rows. All fields of a column must have the same type. Rows that are not attributes of a message's class (tags,
counts, lengths, constants) have no column. For a part that is not repeated, each field is a column such as `new_flags`;
the column of a row's values has the part's name. So a new field in the spec becomes a column and a line in a walk
without manual work.

A column has the same number in all versions, and columns are numbered by their first version. So a function that a
version leaves unchanged has the same text, and the walks share it; a new row of the newest version changes the walks of
no other version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from codegen.emit.rendering import render
from codegen.emit.steps import Branch, Run, Step, checks_of, steps
from codegen.lowering.operations import (
    Bytes,
    Choose,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
    attributes,
    flat,
    renamed,
)
from codegen.lowering.rows import lower
from codegen.model.layouts import Message, Part
from codegen.model.names import class_name, snake_case
from codegen.model.places import Finding, SpecError
from codegen.model.versions import View

_ITEMS = "integers, texts and bytes"
_OTHERWISE = "give it another name with 'batch column'"
_OF_BATCHES = ("tag", "error", "data")
"""The columns of every batch: the tag, and two for refused messages."""


@dataclass(frozen=True)
class ColumnSource:
    """A column as in the package's plan.py."""

    name: str
    kind: str
    width: int = 0
    signed: bool = False
    arrow: str = ""
    epoch: int = 0
    scalar: str = ""
    """An integer's class in Python, for findings."""
    valued: bytes = b""
    texts: bytes = b""
    fields: tuple[ColumnSource, ...] = ()
    function: str = ""
    """The name of a list's part in the walk's functions."""
    path: str = ""
    """For cells, the path of a value in errors; for a field of a list's items, its attribute in Python."""

    @property
    def is_fixed(self) -> bool:
        return self.kind in ("char", "bool", "int")

    @property
    def has_spans(self) -> bool:
        """True for texts, bytes, and lists other than rows."""
        return not self.is_fixed and self.kind != "cells"

    @property
    def item_width(self) -> int:
        """The bytes of an array's item for a field of a list's items: an integer, or one of a span's."""
        return self.width if self.is_fixed else 8

    @property
    def held(self) -> str:
        """The type of the values in words."""
        integer = self.scalar or f"{'int' if self.signed else 'uint'}{8 * self.width}"
        words = {"char": "a character", "bool": "a truth value", "int": integer, "ints": f"a list of {integer}"}
        items = ", ".join(f"{item.name}: {item.held}" for item in self.fields)
        return (words | {"items": f"a list of ({items})", "cells": "a row's values"}).get(self.kind, self.kind)

    def __str__(self) -> str:
        shown = [f"name={self.name!r}", f"kind={self.kind!r}"]
        for name in ("width", "signed", "arrow", "epoch", "valued", "texts", "path"):
            if value := getattr(self, name):
                shown.append(f"{name}={value!r}")
        if self.fields:
            shown.append(f"fields=({''.join(f'{item}, ' for item in self.fields)})")
        return f"PlanColumn({', '.join(shown)})"


@dataclass(frozen=True)
class MessageSource:
    """A message of a version, and the walk's steps to read it."""

    message: Message
    when: str
    columns: dict[str, ColumnSource]
    """The columns by the names of their variables."""
    steps: tuple[Step, ...]

    @property
    def numbered(self) -> dict[str, ColumnSource]:
        """The columns by the paths of their attributes in Python; for cells, the object that has kinds and values."""
        paths = {variable.removesuffix("_").replace("__", "."): column for variable, column in self.columns.items()}
        return {path.rpartition(".")[0] if column.kind == "cells" else path: column for path, column in paths.items()}

    @property
    def function(self) -> str:
        """The message's name in the walk's functions."""
        return snake_case(class_name(self.message.name))

    @property
    def has_cells(self) -> bool:
        return any(column.kind == "cells" for column in self.columns.values())

    @property
    def spans(self) -> list[ColumnSource]:
        return [column for column in self.columns.values() if column.has_spans]


@dataclass(frozen=True)
class PartSource:
    """A repeated part, cells or items of a list, and the walk's steps to read it."""

    body: Choose | Group
    function: str
    steps: tuple[Step, ...]
    """The steps, with the names of variables."""
    columns: dict[str, ColumnSource]
    """The columns by the names of their variables."""

    @property
    def part(self) -> Part:
        return self.body.part

    @property
    def is_choice(self) -> bool:
        """True for cells, False for items of a list."""
        return isinstance(self.body, Choose)


class WalkSource:
    """The messages, columns and parts of a version's walk."""

    def __init__(self, versions: tuple[View, ...], view: View) -> None:
        self.protocol = view.protocol
        self.sent = versions[-1].messages
        self.version = view.version
        self.columns: list[ColumnSource] = []
        self.every: list[ColumnSource] = []
        """The columns of all versions, by number."""
        self.parts: list[PartSource] = []
        self._clashes: dict[str, Finding] = {}
        self._owners: dict[str, str] = {}
        self.messages = [self._message(message, shown) for message, shown in self._layouts(versions)]
        if self._clashes:
            raise SpecError(list(self._clashes.values()))

    def _layouts(self, versions: tuple[View, ...]) -> Iterator[tuple[Message, View]]:
        """Yield the version's messages, and later versions' messages that a session fact allows."""
        for message in versions[-1].messages:
            if message.sender != "client" and message.is_sent_in(self.version):
                shown = next(view for view in versions[self.version - 1 :] if view.layout(message.name))
                layout = shown.layout(message.name)
                assert isinstance(layout, Message)
                yield layout, shown

    def _message(self, message: Message, shown: View) -> MessageSource:
        operations = lower(shown, message.fields)
        _refuse_constant_bytes(operations)
        columns: dict[str, ColumnSource] = {}
        for name, operation, column in self._columns(operations, shown):
            self._add(column, message, operation, tuple(columns.values()))
            columns[_local(name)] = column
        return MessageSource(
            message=message,
            when=(message.also_when or "") if shown.version > self.version else "",
            columns=columns,
            steps=_inlined(shown, steps(renamed(operations[1:], _local))),
        )

    def _add(self, column: ColumnSource, message: Message, operation: Operation, own: tuple[ColumnSource, ...]) -> None:
        """Add a message's column. If the column's name is taken, add a finding."""
        existing = next((other for other in self.columns if other.name == column.name), None)
        where, problem = f"{message.name}.{operation.name} fills the column {column.name!r} of batches", ""
        if column.name in _OF_BATCHES:
            problem = f"{where}, which every batch has"
        elif any(other.name == column.name for other in own):
            problem = f"{where}, which another field of the message fills"
        elif existing is not None and existing != column:
            held = f"with {column.held}, but {self._owners[column.name]} with {existing.held}"
            problem = f"{where} {held if existing.held != column.held else 'otherwise than another message'}"
        if problem:
            self._clashes.setdefault(column.name, Finding(operation.place, f"{problem}; {_OTHERWISE}"))
        elif existing is None:
            self.columns.append(column)
            self._owners[column.name] = f"{message.name}.{operation.name}"

    def _columns(
        self, operations: Operations, shown: View, within: str = "", name: str = ""
    ) -> Iterator[tuple[str, Operation, ColumnSource]]:
        """Yield a layout's columns with their rows, including columns of parts that are not repeated."""
        for operation in attributes(operations):
            if isinstance(operation, Group):
                inner = lower(shown, operation.part.fields)
                _refuse_constant_bytes(inner)
                yield from self._columns(inner, shown, f"{within}{operation.name}__", f"{name}{operation.column}_")
                continue
            column = self._column(operation, shown, path=f"{within}{operation.name}".replace("__", "."))
            # Cells have the name of their part.
            is_values = within and column.kind == "cells" and operation.column == operation.name
            own = name.removesuffix("_") if is_values else name + operation.column
            yield within + operation.name, operation, replace(column, name=own)

    def _column(self, operation: Operation, shown: View, path: str) -> ColumnSource:
        match operation:
            case Text():
                return ColumnSource(operation.column, "text")
            case Bytes(nullable=True):
                raise _unknown(operation, "may be null")
            case Bytes():
                return ColumnSource(operation.column, "bytes")
            case Repeat(count="", end=end):
                raise _unknown(operation, "repeats until a constant" if end else "repeats until a zero byte")
            case Repeat(body=Text()):
                raise _unknown(operation, "repeats a text")
            case Repeat(body=Take() as item):
                return self._integer(item, "ints")
            case Repeat():
                return self._repeated(operation, shown, path)
        assert isinstance(operation, Take)
        if operation.is_character and not operation.allowed:
            raise _unknown(operation, "is any character")
        if operation.is_character or operation.wrapper == "bool":
            return ColumnSource(operation.column, "char" if operation.is_character else "bool", 1)
        return self._integer(operation, "int")

    def _integer(self, operation: Take, kind: str) -> ColumnSource:
        named = self.protocol.types[operation.named] if operation.named else None
        arrow, epoch = (named.arrow, named.epoch) if named is not None else ("", 0)
        return ColumnSource(
            operation.column, kind, operation.width, operation.signed, arrow, epoch, scalar=operation.scalar
        )

    def _repeated(self, operation: Repeat, view: View, path: str) -> ColumnSource:
        """Return the column of cells or of a list of items. Raises SpecError for another kind of part."""
        if isinstance(operation.body, Choose):
            choose = operation.body
            self._function(choose, ())
            return ColumnSource(
                operation.column,
                "cells",
                valued=choose.valued.encode("ascii"),
                texts=choose.texts.encode("ascii"),
                path=f"{path}[{{}}].{choose.value}",
            )
        assert isinstance(operation.body, Group)
        part = operation.body.part
        operations = lower(view, part.fields)
        _refuse_constant_bytes(operations)
        shapes = [inner.kind for inner in steps(operations)]
        if not set(shapes) <= {"run", "text", "bytes"}:
            text = f"{operation.name} repeats {part.name}, of {', '.join(shapes)}; columns hold lists of {_ITEMS} only"
            raise SpecError([Finding(operation.place, text)])
        columns: dict[str, ColumnSource] = {}
        for inner in attributes(operations):
            if inner.column in {column.name for column in columns.values()}:
                text = (
                    f"{part.name}.{inner.name} is named {inner.column!r} in the items of a column, like another field"
                )
                self._clashes.setdefault(text, Finding(inner.place, f"{text}; {_OTHERWISE}"))
            columns[_local(inner.name)] = replace(self._column(inner, view, path), path=inner.name)
        function = self._function(operation.body, operations, columns)
        return ColumnSource(operation.column, "items", fields=tuple(columns.values()), function=function)

    def _function(
        self, body: Choose | Group, operations: Operations, columns: Mapping[str, ColumnSource] = MappingProxyType({})
    ) -> str:
        """Return the name of a part's function. Two versions of a part in one walk have two functions."""
        if all(part.part != body.part for part in self.parts):
            same = sum(part.function.rstrip("_") == snake_case(body.part.name) for part in self.parts)
            name = snake_case(body.part.name) + "_" * same
            self.parts.append(PartSource(body, name, steps(renamed(operations, _local)), dict(columns)))
        return self.function_of(body.part)

    # For the templates.

    def function_of(self, part: Part) -> str:
        return next(source.function for source in self.parts if source.part == part)

    def load_of(self, integer: Integer) -> str:
        return f"{'int' if integer.signed else 'uint'}{8 * integer.width}"

    def is_measure(self, integer: Integer) -> bool:
        """Return whether the walk needs an integer even if it writes nothing."""
        return isinstance(integer, Measure)

    def is_checked(self, integer: Integer) -> bool:
        """Return whether some values of an integer are illegal."""
        return bool(checks_of(Run((integer,)), members=True))

    def number_of(self, column: ColumnSource) -> int:
        return self.every.index(column)

    def constant_of(self, column: ColumnSource) -> str:
        """Return the walk's name for the column's number. Versions may have different columns of one name."""
        same = [candidate for candidate in self.every if candidate.name == column.name]
        return f"{column.name.upper()}_COLUMN{'_' * same.index(column)}"

    def cells_number_of(self, column: ColumnSource) -> int:
        return [candidate for candidate in self.every if candidate.kind == "cells"].index(column)

    def span_number_of(self, column: ColumnSource) -> int:
        return [candidate for candidate in self.every if candidate.has_spans].index(column)

    @property
    def dispatch(self) -> list[MessageSource]:
        """The messages in the order of the comparisons of tags: messages with rows are the most frequent."""
        return sorted(self.messages, key=lambda message: not message.has_cells)


def _unknown(operation: Operation, reason: str) -> SpecError:
    return SpecError([Finding(operation.place, f"{operation.name} {reason}, which batches have no column for")])


def _refuse_constant_bytes(operations: Operations) -> None:
    for operation in flat(operations):
        if isinstance(operation, Bytes) and operation.constant:
            raise SpecError(
                [Finding(operation.place, f"{operation.name} is constant bytes, which batches cannot read")]
            )


def _inlined(shown: View, items: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps with parts that are not repeated replaced by their own steps, under longer names."""
    inlined: list[Step] = []
    for step in items:
        if isinstance(step, Branch):
            inlined.append(replace(step, steps=_inlined(shown, step.steps)))
        elif isinstance(step, Group):
            operations = renamed(lower(shown, step.part.fields), f"{step.name}_{{}}_".format)
            inlined += _inlined(shown, steps(operations))
        else:
            inlined.append(step)
    return tuple(inlined)


def _local(name: str) -> str:
    """Return the variable of a field. Nothing else in a walk ends with an underscore."""
    return f"{name}_"


def _plans(messages: tuple[Message, ...], walks: list[WalkSource]) -> Iterator[str]:
    """Yield messages as in the package's plans.py: one entry for all versions with the same columns."""
    for message in messages:
        versions_by_columns: dict[str, list[int]] = {}
        for walk in walks:
            for source in (candidate for candidate in walk.messages if candidate.message.name == message.name):
                numbers = {path: walk.number_of(column) for path, column in source.numbered.items()}
                versions_by_columns.setdefault(str(numbers), []).append(walk.version)
        for columns, versions in versions_by_columns.items():
            when = f", when={message.also_when!r}" if message.also_when else ""
            named = f"name={message.name!r}, tag={message.tag!r}, since={message.since}, versions={tuple(versions)}"
            yield f"MessagePlan({named}, columns={columns}{when})"


def walks_of(versions: tuple[View, ...]) -> list[WalkSource]:
    """Return the source of each version's walk, with the same numbers of columns. Raises SpecError."""
    protocol = versions[0].protocol
    if protocol.byte_order == "little":
        raise SpecError([Finding(protocol.place, "batches read integers with 'byte order: big' only")])
    walks = [WalkSource(versions, view) for view in versions]
    every = list(dict.fromkeys(column for walk in walks for column in walk.columns))
    for walk in walks:
        walk.every = every
    return walks


def emit_columnar(walks: list[WalkSource], package: str, digests: Mapping[int, str]) -> dict[str, str]:
    """Return the sub-package's files by path within the package: session and plans."""
    context = {"protocol": walks[0].protocol, "package": package, "digests": digests}
    plans = _plans(walks[-1].sent, walks)
    return {
        "columnar/__init__.py": render("columnar_init.py.j2", **context),
        "columnar/plans.py": render("columnar_plans.py.j2", columns=walks[0].every, messages=plans, **context),
    }
