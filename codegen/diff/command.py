"""`python -m codegen diff`: reads two sides, compares them, prints the findings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.diff.compare import compare
from codegen.diff.presence import until
from codegen.diff.rendering import RENDERERS, Report
from codegen.diff.rules import Severity
from codegen.diff.sides import Side, SideError, read_side

_DESCRIPTION = """\
Print what changed in the spec for whoever uses the protocol, one finding a line: its place on the old or new side,
severity, rule (spec/README.md explains each) and the versions concerned. A summary by version ends it.
"""

_ROOT = Path(__file__).parent.parent.parent

_FAILING = {
    "wire": (Severity.WIRE,),
    "api": (Severity.WIRE, Severity.API),
    "none": (),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `diff`."""
    parser.description = _DESCRIPTION
    parser.add_argument(
        "old", nargs="?", metavar="OLD", help="a git revision, or a folder: a spec, or one that holds spec/"
    )
    parser.add_argument("new", nargs="?", metavar="NEW", help="the same; the working tree if left out")
    parser.add_argument(
        "--versions",
        nargs=2,
        type=int,
        metavar=("FROM", "TO"),
        help="compare two protocol versions of one spec, that of OLD or the working tree",
    )
    parser.add_argument("--format", choices=list(RENDERERS), default="text", help="default: text")
    parser.add_argument(
        "--fail-on",
        choices=list(_FAILING),
        default="wire",
        help="the findings that make the exit code 1: wire ones (default), api ones too, or none",
    )
    parser.add_argument(
        "--repository", type=Path, default=_ROOT, metavar="DIR", help="where revisions and the working tree are"
    )


def run(options: argparse.Namespace) -> int:
    """Exit code: 0 no finding that fails, 1 one that does, 2 a side does not load or the arguments make no sense."""
    try:
        report = _versions_report(options) if options.versions else _report(options)
    except SideError as error:
        for line in error.lines:
            print(line, file=sys.stderr)
        return 2
    sys.stdout.write(RENDERERS[options.format](report))
    return 1 if any(report.comparison.of(severity) for severity in _FAILING[options.fail_on]) else 0


def _report(options: argparse.Namespace) -> Report:
    if options.old is None:
        raise SideError("diff: one side is needed at least, or --versions FROM TO")
    sides: list[Side] = []
    lines: list[str] = []
    for which, name in (("old", options.old), ("new", options.new)):
        try:
            sides.append(read_side(name, options.repository))
        except SideError as error:
            lines += [f"{which} {line}" for line in error.lines]
    if lines:
        raise SideError(*lines)
    old, new = sides
    return Report(compare(old.protocols, new.protocols), old, new)


def _versions_report(options: argparse.Namespace) -> Report:
    if options.new is not None:
        raise SideError("diff: --versions compares versions of one spec, so there is one side at most")
    side = read_side(options.old, options.repository)
    first, second = options.versions
    protocols = [
        protocol
        for protocol in side.protocols
        if min(first, second) >= 1 and max(first, second) <= len(protocol.versions)
    ]
    if not protocols:
        known = ", ".join(f"{protocol.name} has 1 to {len(protocol.versions)}" for protocol in side.protocols)
        raise SideError(f"diff: no protocol has the versions {first} and {second}; {known}")
    comparison = compare(
        [until(protocol, first) for protocol in protocols], [until(protocol, second) for protocol in protocols]
    )
    return Report(comparison, side, side, (first, second))
