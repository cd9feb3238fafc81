"""Random specs, as plain data: rows with any modifiers, repaired until the checker accepts the spec."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from codegen.fuzz.oracle import Row, name_of, type_of

Spec = dict[str, Any]
"""`protocol`, `types` and `layouts` as in the YAML, and `columns`: whether the protocol has a Decoder and batches."""

TYPES: dict[str, Any] = {
    "Lsn": {
        "base": "Int64",
        "signed": False,
        "python": "logicalrep_runtime.scalars.Lsn",
        "made by": "logicalrep_runtime.scalars.lsn_of",
    },
    "Oid": {"base": "Int32", "signed": False, "python": "logicalrep_runtime.scalars.Oid"},
    "Stamp": {
        "base": "Int64",
        "signed": True,
        "python": "logicalrep_runtime.scalars.TimestampTz",
        "made by": "logicalrep_runtime.scalars.TimestampTz",
        "arrow": "timestamp[us, UTC]",
        "epoch": 946_684_800_000_000,
    },
    "Tiny": {"base": "Int8", "signed": True, "python": "int"},
    "Unsigned": {"base": "Int32", "signed": False, "python": "int"},
    "Level": {"base": "Int16", "signed": False, "python": "Level", "values": {1: "low", 300: "high"}},
    "Grade": {"base": "Int8", "signed": False, "python": "Grade", "values": {0: "none", 7: "best"}},
}
_FACTS = ["stormy", "loud"]
_NAMES = [
    "data", "end", "size", "length", "len", "text", "out", "start", "item", "count", "offset", "row", "format",
    "facts", "a_size", "b_size", "kind", "error", "parse", "block", "columns", "this", "cells", "spans", "result",
    "sender",
]  # fmt: skip
_TAGS = "ABC"
_INTEGERS = ["Int8", "Int16", "Int32", "Int64"]


class _Drawing:
    """One random spec."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.versions = draw.choice([1, 1, 2, 3])
        self.has_columns = draw.random() < 0.4
        self.count = 0

    def often(self, probability: float) -> bool:
        return self.draw.random() < probability

    def spec(self) -> Spec:
        draw = self.draw
        layouts: dict[str, Any] = {
            **{f"M{letter}": self.message() for letter in "abcd"[: draw.choice([1, 1, 2, 2, 3, 4])]},
            "Pa": {"fields": self.rows("PbCells")},
            "Pb": {"fields": self.rows("")},
            "Cells": {"one of": {f"C{letter}": self.alternative(letter) for letter in "xyz"[: draw.randint(1, 3)]}},
        }
        for name in ("Pa", "Pb", "Cells"):
            layouts[name] = {"part of": [], "doc": "D.", **layouts[name]}
        protocol: dict[str, Any] = {
            "protocol": "x",
            "title": "X",
            "doc": "X.",
            "versions": {number: {"module": f"v{number}", "doc": "D."} for number in range(1, self.versions + 1)},
            "session": {fact: {"doc": "It holds."} for fact in _FACTS},
            "files": ["m"],
        }
        if self.has_columns:
            protocol["blocks"] = {"stream": "From Open to Close."}
            layouts["Open"] = {"doc": "D.", "place": "outside", "opens": "stream", "fields": [{"tag": "Byte1('Y')"}]}
            layouts["Close"] = {"doc": "D.", "place": "stream", "closes": "stream", "fields": [{"tag": "Byte1('Z')"}]}
        else:
            protocol["package"] = "x_protocol"
        if (self.often(0.3) and not self.has_columns) or any("when" in layout for layout in layouts.values()):
            protocol["session"]["expected"] = {"doc": "What is expected.", "values": {"a": "A.", "b": "B."}}
        if self.often(0.25):
            protocol["byte order"] = "little"
        for key, other in (("sets", "clears"), ("clears", "sets")):
            if any(layout.get(key) == "stormy" for layout in layouts.values()):
                layouts[draw.choice([title for title in layouts if title.startswith("M")])][other] = "stormy"
        if self.often(0.3):
            self.refer(layouts, *draw.choices([title for title in layouts if title.startswith("M")], k=2))
        types = {name: {**keys, "doc": "D."} for name, keys in TYPES.items()}
        return {"protocol": protocol, "types": types, "layouts": layouts, "columns": self.has_columns}

    def refer(self, layouts: dict[str, Any], describing: str, referring: str) -> None:
        """Let a message describe objects, and a message refer to them."""
        reference: Row = {"reference": "Int32 (Oid)", "looks up": describing, "doc": "D."}
        count: list[Row] = [{"reference_count": "Int16", "doc": "D."}] if self.often(0.3) else []
        layouts[describing] |= {"describes": "object", "described as": "an object"}
        for title, rows in (
            (describing, [{"object": "Int32 (Oid)", "doc": "D."}]),
            (referring, [*count, reference | ({"repeat": "reference_count"} if count else {})]),
        ):
            fields = layouts[title]["fields"]
            place = next((index for index, row in enumerate(fields) if not ({"tag", "measures"} & row.keys())), 0)
            fields[place:place] = rows

    def message(self) -> dict[str, Any]:
        draw = self.draw
        layout: dict[str, Any] = {"doc": "D."}
        if self.has_columns:
            layout["place"] = "anywhere"
        if self.often(0.3):
            layout["from"] = draw.choice(["client", "both"])
        if self.versions > 1 and self.often(0.25):
            layout["since"] = draw.randint(2, self.versions)
        has_tag = self.has_columns or self.often(0.85)
        if self.often(0.02 if self.has_columns else 0.2 if has_tag else 0.95):
            layout["when"] = f"expected = {draw.choice('ab')}"
        if self.often(0.1):
            layout["sets"] = draw.choice(["stormy"] if self.has_columns else ["expected = a", "expected = b", "stormy"])
        if self.often(0.05):
            layout["clears"] = "stormy"
        rows: list[Row] = [{"tag": f"Byte1('{draw.choice(_TAGS)}')"}] if has_tag else []
        rows += self.rows("PaPbCells")
        if self.often(0.25):
            place = int(has_tag) if self.often(0.8) else len(rows) - 1
            rows.insert(place, {"length": "Int32", "measures": "message", "doc": "D."})
        layout["fields"] = rows
        return layout

    def alternative(self, letter: str) -> dict[str, Any]:
        rows: list[Row] = [{"code": f"Byte1('{letter}')", "doc": "D."}]
        if self.often(0.7):
            rows += [
                {"value_size": self.draw.choice(["Int32", "Int32", "Int16", "Int8"]), "doc": "D."},
                {"value": "Byten", "size": "value_size", "doc": "D."},
            ]
        self.disturb(rows)
        since = {"since": self.draw.randint(2, self.versions)} if self.versions > 1 and self.often(0.2) else {}
        return {"doc": "D.", **since, "fields": rows}

    def name(self) -> str:
        self.count += 1
        return self.draw.choice(_NAMES) if self.often(0.15) else f"f{self.count}"

    def rows(self, parts: str) -> list[Row]:
        """Return rows of several shapes; `parts` has the names of the parts that they may have."""
        names = [name for name in ("Pa", "Pb", "Cells") if name in parts]
        rows: list[Row] = []
        shapes: list[Callable[[list[str]], list[Row]]] = [
            self.plain, self.plain, self.byte, self.constant, self.sized, self.repeated, self.until_zero,
            self.until_constant, self.text, self.part, self.optional, self.dependent,
        ]  # fmt: skip
        for _ in range(self.draw.choice([0, 1, 1, 2, 2, 3, 4])):
            group = self.draw.choice(shapes)(names)
            at = self.draw.randint(0, len(rows)) if self.often(0.3) else len(rows)
            # A row between a measure and the measured row.
            if rows and len(group) == 2 and self.often(0.2):
                rows[at:at] = group[:1]
                rows += group[1:]
            else:
                rows[at:at] = group
        if self.often(0.1):
            rows.append({self.name(): "Byten", "size": "rest"})
        for row in rows:
            row["doc"] = "D."
        self.disturb(rows)
        return rows or [{self.name(): "Int16", "doc": "D."}]

    def disturb(self, rows: list[Row]) -> None:
        """Add any modifier to some rows, and versions."""
        for row in rows:
            if self.often(0.12):
                key, values = self.draw.choice(list(self.modifiers(rows)))
                row[key] = self.draw.choice(values)
            if self.versions > 1 and self.often(0.12):
                row["since"] = self.draw.randint(2, self.versions)
            if self.versions > 1 and self.often(0.08):
                row["until"] = self.draw.randint(1, self.versions - 1)
                if self.often(0.5):
                    successor = {**row, "since": row["until"] + 1}
                    del successor["until"]
                    rows.insert(rows.index(row) + 1, successor)
                    break

    def modifiers(self, rows: list[Row]) -> Iterator[tuple[str, list[Any]]]:
        names = [name_of(row) for row in rows]
        yield "when", [*_FACTS, *names]
        yield "optional", [True]
        yield "size", [*names, "rest"]
        yield "repeat", [*names, "until zero"]
        yield "measures", ["message"]
        for key in ("may be null", "any character", "nonzero", "boolean", "holds text"):
            yield key, [True]
        yield "bits", [{1: "red", 128: "blue"}, {2: "green"}]
        yield "values", [{"d": "done", "x": "broken"}, {"e": "only"}]
        yield "is", list(TYPES)
        yield "batch column", ["shared", "f1"]
        yield "looks up", ["Ma", "Pa"]

    def integer(self) -> str:
        base = self.draw.choice(_INTEGERS)
        named = [name for name, keys in TYPES.items() if keys["base"] == base]
        return f"{base} ({self.draw.choice(named)})" if named and self.often(0.4) else base

    def plain(self, _: list[str]) -> list[Row]:
        row: Row = {self.name(): self.integer()}
        if self.often(0.15):
            row["nonzero"] = True
        return [row]

    def byte(self, _: list[str]) -> list[Row]:
        keys = [("boolean", True), ("bits", {1: "red", 4: "pink"}), ("values", {"d": "done", "x": "broken"})]
        row: Row = {self.name(): self.draw.choice(["Int8", "Byte1"])}
        if self.often(0.8):
            key, value = self.draw.choice(keys)
            row[key] = value
        if self.often(0.3):
            row["any character"] = True
        return [row]

    def constant(self, _: list[str]) -> list[Row]:
        kinds = ["Int8(1)", "Int16(2)", "Int32(8)", "Int32(0)", "Byte1('K')", "Byte1('K') | Byte1('L')"]
        kinds += ["Int16(-1)", "Byte3('a\\0\\n')"]
        return [{self.name(): self.draw.choice(kinds)}]

    def sized(self, _: list[str]) -> list[Row]:
        measure, value = self.name(), self.name()
        row: Row = {value: "Byten", "size": measure}
        if self.often(0.25):
            row["may be null"] = True
        if self.often(0.15):
            row["holds text"] = True
        return [{measure: self.integer()}, row]

    def repeated(self, parts: list[str]) -> list[Row]:
        measure, value = self.name(), self.name()
        kinds = [self.integer(), "Int16[C]", "String", "Byte4", "Byte1('K') | Byte1('L')", *parts, *parts]
        return [{measure: self.draw.choice(_INTEGERS)}, {value: self.draw.choice(kinds), "repeat": measure}]

    def until_zero(self, parts: list[str]) -> list[Row]:
        return [{self.name(): self.draw.choice(["String", self.integer(), *parts]), "repeat": "until zero"}]

    def until_constant(self, parts: list[str]) -> list[Row]:
        end = self.name()
        kinds = ["Int16(-1)", "Int8(1)", "Byte1('K')", "Byte2('\\0a')"]
        rows: list[Row] = [{self.name(): self.draw.choice(parts or ["String"]), "repeat": f"until {end}"}]
        return [*rows, {end: self.draw.choice(kinds)}]

    def text(self, _: list[str]) -> list[Row]:
        return [{self.name(): self.draw.choice(["String", "Byte3"])}]

    def part(self, parts: list[str]) -> list[Row]:
        return [{self.name(): self.draw.choice(parts)}] if parts else []

    def optional(self, parts: list[str]) -> list[Row]:
        tag = self.name()
        dependent = [row for shape in (self.plain, self.text, self.part) if self.often(0.5) for row in shape(parts)]
        for row in dependent:
            row["when"] = tag
        return [{tag: "Byte1('O') | Byte1('P')", "optional": True}, *dependent, {self.name(): "Byte1('N')"}]

    def dependent(self, parts: list[str]) -> list[Row]:
        rows = [
            row for shape in (self.plain, self.byte, self.text, self.constant, self.part) if self.often(0.4)
            for row in shape(parts)
        ]  # fmt: skip
        fact = self.draw.choice(_FACTS)
        for row in rows:
            row["when"] = fact
        return rows


