"""Comparison of a capture's assembled transactions with test_decoding's account of the same log.

test_decoding knows no publications, so its output is reduced to what the capture's publications admit: their tables,
row filters and partition roots. Columns that are not published are ignored in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from logicalrep.captures.capture import Capture
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events
from logicalrep.transactions.changes import Change, Value
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.transaction import Decision, NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep.values import Column, ColumnValueError, column_type
from logicalrep_protocol.v1 import Column as ColumnMessage
from logicalrep_protocol.v1 import NullValue
from tests.transactions.captured import final_state, header
from tests.transactions.plugin_text import (
    UNCHANGED,
    PluginChange,
    PluginDecision,
    PluginTransaction,
    Row,
    plugin_events,
)

ROOTS = {
    "pub_root": {
        **dict.fromkeys(("pt_eu", "pt_us", "pt_sub_lo", "pt_sub_hi", "pt_def", "pt_new"), "pt"),
        **dict.fromkeys(("pu_de", "pu_us"), "pu"),
    },
    "pub_mid": dict.fromkeys(("pt_sub_lo", "pt_sub_hi"), "pt_sub"),
}
"""The published name of each table, by the name of a publication that publishes via the root."""

ROW_FILTERS: dict[str, Callable[[Row], bool]] = {
    "(id > 10)": lambda row: int(row["id"]) > 10,
    "(n > 5)": lambda row: row["n"] is not None and int(row["n"]) > 5,
    "((id % 2) = 0)": lambda row: int(row["id"]) % 2 == 0,
}

UNPUBLISHED_COLUMNS = {
    "filters": {"f1": {"n", "secret", "later"}, "f3": {"b"}},
    "gencols": {"gc": {"label", "twice", "virt", "z"}, "gcf": {"a", "twice"}},
    "shapes": {"sh_gen": {"twice"}},
}
"""The columns that are generated or left out by a column list, by workload and table."""

DETACHED = "pu_us"
"""A partition that is detached for a while and then either in no publication, or still sent (13, 14)."""

STREAMED_AND_ROLLED_BACK = ("sub", b"in a subtransaction")
"""A logical message before all row changes of its subtransaction: once streamed, no abort can roll it back."""


@dataclass
class Expected:
    """A transaction by test_decoding, reduced to what the publications admit."""

    plugin: PluginTransaction
    changes: list[PluginChange] = field(default_factory=list)


@dataclass
class Assembled:
    """An assembled transaction."""

    transaction: Transaction | PreparedTransaction
    changes: list[Change]


def assembled(path: Path, assembler: Assembler) -> list[Assembled | Decision | NonTransactionalMessage]:
    """Return all events of a capture, with each transaction's changes."""
    result: list[Assembled | Decision | NonTransactionalMessage] = []
    with Capture.open(path) as capture:
        for event in events(capture, capture.session.decoder(), assembler):
            if isinstance(event, Transaction | PreparedTransaction):
                with event:
                    changes = list(event.changes)
                assert [change.ordinal for change in changes] == list(range(len(changes)))
                result.append(Assembled(event, changes))
            else:
                result.append(event)
    return result


def check_committed(path: Path) -> None:
    """Check that a capture's committed transactions equal test_decoding's, change by change."""
    with Assembler() as assembler:
        out = assembled(path, assembler)
    plugin = plugin_events(path.parent / "truth.test_decoding.jsonl.gz")
    check = Check.of(path)
    check.transactions(
        [event for event in out if isinstance(event, Assembled)],
        [event for event in plugin if isinstance(event, PluginTransaction)],
    )
    check.messages(
        [event for event in out if isinstance(event, NonTransactionalMessage)],
        [event for event in plugin if isinstance(event, PluginChange)],
    )
    assert not any(isinstance(event, Decision) for event in out)


