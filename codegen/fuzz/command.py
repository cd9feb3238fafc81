"""`python -m codegen fuzz`: random specs until the time is over."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.fuzz import native

if TYPE_CHECKING:
    from codegen.fuzz.examine import Examination, Fault
    from codegen.fuzz.specs import Spec

_REPAIRS = 15
"""Attempts to repair a spec that the checker refuses."""
_SECONDS = 20
"""The limit for one spec, in seconds of the processor."""
_REDUCTION = 10
"""The seconds for the reduction of one fault's spec."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60, help="how long to search (default: 60)")
    parser.add_argument("--specs", type=int, default=sys.maxsize, metavar="N", help="end after N specs")
    parser.add_argument("--seed", default="1", help="another seed gives other specs (default: 1)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with the seed's spec N")


def run(options: argparse.Namespace) -> int:
    """Search, print each fault once with the smallest spec that has it, and return the exit code: 1 for faults."""
    if native.COMPILER is None:
        print("There is no C compiler: batches are walked by parse alone")
    sys.dont_write_bytecode = True
    search = _Search(options.seed)
    signal.signal(signal.SIGPROF, search.hang)
    start, number = time.monotonic(), options.first
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - start < options.seconds and number - options.first < options.specs:
            for fault, spec in search.spec(number, Path(folder)):
                print(f"{time.monotonic() - start:.0f} s, spec {number}: {fault.check} {fault.summary}")
                print("    " + fault.detail.replace("\n", "\n    "))
                print(search.shown(spec), flush=True)
            number += 1
    print(
        f"{search.accepted} specs and {search.messages} messages in {time.monotonic() - start:.0f} s with the seed "
        f"{options.seed}; {search.refused} other specs were refused; {len(search.faults)} faults"
    )
    return 1 if search.faults else 0


class _Search:
    def __init__(self, seed: str) -> None:
        from codegen.fuzz import examine, specs

        self.seed = seed
        self.hang = examine.hang
        self._examine = examine.examine
        self._specs = specs
        self.faults: set[tuple[str, ...]] = set()
        self.accepted = self.refused = self.messages = 0
        self._folders = 0

    def spec(self, number: int, folder: Path) -> Iterator[tuple[Fault, Spec]]:
        """Yield the new faults of a random spec, each with the smallest spec that has it."""
        seed = f"{self.seed}.{number}"
        draw = random.Random(seed)
        spec = self._specs.draw_spec(draw)
        for _ in range(_REPAIRS):
            examination = self.examine(spec, folder, seed)
            yield from self.reduced(examination, spec, folder, seed)
            if not examination.refused:
                self.accepted += 1
                self.messages += examination.messages
                return
            lines = {finding.place.line for finding in examination.refused if finding.place.path.name == "m.yaml"}
            if not lines:
                break
            spec = self._specs.repaired(spec, lines, draw)
        self.refused += 1

    def examine(self, spec: Spec, folder: Path, seed: str) -> Examination:
        """Examine a spec within the limit of time."""
        self._folders += 1
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return self._examine(spec, Path(own), seed)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def reduced(self, examination: Examination, spec: Spec, folder: Path, seed: str) -> Iterator[tuple[Fault, Spec]]:
        """Yield the first fault of a spec with the smallest spec that has it, unless a fault had the same notation."""
        if not examination.faults:
            return
        fault, smallest = examination.faults[0], self._specs.complete(spec)
        end, place = time.monotonic() + _REDUCTION, 0
        while place < len(candidates := list(self._specs.smaller(smallest))) and time.monotonic() < end:
            faults = self.examine(candidates[place], folder, seed).faults
            same = next((other for other in faults if other.check == fault.check), None)
            if same is None:
                place += 1
            else:
                fault, smallest = same, self._specs.complete(candidates[place])
        notation = (fault.check, *self._specs.notation(smallest))
        if notation not in self.faults:
            self.faults.add(notation)
            yield fault, smallest

    def shown(self, spec: Spec) -> str:
        """Return the files of a spec."""
        texts = self._specs.files(spec)
        return "".join(f"  {name}\n    " + text.strip().replace("\n", "\n    ") + "\n" for name, text in texts.items())