def draw_spec(draw: random.Random) -> Spec:
    """Return a random spec, which may be faulty."""
    return _Drawing(draw).spec()


def _completed(spec: Spec) -> Spec:
    """Return the spec without unused parts; each part names the layouts that contain it."""
    layouts: dict[str, Any] = {**spec["layouts"]}
    while True:
        users: dict[str, list[str]] = {name: [] for name, layout in layouts.items() if "part of" in layout}
        for title, layout in layouts.items():
            for row in rows_of(layout):
                if title not in users.get(type_of(row), [title]):
                    users[type_of(row)].append(title)
        unused = [name for name, titles in users.items() if not titles]
        if not unused:
            return {
                **spec,
                "layouts": {**layouts, **{name: {**layouts[name], "part of": users[name]} for name in users}},
            }
        for name in unused:
            del layouts[name]


def rows_of(layout: dict[str, Any]) -> list[Row]:
    """Return the rows of a layout, including its alternatives' rows."""
    return [
        *layout.get("fields", []),
        *(row for alternative in layout.get("one of", {}).values() for row in alternative["fields"]),
    ]


_Place = tuple[str, str, int]
"""A layout, its alternative (empty for none) and the index of a row; -1 for the layout itself."""


def _lines(layouts: dict[str, Any]) -> Iterator[tuple[str, _Place]]:
    """Yield the lines of a file, one for each row, with their places."""
    yield "{", ("", "", -1)
    for title, layout in layouts.items():
        yield f"{json.dumps(title)}: {{", (title, "", -1)
        yield from _inner(title, "", layout)
        yield "},", (title, "", -1)
    yield "}", ("", "", -1)


