"""Debezium with a consumer of its events as a tool of the kit: `python -m conformance.tools.debezium KIND VERB …`.

The kind `default` is Debezium as it comes, with the consumer that anybody writes first; `informed` has the options of
Debezium's documentation, and a consumer that knows its rules.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from conformance.tools import debezium_engine
from conformance.tools.debezium_consumer import RESTART, fold

_KINDS = {"default": {}, "informed": debezium_engine.WITH_OPTIONS}


def main(kind: str, verb: str, *arguments: str) -> None:
    """Run a verb of the contract."""
    match verb, arguments:
        case "version", ():
            try:
                debezium_engine.build()
            except debezium_engine.NotBuiltError as error:
                sys.exit(str(error))
            print(f"Debezium {debezium_engine.version()}")
        case "follow", (dsn, publication, folder):
            events = Path(folder) / "events"
            _repair(events)
            properties = debezium_engine.properties(dsn, "debezium", publication, Path(folder), _KINDS[kind])
            command = debezium_engine.command(properties, "debezium", Path(folder), events)
            os.execvp(command[0], command)
        case "read", (folder, *tables):
            events = Path(folder) / "events"
            text = events.read_text("utf-8") if events.is_file() else ""
            rows = fold(text[: text.rfind("\n") + 1].split("\n")[:-1], is_informed=kind == "informed")
            for table in tables:
                for row in rows.get(table, []):
                    print(json.dumps({"table": table, "row": row}))
        case _:
            sys.exit(f"{verb} {' '.join(arguments)} is not in the contract")


def _repair(events: Path) -> None:
    """Cut off an event that a kill has left unfinished, which Debezium sends again, and mark the restart."""
    if events.is_file():
        with events.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            file.write(f"{RESTART}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
