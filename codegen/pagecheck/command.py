"""The command `python -m codegen docs`: compares pages with the spec."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.model.model import Protocol
from codegen.model.reader import load_either
from codegen.pagecheck.comparison import compare, protocols_on
from codegen.pagecheck.lists import compare_list, listed
from codegen.pagecheck.page import Page
from codegen.pagecheck.prose import compare_prose, quotes
from codegen.pagecheck.quoting import Difference
from codegen.pagecheck.reading import DocPageError, read_page
from codegen.pagecheck.scope import messages_of
from codegen.shared import add_spec

AGREES, DIFFERS, UNREADABLE = 0, 1, 2
"""The exit codes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pages",
        nargs="+",
        type=Path,
        metavar="PAGE",
        help="a documentation page, HTML or DocBook, or a part of one",
    )
    parser.add_argument(
        "--version",
        type=int,
        metavar="N",
        help="the version of the protocol that the pages' release introduced last; the newest by default",
    )
    add_spec(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command. Exit code: 0 all agree, 1 a page differs, 2 no such page or version. Raises SpecError."""
    protocols = load_either(options.spec, options.project)
    return max(_run_page(path, protocols, options.version) for path in options.pages)


def _run_page(path: Path, protocols: tuple[Protocol, ...], version: int | None) -> int:
    try:
        return _compare(read_page(path, listed(protocols), quotes(protocols)), protocols, version)
    except DocPageError as error:
        print(error, file=sys.stderr)
        return UNREADABLE


def _compare(page: Page, protocols: tuple[Protocol, ...], version: int | None) -> int:
    compared = protocols_on(page, protocols)
    quoting = [protocol for protocol in protocols if any(quote in page.text for quote in quotes((protocol,)))]
    if not compared and not page.lists and not quoting:
        names = ", ".join(protocol.title for protocol in protocols)
        raise DocPageError(page.source, f"has none of the messages of the spec ({names})")
    most = max(len(protocol.versions) for protocol in protocols)
    if version is not None and not 1 <= version <= most:
        print(f"the protocol has no version {version}; the newest is {most}", file=sys.stderr)
        return UNREADABLE
    codes = {AGREES}
    for definition_list in page.lists:
        differences = compare_list(Path(page.source), definition_list, listed(protocols)[definition_list.anchor])
        codes.add(
            _report(page, differences, f"the list of {definition_list.anchor}", f"{len(definition_list.terms)} terms")
        )
    for protocol in quoting:
        where = f"{protocol.name} at version {protocol.versions[-1].display_name}"
        codes.add(_report(page, compare_prose(page, protocol), where, f"{len(quotes((protocol,)))} quotations"))
    for protocol in compared:
        newest = len(protocol.versions)
        # The envelope of a replication connection has no versions of its own.
        number = newest if version is None else min(version, newest)
        messages = messages_of(page, protocol) or page.messages
        rows = sum(len(message.rows) for message in messages)
        where = f"{protocol.name} at version {protocol.versions[number - 1].display_name}"
        codes.add(_report(page, compare(page, protocol, number), where, f"{len(messages)} messages, {rows} rows"))
    return max(codes)


def _report(page: Page, differences: list[Difference], where: str, extent: str) -> int:
    """Print the differences of a page from a part of the spec; return the exit code."""
    for difference in differences:
        print(difference)
    if not differences:
        print(f"{page.source}: agrees with {where} ({extent})")
        return AGREES
    count = "1 difference" if len(differences) == 1 else f"{len(differences)} differences"
    print(f"{page.source}: {count} from {where}", file=sys.stderr)
    return DIFFERS