def _inner(title: str, alternative: str, layout: dict[str, Any]) -> Iterator[tuple[str, _Place]]:
    for key, value in layout.items():
        if key == "fields":
            yield ' "fields": [', (title, alternative, -1)
            yield from ((f"  {_flow(row)},", (title, alternative, index)) for index, row in enumerate(value))
            yield " ],", (title, alternative, -1)
        elif key == "one of":
            yield ' "one of": {', (title, "", -1)
            for name, other in value.items():
                yield f" {json.dumps(name)}: {{", (title, name, -1)
                yield from _inner(title, name, other)
                yield " },", (title, name, -1)
            yield " },", (title, "", -1)
        else:
            yield f" {json.dumps(key)}: {_flow(value)},", (title, alternative, -1)


def _flow(value: Any) -> str:
    """Return a value in YAML's flow style."""
    return json.dumps(value, ensure_ascii=False)


def files(spec: Spec) -> dict[str, str]:
    """Return the texts of a spec's files by their paths."""
    spec = _completed(spec)
    protocol = dict(spec["protocol"])
    layouts = "\n".join(line for line, _ in _lines(spec["layouts"])) + "\n"
    used = {name: keys for name, keys in spec["types"].items() if f"({name})" in layouts or f'"{name}"' in layouts}
    if spec["columns"]:
        return {"types.yaml": _block(used), "x/protocol.yaml": _block(protocol), "x/m.yaml": layouts}
    return {"protocol.yaml": _block({**protocol, "types": used}), "m.yaml": layouts}


