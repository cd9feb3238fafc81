"""`python -m bench`: one table in one run, the same figures in build/bench.json, and a picture in docs/bench.svg."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from bench import codecs, columnar, pgwire, picture
from bench.corpus import messages
from bench.measure import Row, verdict

_ROOT = Path(__file__).parents[1]
_JSON = _ROOT / "build" / "bench.json"
_PICTURE = _ROOT / "docs" / "bench.svg"


def main() -> int:
    """Measure everything, print the table, and write the JSON and the picture."""
    source, _ = messages(1)
    print(f"Messages: {source}. Medians of interleaved rounds.")
    table: list[Row] = []
    parts = {"Messages as objects": codecs.rows, "Rows of results": pgwire.rows, "Batches to Arrow": columnar.rows}
    for title, rows in parts.items():
        print(f"\n{title}")
        measured_rows = rows()
        table += measured_rows
        for row in measured_rows:
            ratio = f"  {row.to} {row.ratio:.1f} times" if row.ratio is not None else ""
            print(f"  {row.name:<38}{row.value:>14,.1f} {row.unit}{ratio}{verdict(row.ratio, row.target)}")
    if not any("pypgoutput" in row.name for row in table):
        print("\npypgoutput is not installed, so nothing is compared with it: pip install 'logicalrep[bench]'")
    _JSON.parent.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps([dataclasses.asdict(row) for row in table], indent=1) + "\n", encoding="utf-8")
    picture.draw(table, _PICTURE)
    print(f"\nWritten to {_JSON} and {_PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