def check_prepared(path: Path) -> None:
    """Check that the prepared transactions and decisions of a two_phase slot come as from test_decoding."""
    with Assembler(hand_on_prepared=True) as assembler:
        out = assembled(path, assembler)
    plugin = plugin_events(path.parent / "truth.test_decoding_two_phase.jsonl.gz")
    check = Check.of(path)
    # A transaction that is already rolled back when decoded comes without the changes whose decoding needs the catalog.
    rolled_back = {event.xid for event in plugin if isinstance(event, PluginDecision) and not event.committed}
    check.transactions(
        [event for event in out if isinstance(event, Assembled) and event.transaction.xid not in rolled_back],
        [event for event in plugin if isinstance(event, PluginTransaction) and event.xid not in rolled_back],
    )
    ours = [
        (event.committed, event.gid, event.xid, event.timestamp.datetime)
        for event in out
        if isinstance(event, Decision)
    ]
    theirs = [
        (event.committed, event.gid, event.xid, event.timestamp)
        for event in plugin
        if isinstance(event, PluginDecision)
    ]
    assert ours == check.part(ours, check.without_origins(theirs))
    assert all(event.known for event in out if isinstance(event, Decision))


@dataclass
class Check:
    """The facts about a capture that a comparison depends on."""

    path: Path
    header: dict[str, Any]
    encoding: str
    publications: list[str]
    published: set[tuple[str, str]]
    row_filters: dict[str, list[Callable[[Row], bool] | None]]
    roots: dict[str, str]

    @classmethod
    def of(cls, path: Path) -> Check:
        with Capture.open(path) as capture:
            session = capture.session
        publications = session.header["publications"]
        state = final_state(path.parent)
        published = set()
        row_filters: dict[str, list[Callable[[Row], bool] | None]] = {}
        roots: dict[str, str] = {}
        for publication in publications:
            roots |= ROOTS.get(publication, {})
            for table in state["publications"].get(publication, []):
                published.add((table["schema"], table["table"]))
                condition = table["row_filter"]
                row_filters.setdefault(table["table"], []).append(ROW_FILTERS[condition] if condition else None)
        return cls(path, session.header, session.encoding, publications, published, row_filters, roots)

    @property
    def options(self) -> dict[str, str]:
        return self.header["options"]  # type: ignore[no-any-return]

    def messages(self, ours: list[NonTransactionalMessage], theirs: list[PluginChange]) -> None:
        """Compare the non-transactional messages."""
        if self.options.get("messages") not in ("true", "on"):
            assert not ours
            return
        codec = {"UTF8": "utf-8", "LATIN1": "iso8859-1"}[self.header["server_encoding"]]
        told = [
            (str(entry.lsn), entry.message.prefix, entry.message.content.decode(codec, "surrogateescape"))
            for entry in ours
        ]
        expected = [(entry.lsn, *entry.message) for entry in theirs if entry.message is not None]
        assert told == self.part(told, expected)

    def transactions(self, ours: list[Assembled], theirs: list[PluginTransaction]) -> None:
        """Compare the transactions in order. Old servers send some transactions without changes."""
        seen = [(event.transaction.xid, event.transaction.gid) for event in ours]
        known_ids = iter((event.xid, event.gid) for event in theirs)
        by_xid = iter(event.xid for event in theirs)
        if any(isinstance(event.transaction, PreparedTransaction) for event in ours):
            assert all(identity in known_ids for identity in seen), "an unknown transaction, or another order"
        else:
            assert all(xid in by_xid for xid, _ in seen), "an unknown transaction, or another order"
        mine = [event for event in ours if event.changes]
        published = self.published | {
            (change.relation.schema, change.relation.name)
            for event in mine
            for change in event.changes
            if change.relation is not None
        }
        expected = [
            Expected(event, [change for change in event.changes if self._lets_through(change, published)])
            for event in theirs
        ]
        expected = self.without_origins(
            [event for event in expected if any(not self._may_be_missing(change) for change in event.changes)]
        )
        expected_xids = [event.plugin.xid for event in expected]
        xids: list[int] = [event.transaction.xid for event in mine]
        of_detached_only = [xid for xid in xids if xid not in expected_xids]
        if of_detached_only:
            assert self.header["workload"] == "partition"
            mine = [event for event in mine if event.transaction.xid in expected_xids]
            xids = expected_xids
        expected = self.part(xids, expected)
        assert xids == [event.plugin.xid for event in expected]
        for event, other in zip(mine, expected, strict=True):
            self._transaction(event, other)

    def without_origins(self, theirs: list[Any]) -> list[Any]:
        """Leave out transactions of replication origins if the session asked for that."""
        if self.options.get("origin") != "none":
            return theirs
        of_origins = _xids_of_origins(self.path.parent)
        return [event for event in theirs if _xid(event) not in of_origins]

    def part(self, ours: list[Any], theirs: list[Any]) -> list[Any]:
        """Return the part of the events that the capture covers: its beginning or its end if it was interrupted."""
        part = self.header.get("part")
        if self.header["mode"] == "mid" or part == "part1":
            return theirs[: len(ours)]
        if part == "part2":
            return theirs[len(theirs) - len(ours) :]
        return theirs

    def _lets_through(self, change: PluginChange, published: set[tuple[str, str]]) -> bool:
        if change.op == "message":
            return self.options.get("messages") in ("true", "on")
        if change.table in self.roots:
            # Truncating a partition does not truncate its root.
            return change.op != "truncate"
        if change.table == DETACHED and (change.schema, change.table) not in published:
            return False
        if (change.schema, change.table) not in published and not self._is_renamed(change):
            return False
        return self._filtered(change) is not None

    def _is_renamed(self, change: PluginChange) -> bool:
        """Return whether a schema was renamed: before 16, the server sends no new Relation then."""
        return self.header["workload"] == "ddl" and change.schema in ("other", "other2")

    def _may_be_missing(self, change: PluginChange) -> bool:
        return (
            self.header["workload"] == "partition" and change.table in (DETACHED, "pu_de") and self._is_detached(change)
        )

    def _is_detached(self, change: PluginChange) -> bool:
        row = change.new or change.old
        return change.op == "truncate" or (row is not None and (row.get("v") == "detached" or set(row) == {"id"}))

    def _filtered(self, change: PluginChange) -> str | None:
        """Return a change's operation after all publications' row filters, or None if they drop it."""
        conditions = self.row_filters.get(change.table)
        if not conditions or None in conditions or change.op == "truncate":
            return change.op

        def passes(row: Row) -> bool:
            return any(condition is not None and condition(row) for condition in conditions)

        if change.op == "insert":
            assert change.new is not None
            return "insert" if passes(change.new) else None
        old = {**(change.new or {}), **(change.old or {})}
        if change.op == "delete":
            return "delete" if passes(old) else None
        assert change.new is not None
        new = {name: old[name] if value is UNCHANGED else value for name, value in change.new.items()}
        return {(True, True): "update", (True, False): "delete", (False, True): "insert"}.get(
            (passes(old), passes(new))
        )

    def _transaction(self, ours: Assembled, theirs: Expected) -> None:
        transaction = ours.transaction
        if isinstance(transaction, Transaction):
            assert transaction.commit_timestamp.datetime == theirs.plugin.timestamp
        else:
            assert transaction.prepare_timestamp.datetime == theirs.plugin.timestamp
        told = iter(theirs.changes)
        for change in ours.changes:
            if change.op == "message" and self._cannot_be_taken_back(change, theirs):
                continue
            other = next(told)
            while str(change.lsn) != other.lsn and self._may_be_missing(other):
                other = next(told)
            self._change(change, other)
        assert all(self._may_be_missing(change) for change in told), "changes are missing"

    def _cannot_be_taken_back(self, change: Change, theirs: Expected) -> bool:
        message: Any = change.message
        return (
            "streaming" in self.options
            and (message.prefix, message.content) == STREAMED_AND_ROLLED_BACK
            and all(their_change.lsn != str(change.lsn) for their_change in theirs.changes)
        )

    def _change(self, ours: Change, theirs: PluginChange) -> None:
        assert str(ours.lsn) == theirs.lsn
        assert ours.op == (theirs.op if theirs.op == "message" else self._filtered(theirs))
        if ours.relation is None:
            self._message(ours, theirs)
            return
        name = (ours.relation.schema, self.roots.get(theirs.table, theirs.table))
        assert (ours.relation.schema, ours.relation.name) == name
        assert ours.relation.schema == theirs.schema or self._is_renamed(theirs)
        if ours.op == "truncate":
            return
        old, new = theirs.old, theirs.new
        if self._filtered(theirs) != theirs.op:
            # A row filter made an Insert, which is complete, or a Delete, which has the row's identity, from an Update.
            assert new is not None
            if ours.op == "insert":
                old, new = None, resolved(new, old)
            else:
                old, new = old or {name: new[name] for name in ours.key}, None
        self._row(ours.relation, ours.before, old, is_old=True)
        if new is not None and old is not None and ours.relation.replica_identity == "f":
            new = resolved(new, old)
        after: dict[str, Value | None] | None = None if ours.after is None else {**ours.after}
        if after is not None:
            after |= dict.fromkeys(ours.unchanged)
        self._row(ours.relation, after, new, unchanged=ours.unchanged)

    def _message(self, ours: Change, theirs: PluginChange) -> None:
        message: Any = ours.message
        codec = {"UTF8": "utf-8", "LATIN1": "iso8859-1"}[self.header["server_encoding"]]
        assert (message.prefix, message.content.decode(codec, "surrogateescape")) == theirs.message

    def _row(
        self,
        relation: TableDescription,
        ours: Mapping[str, Value | None] | None,
        theirs: Row | None,
        *,
        is_old: bool = False,
        unchanged: tuple[str, ...] = (),
    ) -> None:
        assert (ours is None) == (theirs is None)
        if ours is None or theirs is None:
            return
        if is_old:
            # test_decoding leaves NULLs out of old rows.
            ours = {name: value for name, value in ours.items() if not isinstance(value, NullValue)}
        hidden = UNPUBLISHED_COLUMNS.get(self.header["workload"], {}).get(relation.name, set())
        if self.roots:
            hidden = hidden | (set(theirs) - set(relation.names))
        assert ours.keys() <= theirs.keys()
        assert theirs.keys() - ours.keys() <= hidden - set(relation.names)
        for name, value in ours.items():
            if value is None:
                assert name in unchanged
                assert theirs[name] is UNCHANGED
            else:
                column = relation.names.index(name)
                self._value(relation, relation.columns[column], value, theirs[name])

    def _value(self, relation: TableDescription, column: ColumnMessage, ours: Value, theirs: Any) -> None:
        assert theirs is not UNCHANGED
        assert isinstance(ours, NullValue) == (theirs is None)
        if isinstance(ours, NullValue) or self.header["session"] != final_state(self.path.parent)["session"]:
            return
        if ours.kind == "t":
            assert ours.value.decode(self.encoding) == theirs
            return
        types = {type_.type_id: type_ for type_ in relation.types if type_ is not None}
        typed = Column(column.name, column_type(column.type_id, column.type_modifier, types), str(relation))
        if typed.type.name.startswith("reg"):
            # A number in binary format, a name in text.
            return
        try:
            loaded = typed.load("b", ours.value)
        except ColumnValueError:
            # An unknown type cannot be read in its binary format.
            return
        assert repr(loaded) == repr(typed.load("t", theirs.encode()))


def resolved(new: Row, old: Row | None) -> Row:
    """Return the new row, with values that were not logged taken from the old one."""
    return {name: (old or {}).get(name, value) if value is UNCHANGED else value for name, value in new.items()}


def _xid(event: Any) -> int:
    if isinstance(event, Expected):
        return event.plugin.xid
    return int(event[2])


@cache
def _xids_of_origins(folder: Path) -> frozenset[int]:
    """Return the transactions of a log replayed from a replication origin, from the captures that have them all."""
    xids = set()
    has_captures = False
    for path in sorted(folder.glob("v*.jsonl.gz")):
        if path.name.endswith(".raw.jsonl.gz") or header(path)["options"].get("origin") == "none":
            continue
        with Assembler(hand_on_prepared=True) as assembler:
            out = [event for event in assembled(path, assembler) if isinstance(event, Assembled)]
        has_captures = True
        xids |= {event.transaction.xid for event in out if event.transaction.origin is not None}
    if not has_captures:
        pytest.skip("no other capture of this log tells which transactions come from an origin")
    return frozenset(xids)