def _block(mapping: dict[str, Any]) -> str:
    return "{\n" + "".join(f" {json.dumps(key)}: {_flow(value)},\n" for key, value in mapping.items()) + "}\n"


def write(spec: Spec, folder: Path) -> None:
    """Write a spec's files."""
    for name, text in files(spec).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def complete(spec: Spec) -> Spec:
    """Return the spec as its files have it."""
    return _completed(spec)


def repaired(spec: Spec, lines: set[int], draw: random.Random) -> Spec:
    """Return the spec without a row, modifier or key at each line of the layouts' file that has a finding."""
    spec = json.loads(json.dumps(complete(spec)), object_hook=_numbered)
    places = [place for _, place in _lines(spec["layouts"])]
    for title, alternative, index in sorted({places[line - 1] for line in lines}, reverse=True):
        if title in spec["layouts"]:
            _repair(spec["layouts"], title, alternative, index, draw)
    return spec


def _repair(layouts: dict[str, Any], title: str, alternative: str, index: int, draw: random.Random) -> None:
    layout = layouts[title]
    owner = layout["one of"][alternative] if alternative else layout
    if index < 0:
        keys = [key for key in owner if key not in ("doc", "fields", "part of", "one of", "place", "opens", "closes")]
        if keys and draw.random() < 0.7:
            del owner[draw.choice(keys)]
        elif alternative:
            del layout["one of"][alternative]
        else:
            del layouts[title]
        return
    row = owner["fields"][index]
    keys = [key for key in row if key not in (name_of(row), "doc")]
    if keys and draw.random() < 0.6:
        del row[draw.choice(keys)]
    else:
        del owner["fields"][index]


