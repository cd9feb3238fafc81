"""A small model of a database: random histories with their results, and the server that sends them.

The model knows the result because it runs the history as a database does, with a stack of savepoints for each
transaction. The server does not know the result. It reads the history as a log and sends it in any version of the
protocol, in segments or whole, as PostgreSQL does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1, v2, v3, v4
from logicalrep_protocol.v1 import Column, ReplicaIdentity, TupleData

Row = dict[str, bytes | None]

SHARED_TABLES = (Oid(101), Oid(102))
"""A table with a primary key and one with REPLICA IDENTITY FULL; all transactions use them concurrently."""
ALTERED_TABLES = (Oid(201), Oid(202))
"""Tables that get new columns; a transaction locks them until it ends."""
RECORD = 100
"""The bytes of log that a step takes."""
END = 40
"""The bytes of these that a commit record takes."""


@dataclass(frozen=True)
class Table:
    """A table in one of its forms."""

    oid: Oid
    identity: str
    columns: tuple[str, ...]

    @property
    def schema(self) -> str:
        return "" if self.oid == ALTERED_TABLES[1] else "s"

    def relation(self, xid: TransactionId | None, version: int) -> v1.Relation | v2.Relation:
        columns = tuple(
            Column(
                flags=int(self.identity == "f" or name == "id"),
                name=name,
                type_id=Oid(70000 if name == "d" else 25),
                type_modifier=-1,
            )
            for name in self.columns
        )
        facts: dict[str, Any] = {
            "relation_id": self.oid,
            "namespace": self.schema,
            "name": f"t{self.oid}",
            "replica_identity": ReplicaIdentity(self.identity),
            "columns": columns,
        }
        return v1.Relation(**facts) if version == 1 else v2.Relation(xid=xid, **facts)


@dataclass(frozen=True)
class Write:
    """A row change, a truncation or a transactional message, as in the log."""

    op: str
    tables: tuple[Table, ...] = ()
    old_kind: str | None = None
    old: tuple[bytes | None, ...] | None = None
    new: tuple[bytes | None, ...] | None = None
    unchanged: frozenset[str] = frozenset()
    content: bytes = b""

    def answers(self) -> list[tuple[Any, ...]]:
        """Return the changes a reader must produce: operation, table, columns, old row, new row, unchanged columns."""
        if self.op == "message":
            return [("message", None, (), None, self.content, ())]
        if self.op == "truncate":
            return [("truncate", table.oid, table.columns, None, None, ()) for table in self.tables]
        [table] = self.tables
        old_row = new_row = None
        unchanged = set(self.unchanged)
        if self.old is not None:
            old_row = dict(zip(table.columns, self.old, strict=True))
            if self.old_kind == "K":
                old_row = {"id": old_row["id"]}
        if self.new is not None:
            new_row = dict(zip(table.columns, self.new, strict=True))
            if self.old_kind == "O":
                unchanged = set()
            new_row = {name: value for name, value in new_row.items() if name not in unchanged}
        return [
            (self.op, table.oid, table.columns, old_row, new_row, tuple(n for n in table.columns if n in unchanged))
        ]


@dataclass(frozen=True)
class Step:
    """One record of the log."""

    kind: str
    transaction: int = -1
    write: Write | None = None
    gid: str = ""
    xids: tuple[int, ...] = ()
    """The ids of a write's transaction and subtransactions, from the outermost to the innermost."""


@dataclass
class Answer:
    """A transaction's result."""

    xid: int
    gid: str | None
    origin: str | None
    changes: list[tuple[Any, ...]]


