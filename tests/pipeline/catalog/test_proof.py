"""The decision on a table's description, against random histories of a table whose truth is known."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.labels import unknown_labels
from logicalrep.pipeline.catalog.matching import match_columns
from logicalrep.pipeline.catalog.partitions import unproven_partitions
from logicalrep.pipeline.catalog.proof import proven_descriptions, reason_to_load
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_facts import TypePart
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.visibility import Visibility
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid
from tests.pipeline import changes as written
from tests.pipeline.evidence import evidence

OID = 4711


@dataclass
class Server:
    """A table's columns: by number the name, the type and the writer of each; no name for a dropped one."""

    columns: dict[int, tuple[str | None, int, int]] = field(default_factory=dict)
    xid: int = 100

    def add(self, name: str, type_id: int = 23) -> int:
        number = len(self.columns) + 1
        self._write(number, name, type_id)
        return number

    def rename(self, number: int, name: str) -> None:
        self._write(number, name, self.columns[number][1])

    def drop(self, number: int) -> None:
        self._write(number, None, 0)

    def _write(self, number: int, name: str | None, type_id: int) -> None:
        self.xid += 1
        self.columns[number] = name, type_id, self.xid

    @property
    def current_columns(self) -> dict[int, tuple[str, int]]:
        return {number: (name, type_id) for number, (name, type_id, _) in self.columns.items() if name is not None}

    def relation(self) -> SentRelation:
        columns = tuple((name, type_id, -1) for name, type_id in self.current_columns.values())
        return SentRelation(OID, "d", columns, columns[0][:1], 1, 0, self.xid)

    def described(self, **facts: object) -> CatalogTable:
        current = self.current_columns
        columns = tuple((number, *state, -1) for number, state in current.items())
        facts_of_now = evidence(
            columns,
            columns_written=tuple((number, self.columns[number][2]) for number in current),
            numbers=len(self.columns),
            published=("p1:7",),
            written=((OID, str(sum(writer for *_, writer in self.columns.values()))),),
            key_indexes=((11, 0),),
            logged=("t5",),
        )
        table = TableSpec(
            relation=TableDescription(
                relation_id=Oid(OID), schema="public", name="t", replica_identity=ReplicaIdentity.DEFAULT,
                columns=tuple(v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=-1)
                              for name, type_id in current.values()),
                types=(None,) * len(current),
            ),
            catalog=TypeCatalog(), key=(current[min(current)][0],), attnums=tuple(current), files=((OID, OID),),
            evidence=facts_of_now,
        )  # fmt: skip
        dropped = frozenset(self.columns.keys() - current.keys())
        return CatalogTable(replace(table, **facts), dropped, {})  # type: ignore[arg-type]


def server(*names: str) -> Server:
    table = Server()
    for name in names:
        table.add(name)
    return table


def test_matched_columns_are_the_true_columns_or_unproven() -> None:
    """Few names, and so many of a message's columns look like others."""
    chance, read, refused = random.Random(1), 0, 0
    for _ in range(3000):
        table = server("id", *"abc"[: chance.randrange(4)])
        for number in [number for number in table.current_columns if number > 1 and chance.random() < 0.3]:
            table.drop(number)
        previous = table.described().table
        sent = []
        for _ in range(chance.randrange(1, 7)):
            free = [name for name in "abcd" if name not in {name for name, _ in table.current_columns.values()}]
            changeable = [number for number in table.current_columns if number > 1]
            kind = chance.randrange(4)
            if kind == 0 and free:
                table.add(chance.choice(free), chance.choice([23, 25]))
            elif kind == 1 and changeable:
                table.drop(chance.choice(changeable))
            elif kind == 2 and changeable and free:
                table.rename(chance.choice(changeable), chance.choice(free))
            if chance.random() < 0.5:
                sent.append((table.relation(), tuple(table.current_columns)))
        current = table.described()
        if reason_to_load(previous, current) is not None:
            continue
        for relation, truth in sent:
            attnums = match_columns(previous, current, relation)
            assert attnums in (None, truth), (previous.evidence, current, relation)
            read, refused = read + (attnums is not None), refused + (attnums is None)
    assert read > 2 * refused > 500


