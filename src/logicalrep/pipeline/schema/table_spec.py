from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_type_hints

import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts
from logicalrep.pipeline.schema.field_ids import LINEAGE, with_column_ids
from logicalrep.pipeline.schema.file_partitions import (
    FilePartition,
    PartitionColumnError,
    PartitionRule,
    partitioning_problem,
)
from logicalrep.pipeline.schema.forms import Form, refuse_feed_columns, with_extra_columns
from logicalrep.pipeline.schema.names import column_names, text_names
from logicalrep.pipeline.schema.stored_json import decode, encode, parse_json
from logicalrep.pipeline.schema.table_facts import Evidence, Skipped, TypePart
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import CatalogType, Column, ColumnType, TypeCatalog
from logicalrep.values.numbers import with_number_type
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    name: str
    type: pa.DataType
    ordinal: int
    """The index of the server's column in the table."""
    has_texts: bool = False
    """Whether it is a text column, with the texts of values that the type of the other column cannot hold."""
    refuses: bool = False
    """Whether a value that its type cannot hold is an error, and not NULL."""


@dataclass(frozen=True)
class TableSpec:
    relation: TableDescription
    catalog: TypeCatalog
    key: tuple[str, ...] | None
    """The columns that identify a row; None with REPLICA IDENTITY FULL if rows may be equal."""
    attnums: tuple[int, ...]
    """Renaming a column does not change its number."""
    files: tuple[tuple[int, int], ...]
    """The OID and the file number of the table, or of each partition: a rewrite changes the file number."""
    evidence: Evidence
    """Facts of the catalog at the time of this description."""
    published: str = ""
    """A digest of the publications' entries; it changes with a row filter, or if the table is removed and added."""
    settings: TableSettings = field(default_factory=TableSettings)
    """The settings with which its rows were loaded."""
    dropped_columns: tuple[str, ...] = ()
    """The names of dropped columns that older data files may have."""
    companion: Literal["history", "changes"] | None = None
    """The kind of a companion table: every version of rows, or all changes; None for the table itself."""
    type_parts: tuple[TypePart, ...] = ()
    protected: tuple[tuple[int, str], ...] = ()
    """The numbers and names of the server's columns that are masked or left out."""
    skipped: tuple[Skipped, ...] = ()
    """The commits that were skipped since its rows were loaded."""
    comments: tuple[tuple[int, str], ...] = ()
    """By column numbers; 0 for the table's comment."""
    texts: tuple[int, ...] = ()
    """The numbers of the columns that have a text column, which is added for the first value that does not fit."""
    partitions: tuple[PartitionRule, ...] = ()
    """The file partitions of its data files, without partitions by columns that it does not have."""

    def __reduce__(self) -> tuple[type[TableSpec], tuple[object, ...]]:
        # Some of the cached objects cannot be pickled; computing them again is cheap.
        return type(self), tuple(getattr(self, attribute.name) for attribute in fields(self))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        columns = Texts("utf-8", (), self.catalog).columns(self.relation)
        return tuple(replace(column, type=self.own_type(column.name, column.type)) for column in columns)

    def own_type(self, name: str, type_: ColumnType) -> ColumnType:
        number_type = self.settings.number_type(name)
        # Different numbers may be the same double.
        is_inexact = number_type == "double" and name in (self.key or ())
        return type_ if is_inexact else with_number_type(type_, number_type)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the stored table's columns, without the columns that the form adds."""
        return tuple(column.name for column in self.written)

    @cached_property
    def written(self) -> tuple[WrittenColumn, ...]:
        refuses_all = self.settings.unrepresentable == "error"
        names = tuple(self._stored_names.values())
        numbered = list(zip(self.attnums, names, strict=True))
        texts = text_names([name for number, name in numbered if number in self.texts], names)
        columns: list[WrittenColumn] = []
        for ordinal, (number, name) in enumerate(numbered):
            type_ = self.columns[ordinal].type.arrow_type(for_spark=True)
            refuses = refuses_all or number not in self.lacking
            columns.append(WrittenColumn(name, type_, ordinal, refuses=refuses))
            if name in texts:
                columns.append(WrittenColumn(texts[name], pa.string(), ordinal, has_texts=True))
        return tuple(columns)

    @cached_property
    def _stored_names(self) -> dict[str, str]:
        abilities = self.settings.abilities
        return column_names(self.relation.names, abilities.refused_characters, abilities.reserved_columns)

    @cached_property
    def lacking(self) -> frozenset[int]:
        """The numbers of the columns that cannot hold all values, except key columns: NULL would not identify a row."""
        numbered = zip(self.attnums, self.columns, strict=True)
        key = self.key or ()
        return frozenset(
            number for number, column in numbered if column.type.spark.lacks_values and column.name not in key
        )

    def with_texts(self, numbers: Iterable[int]) -> TableSpec:
        """Only columns in `lacking` can have text columns, and only with `unrepresentable` = `text`."""
        chosen = {*self.texts, *numbers} & self.lacking if self.settings.unrepresentable == "text" else ()
        texts = tuple(sorted(chosen))
        return self if texts == self.texts else replace(self, texts=texts)

    def with_texts_of(self, names: Iterable[str]) -> TableSpec:
        numbers = dict(zip(self.relation.names, self.attnums, strict=True))
        return self.with_texts(numbers[name] for name in names if name in numbers)

    def with_texts_like(self, other: TableSpec) -> TableSpec:
        """Columns are matched by their numbers; in another table of the same name, by their names."""
        if other.relation.relation_id == self.relation.relation_id:
            return self.with_texts(other.texts)
        numbered = zip(other.attnums, other.relation.names, strict=True)
        return self.with_texts_of(name for number, name in numbered if number in other.texts)

    @cached_property
    def by_number(self) -> dict[tuple[int, bool], WrittenColumn]:
        """The columns of the stored table by the server's column number, and by whether they are text columns."""
        return {(self.attnums[column.ordinal], column.has_texts): column for column in self.written}

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of `written`, without the columns that the form adds."""
        has_ids = self.settings.abilities.has_field_ids
        fields = ((pa.field(column.name, column.type), *key) for key, column in self.by_number.items())
        return pa.schema([with_column_ids(*column) if has_ids else column[0] for column in fields])

    @property
    def comment(self) -> str | None:
        return dict(self.comments).get(0)

    @property
    def column_comments(self) -> dict[str, str]:
        comments = dict(self.comments)
        return {
            column.name: comments[number]
            for (number, has_texts), column in self.by_number.items()
            if number in comments and not has_texts
        }

    @property
    def form(self) -> Form:
        return self.companion or ("marked" if self.settings.deletes == "soft" else "rows")

    @property
    def marks_rows(self) -> bool:
        """Whether deletes mark rows in files beside data files; rows of `~changes` are never deleted."""
        return self.settings.write_mode == "merge-on-read" and self.companion != "changes"

    @property
    def has_change_feed(self) -> bool:
        """Whether commits have files of Delta's change data feed; a companion table has none."""
        return self.settings.change_data_feed and self.companion is None

    @cached_property
    def file_partitions(self) -> tuple[FilePartition, ...]:
        """Raises PartitionColumnError if they do not fit the columns."""
        partitions: list[FilePartition] = []
        for transform, number, buckets in self.partitions:
            column = self.by_number.get((number, False))
            if column is None:
                raise PartitionColumnError(
                    f"{self.relation} no longer has a column of its partition_by: change partition_by"
                )
            is_hidden = self.settings.abilities.hides_partitions
            partitions.append(FilePartition(column.name, column.type, transform, buckets, is_hidden))
        if (reason := partitioning_problem(partitions, self.names)) is not None:
            raise PartitionColumnError(f"the partition_by of {self.relation} is not possible: {reason}")
        return tuple(partitions)

    @cached_property
    def stored(self) -> pa.Schema:
        """Raises ReservedColumnError if two columns would have the same name."""
        if self.has_change_feed:
            refuse_feed_columns(self.names, self.relation.table)
        return with_extra_columns(
            self.schema, self.form, self.relation.table, has_field_ids=self.settings.abilities.has_field_ids
        )

    @cached_property
    def moved(self) -> pa.Schema:
        """The columns of rows that move to other files: the stored columns, and the lineage if rows have one."""
        return pa.schema([*self.stored, *map(LINEAGE.field, self.lineage_names)])

    @property
    def lineage_names(self) -> list[str]:
        return LINEAGE.names if self.settings.has_row_lineage else []

    def mask(self, column: WrittenColumn) -> tuple[str | None, str | None]:
        """Return a column's mask, and the hash key's check value if the column is hashed."""
        mask = self.settings.masked.get(self.relation.names[column.ordinal])
        return mask, self.settings.mask_key if mask == "hashed" else None

    @property
    def sent_names(self) -> tuple[str, ...]:
        """The names of all published columns, with left-out columns, in the order of their numbers."""
        numbered = {*zip(self.attnums, self.relation.names, strict=True), *self.protected}
        return tuple(name for _, name in sorted(numbered))

    def unfit_warning(self, name: str) -> str:
        """Return the end of a warning that begins with the values that do not fit a column."""
        ordinal = self.relation.names.index(name)
        type_, texts = self.columns[ordinal].type.spark_type, self.by_number.get((self.attnums[ordinal], True))
        where = "" if texts is None else f", with their texts in {texts.name}"
        return f"do not fit {type_}: they are NULL{where}; status counts them, and later ones too"

    @property
    def has_whole_old(self) -> bool:
        return self.relation.replica_identity is ReplicaIdentity.FULL

    def has_protected(self, settings: TableSettings, numbers: Mapping[str, int]) -> bool:
        """Return whether the table has all columns to mask or leave out, with the known numbers."""
        protected = {name: number for number, name in self.protected}
        return settings.protected <= protected.keys() and all(
            numbers.get(name, number) == number for name, number in protected.items()
        )

    @property
    def nulled(self) -> frozenset[str]:
        return frozenset(name for name, mask in self.settings.masked.items() if mask == "nulled")

    @property
    def hashed(self) -> frozenset[str]:
        return frozenset(self.settings.masked) - self.nulled

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key's columns in the stored table; all columns if there is no key."""
        if self.key is None:
            return self.names
        return tuple(self._stored_names[name] for name in self.key)

    @property
    def sent_key(self) -> tuple[str, ...] | None:
        """The columns of old rows that PostgreSQL sends; None if it sends none, and refuses updates and deletes."""
        return self.relation.names if self.relation.replica_identity is ReplicaIdentity.FULL else self.key

    def to_json(self) -> str:
        relation = self.relation
        content = {
            "oid": int(relation.relation_id),
            "schema": relation.schema,
            "name": relation.name,
            "replica_identity": relation.replica_identity,
            "columns": [
                (
                    number,
                    column.name,
                    int(column.type_id),
                    column.type_modifier,
                    type_ and (type_.namespace, type_.name),
                )
                for number, column, type_ in zip(self.attnums, relation.columns, relation.types, strict=True)
            ],
            "types": self.catalog.by_oid,
        }
        return encode(content | {name: getattr(self, name) for name in _STORED}).decode()

    @classmethod
    def from_json(cls, text: str) -> TableSpec:
        content = parse_json(text)
        own = {name: decode(content.pop(name), kind) for name, kind in _STORED.items()}
        stored = decode(content, _StoredRelation)
        return cls(
            relation=TableDescription(
                relation_id=Oid(stored.oid),
                schema=stored.schema,
                name=stored.name,
                replica_identity=stored.replica_identity,
                columns=tuple(
                    v1.Column(flags=0, name=column.name, type_id=Oid(column.type_id), type_modifier=column.modifier)
                    for column in stored.columns
                ),
                types=tuple(
                    column.type_name
                    and v1.Type(type_id=Oid(column.type_id), namespace=column.type_name[0], name=column.type_name[1])
                    for column in stored.columns
                ),
            ),
            catalog=TypeCatalog(dict(stored.types)),
            attnums=tuple(column.number for column in stored.columns),
            **own,
        )


class _StoredColumn(NamedTuple):
    number: int
    name: str
    type_id: int
    modifier: int
    type_name: tuple[str, str] | None
    """The schema and the name of a type that is not built in."""


@dataclass(frozen=True, slots=True)
class _StoredRelation:
    oid: int
    schema: str
    name: str
    replica_identity: ReplicaIdentity
    columns: tuple[_StoredColumn, ...]
    types: Mapping[int, CatalogType]


_STORED: dict[str, Any] = {
    name: kind for name, kind in get_type_hints(TableSpec).items() if name not in ("relation", "catalog", "attnums")
}