@dataclass
class History:
    """The steps, in the order of the log, and their results, in the order of the commits."""

    steps: list[Step] = field(default_factory=list)
    origins: dict[int, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    """The committed transactions that have changes."""
    messages: list[bytes] = field(default_factory=list)
    """The non-transactional messages."""


class _Database:
    """Makes up a history and runs it."""

    def __init__(self, random: Random, first_xid: int) -> None:
        self.random = random
        self.history = History()
        self.next_xid = first_xid
        self.next_value = 0
        self.tables = {
            SHARED_TABLES[0]: Table(SHARED_TABLES[0], "d", ("id", "a", "big")),
            SHARED_TABLES[1]: Table(SHARED_TABLES[1], "f", ("id", "a", "big")),
            ALTERED_TABLES[0]: Table(ALTERED_TABLES[0], "d", ("id", "a")),
            ALTERED_TABLES[1]: Table(ALTERED_TABLES[1], "f", ("id", "a")),
        }
        self.locks: dict[Oid, int] = {}
        # Each open transaction is a stack of levels, one for each savepoint.
        self.open: dict[int, list[_Level]] = {}
        self.prepared: dict[int, tuple[str, list[_Level]]] = {}

    def run(self, steps: int) -> History:
        for _ in range(steps):
            self.step()
        for transaction in list(self.open):
            if self.random.random() < 0.8:
                self.end(transaction)
        return self.history

    def log(self, kind: str, transaction: int = -1, **facts: Any) -> None:
        self.history.steps.append(Step(kind, transaction, **facts))

    def step(self) -> None:
        choice = self.random.random()
        if not self.open or (choice < 0.15 and len(self.open) < 4):
            transaction = len(self.history.origins)
            self.history.origins[transaction] = self.random.choice(("", "", "", "node"))
            self.open[transaction] = [_Level()]
            self.log("begin", transaction)
            return
        if self.prepared and self.random.random() < 0.1:
            self.decide(self.random.choice(list(self.prepared)))
            return
        transaction = self.random.choice(list(self.open))
        levels = self.open[transaction]
        if choice < 0.55:
            self.write(transaction, levels)
        elif choice < 0.65:
            levels.append(_Level())
            self.log("savepoint", transaction)
        elif choice < 0.76:
            if len(levels) > 1:
                # The savepoint stays; the following writes are in a new subtransaction.
                at = self.random.randrange(1, len(levels))
                del levels[at:]
                levels.append(_Level())
                self.log(f"rollback to {at}", transaction)
        elif choice < 0.79:
            if len(levels) > 1:
                at = self.random.randrange(1, len(levels))
                for level in levels[at:]:
                    levels[at - 1].take(level)
                del levels[at:]
                self.log(f"release {at}", transaction)
        elif choice < 0.87:
            self.alter(transaction, levels)
        elif choice < 0.9:
            self.next_value += 1
            content = b"free %d" % self.next_value
            self.history.messages.append(content)
            self.log("emit", write=Write("message", content=content))
        elif choice < 0.91:
            for lost in list(self.open):
                self.release(lost)
                del self.open[lost]
            self.log("crash")
        else:
            self.end(transaction)

    def end(self, transaction: int) -> None:
        levels = self.open.pop(transaction)
        for level in levels[1:]:
            levels[0].take(level)
        choice = self.random.random()
        if choice < 0.2:
            self.log("abort", transaction)
            self.release(transaction)
        elif choice < 0.6 and levels[0].xid is not None:
            gid = self.random.choice(("one", "two", "drei ß", "vier"))
            if gid in (prepared_gid for prepared_gid, _ in self.prepared.values()):
                gid = f"gid {transaction}"
            self.prepared[transaction] = gid, levels
            self.log("prepare", transaction, gid=gid)
        else:
            self.log("commit", transaction)
            self.commit(transaction, levels, None)

    def decide(self, transaction: int) -> None:
        gid, levels = self.prepared.pop(transaction)
        if self.random.random() < 0.5:
            self.log("rollback prepared", transaction, gid=gid)
            self.release(transaction)
        else:
            self.log("commit prepared", transaction, gid=gid)
            self.commit(transaction, levels, gid)

    def commit(self, transaction: int, levels: list[_Level], gid: str | None) -> None:
        self.tables |= levels[0].tables
        self.release(transaction)
        if levels[0].writes:
            origin = self.history.origins[transaction] or None
            changes = [answer for write in levels[0].writes for answer in write.answers()]
            self.history.answers.append(Answer(levels[0].xid or 0, gid, origin, changes))

    def release(self, transaction: int) -> None:
        self.locks = {oid: owner for oid, owner in self.locks.items() if owner != transaction}

    def form(self, levels: list[_Level], oid: Oid) -> Table:
        for level in reversed(levels):
            if oid in level.tables:
                return level.tables[oid]
        return self.tables[oid]

    def write(self, transaction: int, levels: list[_Level]) -> None:
        write = self.make_write(transaction, levels)
        if write is None:
            return
        for level in levels:
            if level.xid is None:
                level.xid = self.next_xid
                self.next_xid = self.next_xid + 1 & 0xFFFFFFFF or 3
        levels[-1].writes.append(write)
        levels[-1].wrote_rows |= write.op != "message"
        self.log("write", transaction, write=write, xids=tuple(level.xid for level in levels))

    def make_write(self, transaction: int, levels: list[_Level]) -> Write | None:
        choice = self.random.random()
        if choice < 0.1:
            # A message before all rows of its subtransaction could not be rolled back by any reader.
            if len(levels) > 1 and not levels[-1].wrote_rows:
                return None
            return Write("message", content=self.value(b"message"))
        if choice < 0.17:
            oids = [oid for oid in self.tables if self.locks.get(oid, transaction) == transaction]
            chosen = self.random.sample(oids, self.random.randint(1, len(oids)))
            self.locks |= {oid: transaction for oid in chosen if oid in ALTERED_TABLES}
            return Write("truncate", tuple(self.form(levels, oid) for oid in chosen))
        oid = self.random.choice((*SHARED_TABLES, *ALTERED_TABLES))
        if oid in ALTERED_TABLES:
            if self.locks.get(oid, transaction) != transaction:
                return None
            self.locks[oid] = transaction
        table = self.form(levels, oid)
        key = (self.value(b"k"), *(None for _ in table.columns[1:]))
        if choice < 0.5:
            return Write("insert", (table,), new=self.row(table))
        old = self.row(table) if table.identity == "f" else key
        kind = "O" if table.identity == "f" else "K"
        if choice < 0.7:
            return Write("delete", (table,), kind, old)
        new = self.row(table)
        unchanged = frozenset({"big"} if "big" in table.columns and self.random.random() < 0.5 else ())
        if table.identity == "d" and self.random.random() < 0.5:
            return Write("update", (table,), new=new, unchanged=unchanged)
        if unchanged and kind == "O":
            at = table.columns.index("big")
            new = (*new[:at], old[at], *new[at + 1 :])
        return Write("update", (table,), kind, old, new, unchanged)

    def row(self, table: Table) -> tuple[bytes | None, ...]:
        return tuple(
            self.random.choice((self.value(b"v"), b"", None)) if name != "id" else self.value(b"k")
            for name in table.columns
        )

    def value(self, prefix: bytes) -> bytes:
        self.next_value += 1
        return prefix + b"%d" % self.next_value

    def alter(self, transaction: int, levels: list[_Level]) -> None:
        oid = self.random.choice(ALTERED_TABLES)
        if self.locks.get(oid, transaction) != transaction:
            return
        self.locks[oid] = transaction
        table = self.form(levels, oid)
        name = self.random.choice("bcdefg")
        if name in table.columns:
            columns = tuple(column for column in table.columns if column != name)
        else:
            columns = (*table.columns, name)
        levels[-1].tables[oid] = replace(table, columns=columns)


@dataclass
class _Level:
    writes: list[Write] = field(default_factory=list)
    tables: dict[Oid, Table] = field(default_factory=dict)
    xid: int | None = None
    wrote_rows: bool = False

    def take(self, other: _Level) -> None:
        self.writes += other.writes
        self.tables |= other.tables
        self.wrote_rows |= other.wrote_rows


def make_history(random: Random, steps: int) -> History:
    """Return a random history of about `steps` steps, whose transaction ids may wrap around."""
    return _Database(random, random.choice((700, 0xFFFFFFF0))).run(steps)


@dataclass
class _Subtransaction:
    xid: int | None = None
    children: list[_Subtransaction] = field(default_factory=list)

    def family(self) -> list[_Subtransaction]:
        """Return the subtransaction itself last, after those within it, the innermost first."""
        return [*(inner for child in self.children for inner in child.family()), self]


@dataclass
class _Record:
    lsn: int
    level: _Subtransaction
    write: Write


@dataclass
class _LoggedTransaction:
    number: int
    levels: list[_Subtransaction] = field(default_factory=lambda: [_Subtransaction()])
    records: list[_Record] = field(default_factory=list)
    streamed: bool = False
    sent_xids: set[int] = field(default_factory=set)
    prepare_lsn: int = 0
    origin_was_sent: bool = False


@dataclass
class _Described:
    """The descriptions of a table that the server has sent: outside of streams, and in each streamed transaction."""

    form: Table | None = None
    streamed: dict[int, Table] = field(default_factory=dict)


class Server:
    """Sends a history from a start position on: `sent` has the messages with their positions."""

    def __init__(
        self,
        history: History,
        *,
        version: int,
        streaming: bool = False,
        parallel: bool = False,
        two_phase: bool = False,
        random: Random | None = None,
        start: int = 0,
    ) -> None:
        self.history = history
        self.version = version
        self.streaming = streaming
        self.parallel = parallel
        self.two_phase = two_phase
        self.random = random or Random(0)
        self.start = start
        self.transactions: dict[int, _LoggedTransaction] = {}
        self.prepared: dict[int, _LoggedTransaction] = {}
        self.described: dict[Oid, _Described] = {}
        self.sent: list[tuple[Lsn, bytes]] = []
        self.lsn = 0

    def run(self) -> list[tuple[Lsn, bytes]]:
        for number, step in enumerate(self.history.steps):
            self.lsn = 1000 + RECORD * number
            getattr(self, step.kind.split()[0])(step)
            if self.streaming and self.lsn >= self.start:
                for transaction in list(self.transactions.values()):
                    if (transaction.records and self.random.random() < 0.15) or (
                        transaction.streamed and self.random.random() < 0.03
                    ):
                        self.stream(transaction)
        return self.sent

    # Steps

    def begin(self, step: Step) -> None:
        self.transactions[step.transaction] = _LoggedTransaction(step.transaction)

    def savepoint(self, step: Step) -> None:
        levels = self.transactions[step.transaction].levels
        levels.append(_Subtransaction())
        levels[-2].children.append(levels[-1])

    def release(self, step: Step) -> None:
        del self.transactions[step.transaction].levels[int(step.kind.split()[1]) :]

    def write(self, step: Step) -> None:
        assert step.write is not None
        transaction = self.transactions[step.transaction]
        for level, xid in zip(transaction.levels, step.xids, strict=True):
            assert level.xid in (None, xid)
            level.xid = xid
        transaction.records.append(_Record(self.lsn, transaction.levels[-1], step.write))

    def emit(self, step: Step) -> None:
        assert step.write is not None
        if self.lsn >= self.start:
            self.send(self.message(0, step.write.content, None))

    def rollback(self, step: Step) -> None:
        if step.kind == "rollback prepared":
            self.rollback_prepared(step)
            return
        transaction = self.transactions[step.transaction]
        at = int(step.kind.split()[2])
        self.abort_subtransaction(transaction, transaction.levels[at])
        del transaction.levels[at:]
        self.savepoint(step)

    def abort_subtransaction(self, transaction: _LoggedTransaction, aborted: _Subtransaction) -> None:
        family = aborted.family()
        transaction.records = [record for record in transaction.records if record.level not in family]
        for level in family:
            # There is an abort for each streamed subtransaction, and now and then for one of which nothing was sent.
            if (
                transaction.streamed
                and level.xid is not None
                and (level.xid in transaction.sent_xids or self.random.random() < 0.3)
            ):
                self.stream_abort(transaction, level.xid)

    def abort(self, step: Step) -> None:
        transaction = self.transactions[step.transaction]
        self.lose(transaction, lsn=self.lsn)
        del self.transactions[step.transaction]

    def crash(self, step: Step) -> None:
        for transaction in list(self.transactions.values()):
            if not transaction.prepare_lsn:
                if self.random.random() < 0.5:
                    self.lose(transaction, lsn=0)
                del self.transactions[transaction.number]

    def lose(self, transaction: _LoggedTransaction, lsn: int) -> None:
        if transaction.streamed:
            for level in transaction.levels[0].family()[:-1]:
                if level.xid in transaction.sent_xids and level.xid is not None:
                    self.stream_abort(transaction, level.xid, lsn)
            self.stream_abort(transaction, self.top(transaction), lsn)

    def commit(self, step: Step) -> None:
        if step.kind == "commit prepared":
            self.commit_prepared(step)
        else:
            self.send_committed(self.transactions.pop(step.transaction))

    def send_committed(self, transaction: _LoggedTransaction) -> None:
        if transaction.levels[0].xid is None or self.lsn < self.start:
            return
        xid = TransactionId(self.top(transaction))
        facts: dict[str, Any] = {
            "commit_lsn": Lsn(self.lsn),
            "end_lsn": Lsn(self.lsn + END),
            "commit_timestamp": TimestampTz(self.lsn),
        }
        if transaction.streamed:
            self.stream(transaction)
            self.send(v2.StreamCommit(xid=xid, **facts))
            for described in self.described.values():
                if xid in described.streamed:
                    described.form = described.streamed.pop(xid)
            return
        if not transaction.records and self.random.random() < 0.5:
            return
        self.send(v1.Begin(final_lsn=Lsn(self.lsn), commit_timestamp=TimestampTz(self.lsn), xid=xid))
        self.send_records(transaction, None)
        self.send(v1.Commit(**facts))

    def prepare(self, step: Step) -> None:
        transaction = self.transactions[step.transaction]
        transaction.prepare_lsn = self.lsn
        if not self.two_phase:
            return
        self.prepared[step.transaction] = self.transactions.pop(step.transaction)
        if self.lsn < self.start:
            return
        facts: dict[str, Any] = {
            "prepare_lsn": Lsn(self.lsn),
            "end_lsn": Lsn(self.lsn + END),
            "prepare_timestamp": TimestampTz(self.lsn),
            "xid": TransactionId(self.top(transaction)),
            "gid": step.gid,
        }
        if transaction.streamed:
            self.stream(transaction)
            self.send(v3.StreamPrepare(**facts))
        else:
            self.send(v3.BeginPrepare(**facts))
            self.send_records(transaction, None)
            self.send(v3.Prepare(**facts))

    def commit_prepared(self, step: Step) -> None:
        if not self.two_phase:
            self.send_committed(self.transactions.pop(step.transaction))
            return
        transaction = self.prepared.pop(step.transaction)
        if self.lsn >= self.start:
            self.send(
                v3.CommitPrepared(
                    commit_lsn=Lsn(self.lsn),
                    end_lsn=Lsn(self.lsn + END),
                    commit_timestamp=TimestampTz(self.lsn),
                    xid=TransactionId(self.top(transaction)),
                    gid=step.gid,
                )
            )

    def rollback_prepared(self, step: Step) -> None:
        if not self.two_phase:
            self.lose(self.transactions.pop(step.transaction), self.lsn)
            return
        transaction = self.prepared.pop(step.transaction)
        if self.lsn >= self.start:
            self.send(
                v3.RollbackPrepared(
                    prepare_end_lsn=Lsn(transaction.prepare_lsn + END),
                    rollback_end_lsn=Lsn(self.lsn + END),
                    prepare_timestamp=TimestampTz(transaction.prepare_lsn),
                    rollback_timestamp=TimestampTz(self.lsn),
                    xid=TransactionId(self.top(transaction)),
                    gid=step.gid,
                )
            )

    # What is sent

    def stream(self, transaction: _LoggedTransaction) -> None:
        xid = TransactionId(self.top(transaction))
        self.send(v2.StreamStart(xid=xid, first_segment=not transaction.streamed))
        transaction.streamed = True
        self.send_records(transaction, xid)
        self.send(v2.StreamStop())

    def stream_abort(self, transaction: _LoggedTransaction, subxid: int, lsn: int | None = None) -> None:
        xid = self.top(transaction)
        for described in self.described.values():
            described.streamed.pop(xid, None)
        ids: dict[str, Any] = {"xid": TransactionId(xid), "subxid": TransactionId(subxid)}
        if self.parallel:
            place = self.lsn if lsn is None else lsn
            self.send(v4.StreamAbort(**ids, abort_lsn=Lsn(place), abort_timestamp=TimestampTz(place)))
        else:
            self.send(v2.StreamAbort(**ids))

    def send_records(self, transaction: _LoggedTransaction, stream: TransactionId | None) -> None:
        origin = self.history.origins[transaction.number]
        if origin and not transaction.origin_was_sent:
            self.send(v1.Origin(origin_lsn=Lsn(0 if stream else 77), name=origin))
            transaction.origin_was_sent = True
        for record in transaction.records:
            assert record.level.xid is not None
            xid = None if stream is None else TransactionId(record.level.xid)
            for table in record.write.tables:
                self.describe(table, stream, xid)
            if record.write.op != "message":
                transaction.sent_xids.add(record.level.xid)
            self.send(self.change(record.write, xid, stream), record.lsn)
        transaction.records = []

    def describe(self, table: Table, stream: TransactionId | None, xid: TransactionId | None) -> None:
        described = self.described.setdefault(table.oid, _Described())
        described_table = described.form if stream is None else described.streamed.get(stream)
        if described_table == table and self.random.random() < 0.9:
            return
        if "d" in table.columns:
            facts: dict[str, Any] = {"type_id": Oid(70000), "namespace": "s", "name": "mood"}
            self.send(v1.Type(**facts) if self.version == 1 else v2.Type(xid=xid, **facts), 0)
        self.send(table.relation(xid, self.version), 0)
        if described.form != table:
            # Altering a table makes the server forget that it has described it.
            described.form = None
        if stream is None:
            described.form = table
        else:
            described.streamed[stream] = table

    def change(self, write: Write, xid: TransactionId | None, stream: TransactionId | None) -> Any:
        if write.op == "message":
            return self.message(1, write.content, stream)
        facts: dict[str, Any] = {} if self.version == 1 else {"xid": xid}
        module: Any = v1 if self.version == 1 else v2
        if write.op == "truncate":
            return module.Truncate(options=1, relation_ids=tuple(table.oid for table in write.tables), **facts)
        [table] = write.tables
        facts["relation_id"] = table.oid
        if write.old is not None:
            facts |= {"old_kind": write.old_kind, "old": _tuple(write.old)}
        if write.new is not None:
            at = frozenset(table.columns.index(name) for name in write.unchanged)
            facts["new"] = _tuple(write.new, at)
        return {"insert": module.Insert, "update": module.Update, "delete": module.Delete}[write.op](**facts)

    def message(self, flags: int, content: bytes, stream: TransactionId | None) -> Any:
        facts: dict[str, Any] = {"flags": flags, "message_lsn": Lsn(self.lsn + END), "prefix": "p", "content": content}
        return v1.Message(**facts) if self.version == 1 else v2.Message(xid=stream, **facts)

    def send(self, message: Any, lsn: int | None = None) -> None:
        self.sent.append((Lsn(self.lsn if lsn is None else lsn), message.build()))

    def top(self, transaction: _LoggedTransaction) -> int:
        xid = transaction.levels[0].xid
        assert xid is not None
        return xid


def _tuple(values: tuple[bytes | None, ...], unchanged: frozenset[int] = frozenset()) -> TupleData:
    kinds = bytes(
        ord("u") if at in unchanged else ord("n") if value is None else ord("t") for at, value in enumerate(values)
    )
    return TupleData(kinds=kinds, values=tuple(None if at in unchanged else value for at, value in enumerate(values)))
