"""`logicalrep replicate` as a tool of the kit: `python -m conformance.tools.replicate ENGINE VERB …`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import logicalrep
from conformance.tools.texts import array_text
from logicalrep.observe.figures import Phase
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.reader import ReadError
from logicalrep.transactions.table_names import TableName

OPTIONS = "--every", "1", "--unrepresentable", "text"
"""Tables are current within seconds, and values that a type cannot hold are in a second column."""


def main(engine: str, verb: str, *arguments: str) -> None:
    """Run a verb of the contract."""
    match verb, arguments:
        case "version", ():
            spark = f", PySpark {version('pyspark')}" if engine == "spark" else ""
            print(f"logicalrep {version('logicalrep')}{spark}")
        case "follow", (dsn, publication, folder):
            command = [sys.executable, "-P", "-m", "logicalrep.cli.main", "replicate", "--dsn", dsn]
            command += ["--to", f"{folder}/lake", "--publication", publication, "--engine", engine, *OPTIONS]
            os.execv(sys.executable, command)
        case "read", (folder, *tables):
            state = State.read(Storage(f"{folder}/lake"))
            for table in tables:
                schema, _, name = table.partition(".")
                for line in _lines(Path(folder) / "lake", TableName(schema, name), state):
                    print(json.dumps({"table": table, **line}))
        case _:
            sys.exit(f"{verb} {' '.join(arguments)} is not in the contract")


def _lines(lake: Path, table: TableName, state: State) -> Iterator[dict[str, Any]]:
    """Yield a table's rows, or why there are none."""
    current = state.tables.get(str(table))
    if current is None:
        return
    match current.phase:
        case Phase.STOPPED | Phase.HELD:
            yield {"stopped": current.error or current.phase}
            return
        case Phase.OPENING | Phase.QUEUED | Phase.COPYING | Phase.CATCHING_UP:
            yield {"behind": current.error or current.phase}
            return
    try:
        rows = logicalrep.read(lake, str(table)).arrow().to_pylist()
    except ReadError as error:
        yield {"behind": str(error)}
        return
    for row in rows:
        texts = {name: _text(value) for name, value in row.items()}
        yield {"row": {name: texts.get(f"{name}_text") if text is None else text for name, text in texts.items()}}


def _text(value: Any) -> str | None:
    """Return a value of Arrow's as PostgreSQL reads it."""
    match value:
        case None:
            return None
        case bytes():
            return "\\x" + value.hex()
        case list():
            return array_text(map(_text, value))
        case Decimal():
            return f"{value:f}"
    return str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
