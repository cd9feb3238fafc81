"""The Parquet files of a change buffer: rows of change batches, and their relations in the schema's properties."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from logicalrep.arrow.changes.change_batch import ChangeBatch, schema_of
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges, in_parts
from logicalrep.pipeline.state.state import FORMAT
from logicalrep.pipeline.storage.parquet_files import ParquetFile
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

_FORMAT, _RELATION, _RELATIONS = b"logicalrep.format", b"logicalrep.relation", b"logicalrep.relations"
PARTS = b"logicalrep.parts"
"""The property of a batch's last file with the names of its other files."""


def contents(changes: TableChanges, most_bytes: int) -> list[tuple[pa.Table, dict[bytes, bytes]]]:
    """Return the rows and properties of each file, of about `most_bytes` bytes; the last has the Relation messages."""
    of_relations = groupby(changes.batches, key=lambda batch: batch.relation)
    groups = [part for _, batches in of_relations for part in in_parts(batches, most_bytes)] or [[]]
    files = []
    for group in groups:
        properties = {_FORMAT: b"%d" % FORMAT}
        schema = schema_of(())
        if group:
            properties[_RELATION] = json.dumps(_relation_json(group[0].relation)).encode()
            schema = group[0].rows.schema
        files.append((pa.Table.from_batches([batch.rows for batch in group], schema), properties))
    sent = [relation.to_json() for relation in changes.relations]
    files[-1][1][_RELATIONS] = json.dumps(sent).encode()
    return files


def parquet(rows: pa.Table, properties: Mapping[bytes, bytes]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata(dict(properties)), sink, compression="zstd", write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def properties_of(data: bytes) -> dict[bytes, bytes]:
    with _reading():
        return dict(pq.read_schema(pa.BufferReader(data)).metadata or {})


def changes_in(data: bytes) -> TableChanges:
    """Return a file's changes. Raises ValueError or KeyError if it is damaged, or of another format."""
    with _reading():
        rows = ParquetFile(pa.BufferReader(data)).read()
    properties = dict(rows.schema.metadata or {})
    rows = rows.replace_schema_metadata(None)
    if int(properties[_FORMAT]) != FORMAT:
        raise ValueError(f"its format {properties[_FORMAT].decode():.20} is not supported by this version")
    sent = [SentRelation.from_json(content) for content in json.loads(properties.get(_RELATIONS, b"[]"))]
    batches: list[ChangeBatch] = []
    if _RELATION in properties:
        relation = _relation_of(json.loads(properties[_RELATION]))
        rows = rows.cast(schema_of(relation.names))
        batches = [ChangeBatch(relation, batch) for batch in rows.to_batches() if batch.num_rows]
    return TableChanges(sent, batches)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (OSError, NotImplementedError) as error:
        raise ValueError(str(error)) from None


def _relation_json(relation: TableDescription) -> dict[str, Any]:
    return {
        "relation_id": relation.relation_id,
        "schema": relation.schema,
        "name": relation.name,
        "replica_identity": relation.replica_identity.value,
        "columns": [[column.flags, column.name, column.type_id, column.type_modifier] for column in relation.columns],
    }


def _relation_of(content: Mapping[str, Any]) -> TableDescription:
    columns = tuple(
        v1.Column(flags=flags, name=name, type_id=Oid(type_id), type_modifier=modifier)
        for flags, name, type_id, modifier in content["columns"]
    )
    return TableDescription(
        relation_id=Oid(content["relation_id"]),
        schema=content["schema"],
        name=content["name"],
        replica_identity=ReplicaIdentity(content["replica_identity"]),
        columns=columns,
        types=(None,) * len(columns),
    )
