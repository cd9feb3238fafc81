"""`python -m bench`: one table in one run, and the same as JSON in build/bench.json."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from bench import codecs
from bench.corpus import messages

_OUT = Path(__file__).parents[1] / "build" / "bench.json"


def main() -> int:
    """Measure everything, print the table, write the JSON."""
    source, _ = messages(1)
    print(f"Messages: {source}. Medians of interleaved rounds.\n")
    rows = codecs.rows()
    width = max(len(row.name) for row in rows)
    for row in rows:
        ratio = f"  {row.to} {row.ratio:.1f} times" if row.ratio is not None else ""
        print(f"{row.name:<{width}}  {row.value:>12,.0f} {row.unit}{ratio}")
    if not any("pypgoutput" in row.name for row in rows):
        print("\npypgoutput is not installed, so nothing is compared with it: pip install 'logicalrep[bench]'")
    _OUT.parent.mkdir(exist_ok=True)
    _OUT.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    print(f"\nWritten to {_OUT.relative_to(Path.cwd()) if _OUT.is_relative_to(Path.cwd()) else _OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
