"""`python -m website`: write the site to build/site; exit code 1 if a link leads nowhere."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from codegen.shared import ROOT
from website.building import build


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m website", description="Write the site of the documentation.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/site", help="the folder of the site")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        errors = build(Path(folder), options.out)
    for error in errors:
        print(error, file=sys.stderr)
    if not errors:
        print(f"open {options.out / 'index.html'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