@pytest.mark.parametrize(
    "change",
    [
        lambda table: None,
        lambda table: table.add("c"),
        lambda table: table.drop(2),
        lambda table: table.drop(3),
        lambda table: table.rename(2, "x"),
        lambda table: (table.add("c"), table.add("d")),
        lambda table: (table.rename(2, "x"), table.rename(3, "a"), table.rename(2, "b")),
    ],
    ids=["none", "add", "drop", "drop the last", "rename", "add two", "exchange names"],
)
def test_one_schema_change_is_proven(change) -> None:  # type: ignore[no-untyped-def]
    table = server("id", "a", "b")
    previous, earlier = table.described().table, table.relation()
    change(table)
    current, later_relation = table.described(), table.relation()
    descriptions = proven_descriptions(previous, current, [earlier, later_relation])
    assert [description.attnums for _, description in descriptions] == [(1, 2, 3), current.table.attnums]
    assert descriptions[-1][1].relation.names == current.table.relation.names


_PART = TypePart(600, 1, "low", 50)
_ATTRIBUTE, _ATTRIBUTES = TypePart(700, 1, None, 50), TypePart(700, 0, None, 2)


@pytest.mark.parametrize(
    ("facts_before", "facts_after", "reason"),
    [
        ({}, {}, None),
        ({"published": "a"}, {"published": "b"}, "publication"),
        ({"type_parts": (_PART,)}, {"type_parts": (_PART._replace(written=51),)}, "label"),
        ({"type_parts": (_PART,)}, {"type_parts": (_PART._replace(label="l"),)}, "label"),
        ({"type_parts": (_PART,)}, {"type_parts": (_PART, _PART._replace(number=2, label="high"))}, None),
        ({"type_parts": (_PART,)}, {"type_parts": (_PART, _PART._replace(number=2, label=None))}, "label"),
        ({"type_parts": (_ATTRIBUTE,)}, {"type_parts": (_ATTRIBUTE._replace(written=51),)}, None),
        ({"type_parts": (_ATTRIBUTES,)}, {"type_parts": (_ATTRIBUTES._replace(written=3),)}, "attributes"),
        ({"type_parts": (_ATTRIBUTE,)}, {"type_parts": (_ATTRIBUTE, _ATTRIBUTES)}, None),
        ({"files": ((1, 1), (2, 2))}, {"files": ((2, 2),)}, "dropped or detached"),
        ({"files": ((1, 1),)}, {"files": ((1, 9),)}, "truncated, or"),
        ({"files": ((1, 1),)}, {"files": ((1, 1), (2, 9))}, "truncated, or"),
        ({"files": ((OID, 1),)}, {"files": ((OID, 2),)}, None),
        ({"protected": ((2, "a"),)}, {}, "masked"),
    ],
)
def test_the_catalog_alone_demands_a_load(
    facts_before: dict[str, object], facts_after: dict[str, object], reason: str | None
) -> None:
    table = server("id", "a")
    answer = reason_to_load(table.described(**facts_before).table, table.described(**facts_after))
    assert answer is None if reason is None else reason in str(answer)


def test_a_new_file_with_written_columns_demands_a_load() -> None:
    table = server("id", "a")
    previous = table.described().table
    table.rename(2, "b")
    table.rename(2, "a")
    assert reason_to_load(previous, table.described()) is None
    assert reason_to_load(previous, table.described(files=((OID, 2),))) == "PostgreSQL rewrote its rows"


@pytest.mark.parametrize(
    ("nesting", "text", "unknown"),
    [
        (0, "low", set()),
        (0, "mid", {"mid"}),
        (1, "{low,NULL,mid}", {"mid"}),
        (1, "[2:3]={low,low}", set()),
        (1, "{[low,mid],empty}", {"mid"}),
        (2, "(1,mid)", set()),
    ],
)
def test_labels_that_are_not_known_are_found_in_texts(nesting: int, text: str, unknown: set[str]) -> None:
    described = server("id", "m").described(type_parts=(_PART,)).table
    table = replace(described, evidence=replace(described.evidence, labelled=((2, 600, nesting),)))
    changes = [{"op": "insert", "after": {"id": "mid", "m": text}}, {"op": "delete", "before": {"m": None}}]
    batch = written.change_batch(written.relation(("id", "m")), changes)
    assert unknown_labels(table, [batch]).get(600, set()) == unknown


