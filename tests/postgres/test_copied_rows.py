"""Rows by COPY, as messages: each value is what the server has, whatever characters it is made of."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg import sql

from logicalrep import Lsn, Oid, v1
from logicalrep.v1 import ReplicaIdentity
from logicalrep_pipeline import copied_rows
from logicalrep_pipeline.blocks import Block
from logicalrep_pipeline.copy_out import started
from logicalrep_pipeline.relations import Relation
from tests.server.servers import Database

LSN = Lsn((1 << 63) + 5)
MAKERS = [copied_rows._compiled, copied_rows._one_by_one]
Maker = Callable[[bytearray, Relation, Lsn], Block]


def relation(columns: int) -> Relation:
    return Relation(
        relation_id=Oid(4_000_000_000),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=tuple(v1.Column(flags=0, name=f"c{at}", type_id=Oid(25), type_modifier=-1) for at in range(columns)),
        types=(None,) * columns,
    )


def values(block: Block) -> list[tuple[bytes | None, ...]]:
    found = []
    for lsn, data in block:
        message = v1.parse(data)
        assert isinstance(message, v1.Insert)
        assert (lsn, message.relation_id, chr(data[0])) == (LSN, 4_000_000_000, "I")
        found.append(tuple(message.new.values))
    assert block.tags.tobytes() == b"I" * len(block)
    return found


@pytest.mark.postgres
@pytest.mark.parametrize("compiled", [True, False])
def test_what_the_server_has(db: Database, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    texts = ["", "N", "\\N", "\\", "\\\\", "\t", "\n", "\r\n", "\\.", "\\t", "\x01\b\f\v\x7f", "a\tb\\c\nd", "☃" * 40]
    texts += ["".join(chance.choices("ab\\\n\tNt\r☃", k=chance.choice((1, 5, 33, 200)))) for _ in range(3000)]
    rows = [tuple(None if chance.random() < 0.2 else chance.choice(texts) for _ in range(3)) for _ in range(12_000)]
    rows += [(text, None, text) for text in texts]
    rows.append(("x" * (5 << 20), "\t" * (1 << 20), ""))
    db.execute("CREATE TABLE t (a text, b text, c text)")
    with db.connection.cursor().copy("COPY t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    monkeypatch.setattr(copied_rows, "default_backend", lambda: "numba" if compiled else "numpy")
    copied = started(db.connection, sql.SQL("COPY (SELECT a, b, c FROM t) TO STDOUT").format())
    blocks = list(copied_rows.inserts(copied, relation(3), LSN))
    assert len(blocks) == 2
    found = Counter(row for block in blocks for row in values(block))
    assert found == Counter(tuple(None if text is None else text.encode() for text in row) for row in rows)


@pytest.mark.parametrize("make", MAKERS)
def test_few_columns_and_many(make: Maker) -> None:
    assert values(make(bytearray(b"\\N\n\n1\n"), relation(1), LSN)) == [(None,), (b"",), (b"1",)]
    many = [b"%d" % number if number % 3 else None for number in range(1600)]
    row = b"\t".join(rb"\N" if value is None else value for value in many) + b"\n"
    assert values(make(bytearray(row * 3), relation(1600), LSN)) == [tuple(many)] * 3
    assert len(make(bytearray(), relation(2), LSN)) == 0


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("data", [b"1\n", b"1\t2\t3\n", b"1\t2\n3\n", b"1\t2\n3\n4\t5\n", b"\n"])
def test_rows_of_other_columns(make: Maker, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"the server did not send rows of the columns of public\.t"):
        make(bytearray(data), relation(2), LSN)


@pytest.mark.parametrize("make", MAKERS)
def test_rows_without_an_end(make: Maker) -> None:
    for data in (b"1\t2", b"1\t2\n3", b"1\t2\n3\t", b"1\t2\n3\t4"):
        with pytest.raises(ValueError, match="did not send rows"):
            make(bytearray(data), relation(2), LSN)


@pytest.mark.skipif("NUMBA_BOUNDSCHECK" in os.environ, reason="it is done here")
def test_nothing_is_read_or_written_outside(tmp_path: Path) -> None:
    """The tests that need no server, with each access of the compiled loop checked."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not postgres", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
