"""The command line, `logicalrep`: the arguments of its commands, and error handling."""

from __future__ import annotations

import argparse
import difflib
import io
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from logicalrep.captures.capture import LONGEST_MESSAGE, Capture, CaptureError, CaptureSession
from logicalrep.cli.change_table import table_lines
from logicalrep.cli.check import add_check
from logicalrep.cli.failing import UsageError, run_command
from logicalrep.cli.inspection import carried, inspect
from logicalrep.cli.message_json import message_json
from logicalrep.cli.operate import add_operations
from logicalrep.cli.replicate import add_replicate
from logicalrep.cli.server_options import Commands
from logicalrep.cli.slot import add_slot
from logicalrep.cli.summary import Summary
from logicalrep.cli.terminal import ProgressBar, TerminalStyle
from logicalrep.cli.verify import add_verify
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.table_names import TableNameError, name_parts
from logicalrep.values.encodings import python_codec
from logicalrep_protocol import versions
from logicalrep_protocol.layouts import COPY_BINARY, LOGICALREP, WALSENDER
from logicalrep_runtime.errors import DecodeError, EncodingError
from logicalrep_runtime.scalars import Lsn
from logicalrep_runtime.visible import visible_json

_NEWEST = max(versions.PARSE)
LONGEST_TEXT = 4 * LONGEST_MESSAGE
"""The most characters of a message in hexadecimal, including prefixes and separators."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for an error, 2 for invalid arguments."""
    parser = argument_parser()
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    if unknown:
        flag = unknown[0].partition("=")[0]
        hint = _replicate_hint(flag, options) or _nearest(flag, options.parser)
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        code = run_command(options.run, options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, for example `head`, has closed the pipe. Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    """A parser without abbreviated options, because `hide_secrets` finds secrets by their full option names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self.set_defaults(parser=self)


def _replicate_hint(flag: str, options: argparse.Namespace) -> str:
    # Only the commands for a destination have the attribute.
    has_options = getattr(options, "has_options", None)
    if has_options is None or flag not in options.commands["replicate"]._option_string_actions:
        return ""
    reason = "" if has_options else f": {options.command} reads the format and all settings from the destination"
    return f"; omit {flag}, an option of replicate{reason}"


def _nearest(flag: str, parser: argparse.ArgumentParser) -> str:
    near = difflib.get_close_matches(flag, list(parser._option_string_actions), 1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def argument_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="logicalrep",
        description="Replicate PostgreSQL tables to Delta Lake or Iceberg, and read PostgreSQL's logical replication.",
    )
    parser.add_argument("--version", action="version", version=f"logicalrep {version('logicalrep')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_decode(commands)
    _add_inspect(commands)
    _add_changes(commands)
    add_replicate(commands)
    add_check(commands)
    add_verify(commands)
    add_operations(commands)
    add_slot(commands)
    parser.set_defaults(commands=commands.choices)
    return parser


def _add_session(parser: argparse.ArgumentParser, *, of_file: bool) -> None:
    unless = "; by default as in the file" if of_file else ""
    parser.add_argument(
        "--protocol-version",
        type=int,
        choices=list(versions.PARSE),
        help=f"the option proto_version of the session (default: {_NEWEST}{unless})",
    )
    parser.add_argument(
        "--parallel", action="store_true", help=f"the session had the option streaming = parallel{unless}"
    )
    parser.add_argument(
        "--two-phase",
        action="store_true",
        help=f"the slot has two_phase: any protocol version has prepared transactions{unless}",
    )
    parser.add_argument(
        "--encoding", metavar="NAME", help=f"the session's client_encoding, such as UTF8 or LATIN1{unless}"
    )


def _add_decode(commands: Commands) -> None:
    parser = commands.add_parser(
        "decode",
        help="print each message of a capture file as a JSON object",
        description="Print each message of a capture as one JSON object per line. LSNs are text, times ISO 8601 in "
        'UTC. A column value is text, or {"base64": ...} for binary data; null is NULL, and {"unchanged": true} is a '
        "TOASTed value that PostgreSQL did not send.",
        epilog="FILE is JSON lines of the formats pgoutput-capture/1 or pgoutput-raw/1, or binary frames of uint64 "
        "LSN, uint32 length and message, big-endian; plain or compressed with gzip.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the capture")
    parser.add_argument("--summary", action="store_true", help="print a summary instead of the messages")
    _add_session(parser, of_file=True)
    parser.set_defaults(run=_decode)


def _decode(options: argparse.Namespace) -> int:
    with Capture.open(options.file) as capture:
        session = _session(options, capture.session)
        decoder = session.decoder()
        summary = Summary(session) if options.summary else None
        progress = ProgressBar(capture.size)
        try:
            for number, (lsn, data) in enumerate(_show_progress(capture, progress), start=1):
                try:
                    message = decoder.decode(data)
                except DecodeError as error:
                    raise CaptureError(
                        f"{options.file}: message {number} at LSN {lsn}: {error}", code=error.code
                    ) from None
                if summary is not None:
                    summary.add(lsn, data, message, decoder)
                else:
                    print(visible_json(message_json(lsn, message, decoder)))
        finally:
            progress.clear()
        if summary is not None:
            for line in summary.lines(str(options.file), TerminalStyle(sys.stdout)):
                print(line)
    return 0


def _session(options: argparse.Namespace, recorded: CaptureSession) -> CaptureSession:
    return CaptureSession(
        protocol_version=options.protocol_version or recorded.protocol_version,
        parallel=options.parallel or recorded.parallel,
        two_phase=options.two_phase or recorded.two_phase,
        encoding=_codec(options.encoding) if options.encoding else recorded.encoding,
        header=recorded.header,
    )


def _codec(name: str) -> str:
    try:
        return python_codec(name)
    except EncodingError as error:
        raise UsageError(error.description, code=error.code) from None


def _add_inspect(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        help="print one message byte by byte",
        description="Print one message byte by byte: offset, bytes, field, type and value of each field. An invalid "
        "message is printed up to its first error.",
    )
    parser.add_argument("hex", metavar="HEX", help="the message in hexadecimal, or - to read it from stdin")
    parser.add_argument(
        "--streaming", action="store_true", help="the message was sent between Stream Start and Stream Stop"
    )
    _add_session(parser, of_file=False)
    parser.add_argument(
        "--walsender",
        choices=["server", "client"],
        help="the message belongs to streaming replication (XLogData, keepalive, status update), sent by this side",
    )
    parser.add_argument(
        "--protocol",
        choices=["pgoutput", "pgwire", "basebackup", "copy_binary"],
        default="pgoutput",
        help="pgwire: a message of PostgreSQL's wire protocol, with tag and length; basebackup: a message of "
        "BASE_BACKUP; copy_binary: a file of COPY with the binary format (default: pgoutput)",
    )
    parser.add_argument(
        "--sender", choices=["server", "client"], default="server", help="the side that sent the pgwire message"
    )
    parser.add_argument(
        "--expected",
        type=_expected,
        metavar="WHAT",
        help="the connection's state when the pgwire message arrived: messages, startup, encryption, password, gss, "
        "sasl_initial or sasl (default: messages)",
    )
    parser.add_argument(
        "--replication",
        action="store_true",
        help="the connection replicates: also print the messages inside CopyData",
    )
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="(default: auto)")
    parser.set_defaults(run=_print_inspection)


def _expected(text: str) -> str:
    from logicalrep_protocol.pgwire.layouts import PGWIRE

    states = PGWIRE.values["expected"]
    if text not in states:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(states)}")
    return text


def _print_inspection(options: argparse.Namespace) -> int:
    text = sys.stdin.read(LONGEST_TEXT + 1) if options.hex == "-" else options.hex
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"the message is longer than the limit of {LONGEST_MESSAGE} bytes")
    from logicalrep_protocol.basebackup.layouts import BASEBACKUP

    style = TerminalStyle(sys.stdout, options.color)
    protocol, version, sender = LOGICALREP, options.protocol_version or _NEWEST, "server"
    if options.walsender:
        protocol, version, sender = WALSENDER, 1, options.walsender
    elif options.protocol == "pgwire":
        from logicalrep_protocol.pgwire.layouts import PGWIRE

        protocol, version, sender = PGWIRE, max(PGWIRE.versions), options.sender
    elif options.protocol == "basebackup":
        protocol, version = BASEBACKUP, 1
    elif options.protocol == "copy_binary":
        protocol, version = COPY_BINARY, 1
    facts = {name: getattr(options, name) for name in ("streaming", "parallel", "two_phase")}
    facts["expected"] = options.expected or "messages"
    data = _bytes_of(text)
    encoding = _codec(options.encoding or "UTF8")
    for line in inspect(protocol, version, data, facts=facts, encoding=encoding, sender=sender, style=style):
        print(line)
    protocols = {layout.name: layout for layout in (WALSENDER, LOGICALREP, BASEBACKUP)}
    while (
        options.replication
        and (carried_message := carried(protocol, version, data, protocols, facts=facts, sender=sender)) is not None
    ):
        protocol, data = carried_message
        version = options.protocol_version or _NEWEST if protocol is LOGICALREP else 1
        print()
        for line in inspect(protocol, version, data, facts=facts, encoding=encoding, sender=sender, style=style):
            print(line)
    return 0


def _add_changes(commands: Commands) -> None:
    parser = commands.add_parser(
        "changes",
        help="print the committed changes of a capture file",
        description="Print the committed changes of a capture in the order of their commits: one JSON object per "
        "line with op, schema, table, before, after, key, unchanged, lsn, commit_lsn, commit_timestamp, xid, ordinal, "
        "origin and gid. Transactions that were rolled back or do not end in the file are omitted.",
        epilog="FILE is a capture, as for decode.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the capture")
    parser.add_argument(
        "--table",
        metavar="NAME",
        type=_table,
        help="only changes of this table: schema.table or table, as in SQL",
    )
    parser.add_argument("--format", choices=["json", "table"], default="json", help="table: for people (default: json)")
    _add_session(parser, of_file=True)
    parser.set_defaults(run=_print_changes)


def _table(text: str) -> str:
    try:
        name_parts(text)
    except TableNameError as error:
        raise argparse.ArgumentTypeError(error.description) from None
    return text


def _print_changes(options: argparse.Namespace) -> int:
    with Capture.open(options.file) as capture:
        decoder = _session(options, capture.session).decoder()
        progress = ProgressBar(capture.size)
        rows = change_rows(_show_progress(capture, progress), decoder, table=options.table)
        try:
            if options.format == "table":
                for line in table_lines(rows, TerminalStyle(sys.stdout)):
                    print(line)
            else:
                for row in rows:
                    print(visible_json(row))
        except (DecodeError, TransactionError) as error:
            raise CaptureError(f"{options.file}: {error.description}", code=error.code) from None
        finally:
            progress.clear()
    return 0


def _show_progress(capture: Capture, progress: ProgressBar) -> Iterator[tuple[Lsn, bytes]]:
    for item in capture:
        yield item
        progress.show(capture.position)


def _bytes_of(text: str) -> bytes:
    # Tools print 0x4900, \x4900, 49:00 or 49 00.
    digits = "".join(text.split()).replace(":", "")
    if digits[:2].lower() in ("0x", "\\x"):
        digits = digits[2:]
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise UsageError(f"the message is not hexadecimal text: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