def _numbered(mapping: dict[str, Any]) -> dict[Any, Any]:
    """Return a mapping of JSON with the numbers that were keys."""
    return {int(key) if key.isdecimal() else key: value for key, value in mapping.items()}


def smaller(spec: Spec) -> Iterator[Spec]:
    """Yield the spec without one layout, row, modifier or key at a time."""
    copied = json.dumps(spec)
    places: list[tuple[Any, ...]] = [
        *(("layouts", title) for title in spec["layouts"]),
        *(("protocol", key) for key in ("byte order",) if key in spec["protocol"]),
        *(("protocol", "versions", number) for number in list(spec["protocol"]["versions"])[-1:] if number != 1),
        *(("protocol", "session", fact) for fact in spec["protocol"]["session"]),
    ]
    for title, layout in spec["layouts"].items():
        places += [("layouts", title, key) for key in layout if key not in ("doc", "fields", "part of", "one of")]
        owners: list[tuple[str, ...]] = [("layouts", title)] if "fields" in layout else []
        for name in layout.get("one of", {}):
            places.append(("layouts", title, "one of", name))
            owners.append(("layouts", title, "one of", name))
        for owner in owners:
            fields = _at(spec, owner)["fields"]
            for index, row in enumerate(fields):
                places.append((*owner, "fields", index))
                places += [(*owner, "fields", index, key) for key in row if key not in (name_of(row), "doc")]
    for place in places:
        reduced = json.loads(copied, object_hook=_numbered)
        del _at(reduced, place[:-1])[place[-1]]
        yield reduced


def _at(spec: Spec, place: tuple[Any, ...]) -> Any:
    value: Any = spec
    for key in place:
        value = value[key]
    return value


def notation(spec: Spec) -> list[str]:
    """Return the notation of a spec, without names and numbers."""
    words = {key for layout in spec["layouts"].values() for key in layout}
    for layout in spec["layouts"].values():
        for row in rows_of(layout):
            words |= {key for key in row if key != name_of(row)} | {
                re.sub(r"'.'|\(\d+\)|^(M|P|C).*", "#", type_of(row))
            }
            if row.get("repeat", "").startswith("until "):
                words.add("until zero" if row["repeat"] == "until zero" else "until #")
    return sorted(words - {"doc", "place", "opens", "closes", "fields"})