def test_another_key_is_not_proven_where_messages_do_not_tell_it() -> None:
    table = server("id", "a")
    full = {
        "key": ("id",),
        "relation": replace(table.described().table.relation, replica_identity=ReplicaIdentity.FULL),
    }
    previous, current = table.described(**full).table, table.described(**{**full, "key": ("id", "a")})
    message = replace(table.relation(), replica_identity="f", key=("id", "a"))
    with pytest.raises(NeedsResync, match="key changed"):
        proven_descriptions(previous, current, [message])
    assert proven_descriptions(previous, table.described(**full), [message])[0][1].key == ("id",)


@pytest.mark.parametrize(
    ("previous_indexes", "current_indexes", "stay"),
    [
        (((11, 0),), ((11, 0), (12, 7)), ((11, 0),)),
        (((11, 0), (12, 7)), ((12, 7),), ((12, 7),)),
        (((12, 7),), ((12, 8),), ()),
        (((11, 0),), ((13, 0),), ()),
    ],
)
def test_a_key_is_proven_by_an_index_that_stayed_where_messages_do_not_tell_it(
    previous_indexes: tuple[tuple[int, int], ...],
    current_indexes: tuple[tuple[int, int], ...],
    stay: tuple[tuple[int, int], ...],
) -> None:
    table = server("id", "a")
    previous, current = table.described().table, table.described()
    current = replace(
        current, table=replace(previous, evidence=replace(previous.evidence, key_indexes=current_indexes))
    )
    previous = replace(previous, evidence=replace(previous.evidence, key_indexes=previous_indexes))
    by_key = proven_descriptions(previous, current, [table.relation()])[0][1]
    assert by_key.evidence.key_indexes == stay
    message = replace(table.relation(), replica_identity="f", key=("id", "a"))
    if stay == ():
        with pytest.raises(NeedsResync, match="may have changed for a while"):
            proven_descriptions(previous, current, [message])
    else:
        assert proven_descriptions(previous, current, [message])[0][1].key == ("id",)


def test_a_key_that_is_gone_is_not_proven_unless_it_was_not_sent() -> None:
    table = server("id", "a")
    previous = table.described().table
    current = table.described(key=None)
    message = replace(table.relation(), replica_identity="i", key=("id", "a"))
    for earlier in (previous, current.table):
        with pytest.raises(NeedsResync, match="key changed"):
            proven_descriptions(earlier, current, [message])
        assert proven_descriptions(earlier, current, [replace(message, key=())])[0][1].key is None
        assert proven_descriptions(earlier, replace(current, has_unsent_key=True), [message])[0][1].key is None


def test_a_table_with_masks_is_proven_as_it_was_or_not_at_all() -> None:
    table = server("id", "a", "b")
    masks = {"settings": TableSettings(masked={"a": "nulled"}), "protected": ((2, "a"),)}
    previous = table.described(**masks).table
    assert proven_descriptions(previous, table.described(**masks), [table.relation()])[0][1] is previous
    table.rename(3, "x")
    table.rename(2, "b")
    table.rename(3, "a")
    with pytest.raises(NeedsResync, match="masked"):
        proven_descriptions(previous, table.described(**{**masks, "protected": ((3, "a"),)}), [table.relation()])


def test_partitions_are_proven_by_their_birth_at_all_levels() -> None:
    table = server("id", "a")
    described = table.described(files=((10, 10),))
    previous = replace(described.table, evidence=replace(described.table.evidence, links=((10, OID, 5),)))
    links = ((10, OID, 5), (20, OID, 6), (21, 20, 7), (30, OID, 8))
    after = replace(
        previous, files=((10, 10), (21, 21), (30, 30)), evidence=replace(described.table.evidence, links=links)
    )
    assert unproven_partitions(previous, after, {20, 21, 30}) == []
    assert unproven_partitions(previous, after, {21, 30}) == [21]
    assert unproven_partitions(previous, after, {20, 21}) == [30]


@pytest.mark.parametrize(
    ("xid", "is_seen"), [(99, True), (102, False), (103, True), (105, False), (300, False), ((1 << 32) - 5, True)]
)
def test_a_snapshot_sees_what_committed_before_it(xid: int, is_seen: bool) -> None:
    assert Visibility(105, frozenset({102})).sees(xid) is is_seen
    visibility = Visibility((3 << 32) + 105, frozenset({(3 << 32) + 102}))
    assert visibility.sees(xid) is is_seen
