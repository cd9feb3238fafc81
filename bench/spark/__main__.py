"""The Spark source beside what bounds it: `python -m bench.spark [PART …]`, the same figures in build/.

`open` measures batches of one change with 0, 100 MiB and 1 GiB of WAL behind an open transaction; `latency` the seconds
from a commit to `foreachBatch` at 1, 100 and 2,000 changes a second; `steady` each minute of ten at 2,000 changes a
second, with a transaction left open; `rates` messages a second, beside a server without Spark and Spark without the
source; `marginal` the CPU-seconds of another million messages in a running query. Each takes less than 20 minutes.
Without a name, all are measured.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.spark import behind, latency, marginal, rates

_ROOT = Path(__file__).parents[2]
_PARTS: dict[str, Callable[[argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "open": behind.measured,
    "latency": latency.measured,
    "steady": latency.steady,
    "rates": rates.measured,
    "marginal": marginal.measured,
}


def main() -> None:
    """Measure the parts, print their lines, and write each part's JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--seconds", type=float, default=60, help="latency: of each measurement")
    parser.add_argument("--minutes", type=int, default=10, help="steady: of auto; peek has three at most")
    parser.add_argument("--rounds", type=int, default=3, help="rates, marginal: of each measurement")
    parser.add_argument("--millions", type=int, default=4, help="marginal: of the longer backlog's messages")
    parser.add_argument("--capture", type=Path, default=rates.CAPTURE, help="rates: the messages to read")
    arguments = parser.parse_args()
    for part in arguments.parts or _PARTS:
        print(f"\n{part}", flush=True)
        lines = []
        for line in _PARTS[part](arguments):
            print("  " + _as_text(line), flush=True)
            lines.append(line)
        file = _ROOT / "build" / f"bench-spark-{part}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
        print(f"Written to {file}", flush=True)


def _as_text(line: dict[str, Any]) -> str:
    return line["text"] if "text" in line else "  ".join(f"{name}: {_value(value)}" for name, value in line.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


if __name__ == "__main__":
    main()
