"""The command `logicalrep slot`, which creates, shows, advances and drops the slot of a stream."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from logicalrep.cli.server_options import Commands, add_server, server_of
from logicalrep.cli.terminal import say
from logicalrep_runtime.scalars import Lsn
from logicalrep_runtime.visible import visible_json

if TYPE_CHECKING:
    from logicalrep.postgres.server import Connection
    from logicalrep.postgres.slots.slot import Slot


def add_slot(commands: Commands) -> None:
    slot = commands.add_parser(
        "slot",
        help="create, show, advance or drop the slot of a stream",
        description="Create, show, advance or drop the replication slot of a Spark query or of logicalrep.stream. For "
        "the slot of logicalrep replicate, use logicalrep status and logicalrep drop.",
    )
    actions = slot.add_subparsers(required=True, metavar="ACTION")
    create = _add(actions, "create", _create, "create a slot, which retains all later commits")
    create.add_argument(
        "--two-phase", action="store_true", help="send prepared transactions when they are prepared (PostgreSQL 15)"
    )
    create.add_argument(
        "--failover", action="store_true", help="synchronize the slot to standbys, for a failover (PostgreSQL 17)"
    )
    status = _add(actions, "status", _print_status, "show the slot's position and the WAL that it retains")
    status.add_argument("--json", action="store_true", help="print a JSON object")
    advance = _add(actions, "advance", _advance, "skip commits: acknowledge them without reading them")
    advance.add_argument(
        "--upto", metavar="LSN", type=Lsn, help="the position, such as 0/1A2B3C4 (default: the end of the WAL)"
    )
    _add(actions, "drop", _drop, "drop a slot that is not in use")


def _add(actions: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_server(parser)
    parser.add_argument("slot", metavar="SLOT", help="the slot's name")
    parser.set_defaults(run=run)
    return parser


def _create(options: argparse.Namespace) -> int:
    settings = server_of(options)
    from logicalrep.postgres.preflight.checks import check
    from logicalrep.postgres.preflight.findings import Needs
    from logicalrep.postgres.slots.creating import create_slot
    from logicalrep.postgres.slots.errors import SlotError
    from logicalrep.postgres.slots.slot import find_slot

    slot_options = {"two_phase": options.two_phase, "failover": options.failover}
    with settings.connect() as connection:
        if find_slot(connection, options.slot) is not None:
            raise SlotError(f"replication slot {options.slot!r} already exists", code="SLOT_EXISTS")
        needs = Needs(slot=options.slot, publications=(), mode="auto", create_slot=True, **slot_options)
        for warning in check(connection, needs):
            say(f"warning: {warning}", sys.stderr)
        slot = create_slot(connection, options.slot, **slot_options)
    say(f"created the replication slot {slot.name} at {slot.confirmed_flush_lsn}")
    return 0


def _print_status(options: argparse.Namespace) -> int:
    settings = server_of(options)
    from logicalrep.postgres.server import query_oldest_writer

    with settings.connect() as connection:
        slot = _slot(connection, options.slot)
        oldest, began = query_oldest_writer(connection) or (None, None)
    figures: dict[str, object] = {
        "slot": slot.name,
        "plugin": slot.plugin,
        "database": slot.database,
        "active_pid": slot.active_pid,
        "confirmed_flush_lsn": slot.confirmed_flush_lsn and str(slot.confirmed_flush_lsn),
        "restart_lsn": slot.restart_lsn and str(slot.restart_lsn),
        "lag_bytes": None if slot.confirmed_flush_lsn is None else max(slot.head - slot.confirmed_flush_lsn, 0),
        "retained_bytes": slot.retained_bytes,
        "safe_wal_size": slot.safe_wal_size,
        "wal_status": slot.wal_status,
        "lost": slot.lost,
        "two_phase": slot.two_phase,
        "failover": slot.failover,
        "oldest_transaction": oldest,
        "oldest_transaction_since": began and began.isoformat(),
    }
    if options.json:
        print(visible_json(figures, indent=2))
        return 0
    for name, value in figures.items():
        say(f"{name:<24}  {_value_text(name, value)}")
    if slot.standbys_warning:
        say(f"warning: {slot.standbys_warning}", sys.stderr)
    return 0


def _value_text(name: str, value: object) -> str:
    if name == "safe_wal_size" and value is None:
        return "without bound"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name != "active_pid":
        return f"{value / 1e6:,.1f} MB"
    return "-" if value is None else str(value)


def _advance(options: argparse.Namespace) -> int:
    settings = server_of(options)
    from logicalrep.postgres.preflight.checks import check
    from logicalrep.postgres.preflight.findings import Needs
    from logicalrep.postgres.slots.advancing import advance_slot
    from logicalrep.postgres.slots.slot import query_slot
    from logicalrep.postgres.slots.usage import check_free

    with settings.connect() as connection:
        check_free(connection, _slot(connection, options.slot))
        check(connection, Needs(slot=options.slot, publications=(), mode="auto"))
        slot = query_slot(connection, options.slot)
        advance_slot(connection, slot, slot.sent_up_to if options.upto is None else options.upto)
        advanced_slot = query_slot(connection, options.slot)
    was = "is at" if advanced_slot.confirmed.lsn == slot.confirmed.lsn else f"was at {slot.confirmed.lsn}, is now at"
    say(f"the replication slot {slot.name} {was} {advanced_slot.confirmed.lsn}")
    return 0


def _drop(options: argparse.Namespace) -> int:
    settings = server_of(options)
    from logicalrep.postgres.preflight.checks import check_role
    from logicalrep.postgres.slots.advancing import drop_slot
    from logicalrep.postgres.slots.usage import check_free

    with settings.connect() as connection:
        check_role(connection)
        check_free(connection, _slot(connection, options.slot))
        drop_slot(connection, options.slot)
    say(f"dropped the replication slot {options.slot}")
    return 0


def _slot(connection: Connection, name: str) -> Slot:
    from logicalrep.postgres.slots.errors import SlotError
    from logicalrep.postgres.slots.slot import find_slot

    slot = find_slot(connection, name)
    if slot is None:
        raise SlotError(f"replication slot {name!r} does not exist", code="SLOT_MISSING")
    if slot.plugin is None:
        raise SlotError(f"replication slot {name!r} is a physical slot, for a standby", code="SLOT_UNUSABLE")
    return slot
