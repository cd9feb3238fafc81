"""The command `python -m codegen diff`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from codegen.diff.compare import compare
from codegen.diff.markdown import render_markdown
from codegen.diff.rendering import Report, render_github, render_json, render_text
from codegen.diff.rules import Severity
from codegen.diff.sides import Side, SideError, read_side
from codegen.shared import ROOT, add_project

_DESCRIPTION = """\
Print what changed in the spec for whoever uses the protocol, one finding a line: its place in NEW, severity, rule
(spec/README.md explains each), what changed and the versions concerned. A summary by version ends it.
"""

_RENDERERS = {"text": render_text, "markdown": render_markdown, "github": render_github, "json": render_json}

_FAILING = {
    "wire": (Severity.WIRE,),
    "api": (Severity.WIRE, Severity.API),
    "none": (),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.add_argument("old", metavar="OLD", help="a git revision, or a folder: a spec, or one that holds spec/")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the same; the working tree if left out")
    parser.add_argument(
        "--format",
        choices=list(_RENDERERS),
        default="text",
        help="text by default; github prints annotations for a pull request, json an object for programs",
    )
    parser.add_argument(
        "--fail-on",
        choices=list(_FAILING),
        default="wire",
        help="the findings that make the exit code 1: wire ones (default), api ones too, or none",
    )
    parser.add_argument(
        "--repository", type=Path, metavar="DIR", help="where revisions and the working tree are; by default here"
    )
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command. Exit code: 0 no failing finding, 1 a failing finding, 2 a side cannot be loaded.

    An acceptance that has ended fails as a finding does.
    """
    repository = options.repository or options.project or ROOT
    sides: list[Side] = []
    lines: list[str] = []
    for which, name in (("old", options.old), ("new", options.new)):
        try:
            sides.append(read_side(name, repository, options.project))
        except SideError as error:
            lines += [f"{which} {line}" for line in error.lines]
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
        return 2
    old, new = sides
    report = Report(compare(old.protocols, new.protocols), old, new, datetime.now(UTC).date())
    sys.stdout.write(_RENDERERS[options.format](report))
    failing = _FAILING[options.fail_on]
    unaccepted = {change.severity for change in report.comparison.changes if report.acceptance(change) is None}
    return 1 if failing and (report.ended or unaccepted.intersection(failing)) else 0
