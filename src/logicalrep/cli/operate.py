"""The commands `status`, `pause`, `resume`, `resync`, `skip` and `drop` for a replicated destination."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from logicalrep.cli.destinations import add_destination_command, refuse_several, with_database_label
from logicalrep.cli.replicate_settings import add_options, say_start
from logicalrep.cli.server_options import (
    ArgumentsError,
    Commands,
    catalog_of,
    catalog_settings_of,
    server_and_storage,
)
from logicalrep.cli.terminal import say
from logicalrep_runtime.visible import visible_json


def add_operations(commands: Commands) -> None:
    status = add_destination_command(
        commands,
        "status",
        _print_status,
        "show the lag and the tables of a destination",
        "Show the lag, the slot, and each table's state, version and errors.",
    )
    status.add_argument("--json", action="store_true", help="print a JSON object")
    add_destination_command(
        commands,
        "pause",
        _pause,
        "stop applying changes until resume",
        "Stop applying changes until resume, even after a restart. Meanwhile the slot retains all WAL.",
    )
    add_destination_command(commands, "resume", _resume, "end a pause", "Resume a paused destination.")
    resync = add_destination_command(
        commands,
        "resync",
        _resync,
        "reload replicated tables",
        "Reload tables, or a part of a table. Readers see the old rows until the new rows replace them in one commit. "
        "A running replicate starts the reload at once; if none is running, this command reloads.",
        run_several=refuse_several,
        has_settings=True,
        has_names=True,
    )
    resync.add_argument(
        "table",
        metavar="TABLE",
        nargs="?",
        help="the table: schema.table or table, as in SQL; or a partition, to reload only its rows",
    )
    resync.add_argument(
        "--where",
        metavar="CONDITION",
        help="reload only the rows that satisfy this condition: comparisons of key columns with literals (=, <>, <, "
        "<=, >, >=, BETWEEN, IN), combined with AND, OR and parentheses, such as 'id < 100'",
    )
    add_options(resync, ["engine"])
    resync.add_argument("--all", action="store_true", help="reload all tables, with a new slot if the slot is lost")
    resync.add_argument(
        "--new-server",
        action="store_true",
        help="with --all: reload from a server that replaced the previous server, for example after an upgrade",
    )
    skip = add_destination_command(
        commands,
        "skip",
        _skip,
        "skip a commit at which a table is stopped",
        "Resume a table that is stopped at a commit without the commit's changes. The table lacks these changes until "
        "it is reloaded, as status shows. A running replicate skips the commit at once, otherwise the next run does.",
        run_several=refuse_several,
    )
    skip.add_argument("table", metavar="TABLE", help="the table: schema.table or table, as in SQL")
    skip.add_argument("lsn", metavar="LSN", help="the commit's LSN, as status shows it")
    drop = add_destination_command(
        commands,
        "drop",
        _drop,
        "end the replication to a destination",
        "Drop the slot, and the publication that replicate created. The stored tables remain.",
        has_names=True,
    )
    drop.add_argument("--delete-tables", action="store_true", help="also delete the files of the stored tables")
    drop.add_argument("--yes", action="store_true", help="delete tables without asking")


def _print_status(options: argparse.Namespace) -> int:
    connection, storage = server_and_storage(options)
    from logicalrep.pipeline.operate.status import query_status
    from logicalrep.postgres.slots.standbys import standby_texts

    status = query_status(connection, storage)
    if options.json:
        print(
            visible_json(
                with_database_label(status.to_json(), options.label), indent=2 if options.label is None else None
            )
        )
        return 0
    if not status.has_begun:
        say("replication has not started: logicalrep replicate creates the publication and the slot, and loads tables")
        return 0
    say(f"{'running' if status.is_running else 'not running'}, at {status.lsn}, slot {status.slot}")
    if status.paused_since is not None:
        say(f"paused since {status.paused_since}, until logicalrep resume")
    if status.lost is not None:
        say(f"the slot is lost: {status.lost}; run logicalrep resync --all")
    else:
        seconds = "" if status.lag_seconds is None else f" and at most {status.lag_seconds:.1f} s"
        retained = (status.retained_bytes or 0) / 1e6
        say(f"{(status.lag_bytes or 0) / 1e6:.1f} MB{seconds} behind; {retained:.1f} MB of WAL retained")
        if status.safe_wal_size is not None:
            room = f"{status.safe_wal_size / 1e6:.1f} MB of WAL until max_slot_wal_keep_size"
            passed = "max_slot_wal_keep_size is passed: the server removes the slot's WAL at a checkpoint"
            say(room if status.safe_wal_size else passed)
    if status.standbys is not None:
        for text in standby_texts(status.standbys).values():
            say(text)
    if status.oldest_transaction is not None:
        since = status.oldest_transaction_since
        say(f"the oldest open transaction is {status.oldest_transaction}" + (f", since {since}" if since else ""))
    if status.load_snapshot is not None:
        say(f"a load has held its snapshot since {status.load_snapshot}")
    width = max(map(len, status.tables), default=0)
    states = {
        name: table["state"] if table["phase"] == table["state"] else f"{table['state']}: {table['phase']}"
        for name, table in status.tables.items()
    }
    state_width = max([9, *map(len, states.values())])
    for name, table in status.tables.items():
        line = f"{name:<{width}}  {states[name]:<{state_width}}"
        if table["version"] is not None:
            line += f"  {table['lsn']:>12}  version {table['version']}, {table['rows']} rows"
        say(line)
        if table["progress"]:
            say(f"{'':<{width}}  {_progress_text(table['progress'])}")
        if table["error"]:
            say(f"{'':<{width}}  {table['error']}")
        if table["refused"]:
            say(f"{'':<{width}}  stopped at the commit {table['refused']}")
        if unfit := table.get("unrepresentable"):
            counts = ", ".join(f"{count} of {column}" for column, count in unfit.items())
            say(f"{'':<{width}}  values that their column's type cannot hold: {counts}")
        for commit in table.get("skipped", ()):
            skipped = f"skipped the commit {commit['lsn']} at {commit['at']}, {commit['changes']} changes"
            say(f"{'':<{width}}  {skipped}: {', '.join(commit['folders'])}")
    return 0


def _progress_text(progress: Mapping[str, Any]) -> str:
    rows, estimate = progress["rows"], progress["estimate"]
    of = f" of about {estimate} rows, {min(rows / estimate, 1):.0%}" if estimate else " rows"
    return f"copied {rows}{of}; the snapshot has been held since {progress['snapshot_since']}"


def _pause(options: argparse.Namespace) -> int:
    _, storage = server_and_storage(options)
    from logicalrep.pipeline.operate.status import read_identity
    from logicalrep.pipeline.state.requests import pause

    read_identity(storage)
    print("paused" if pause(storage) else "already paused")
    return 0


def _resume(options: argparse.Namespace) -> int:
    _, storage = server_and_storage(options)
    from logicalrep.pipeline.operate.status import read_identity
    from logicalrep.pipeline.state.requests import resume

    read_identity(storage)
    print("resumed" if resume(storage) else "not paused")
    return 0


def _resync(options: argparse.Namespace) -> int:
    connection, storage = server_and_storage(options)
    catalog, catalog_options = catalog_of(options)
    from logicalrep.observe.terminal import show_progress
    from logicalrep.pipeline.config.config import Config
    from logicalrep.pipeline.config.reading import read_config
    from logicalrep.pipeline.config.settings import ReplicateSettings, shared_options
    from logicalrep.pipeline.engines.choice import choose_engine
    from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
    from logicalrep.pipeline.operate.resync import (
        query_known_tables,
        read_known_settings,
        refuse_unknown_masks,
        resync,
        resync_part,
    )
    from logicalrep.pipeline.operate.status import read_identity
    from logicalrep.pipeline.run.run import replicate_with
    from logicalrep.pipeline.schema.table_settings import TableSettings
    from logicalrep.pipeline.state.destination_names import confirm_names
    from logicalrep.pipeline.state.state import State
    from logicalrep.postgres.slots.errors import SlotError
    from logicalrep.postgres.table_rows.conditions import parse_condition
    from logicalrep.transactions.table_names import table_name, table_names

    if (options.table is None) != options.all:
        raise ArgumentsError("name a table, or --all")
    if options.new_server and not options.all:
        raise ArgumentsError("--new-server reloads all tables: add --all")
    if options.where is not None and options.all:
        raise ArgumentsError("--where needs one table: name it instead of --all")
    condition = None if options.where is None else parse_condition(options.where)
    names = table_names(options.table) if options.table else []
    if options.where is not None and len(names) > 1:
        raise ArgumentsError("--where needs one table: name only one")
    read_identity(storage)
    stored_tables = [table_name(text) for text in State.read(storage).tables]
    is_part = options.where is not None or (len(names) == 1 and names[0] not in stored_tables)
    own_names = {"slot": options.slot, "publication": options.publication}

    def refuse() -> None:
        # The checks of the reload itself, before anything changes.
        confirm_names(storage, read_identity(storage), **own_names)
        if options.config is None:
            refuse_unknown_masks(storage, CatalogSettings.of(catalog, catalog_options))

    if is_part:
        is_requested = resync_part(connection, storage, names[0], condition, refuse=refuse)
    else:
        is_requested = resync(connection, storage, names, new_server=options.new_server, refuse=refuse, **own_names)
    if is_requested:
        what = "a part of it" if is_part else "it" if names else "all tables"
        say(f"requested the reload of {what} from the running replicate", sys.stderr)
        return 0
    # A table whose settings differ from the stored settings would be reloaded; masks are not stored.
    stored = read_known_settings(storage)
    shared = shared_options(stored.defaults)
    if options.config is None:
        config = Config.of(stored.tables)
    else:
        config = read_config(options.config, TableSettings(**shared)).optional
    settings = ReplicateSettings(
        connection,
        storage.uri,
        storage_options=storage.storage_options,
        catalog=catalog,
        catalog_options=catalog_options,
        once=True,
        engine=options.engine,
        tables=map(str, query_known_tables(connection, storage)),
        config=config,
        **own_names,
        **shared,
    )
    say_start(choose_engine(settings.engine))
    with show_progress() as observer:
        try:
            replicate_with(settings, observer)
        except SlotError as error:
            if not options.all or error.code not in ("PUBLICATION_GONE", "SLOT_LOST", "SLOT_UNDECODABLE"):
                raise
            # The slot cannot pass WAL that is missing or cannot be decoded, or that precedes its publication.
            resync(connection, storage, (), new_slot=True, **own_names)
            replicate_with(settings, observer)
    return 0


def _skip(options: argparse.Namespace) -> int:
    connection, storage = server_and_storage(options)
    from logicalrep.pipeline.operate.skip import skip
    from logicalrep.transactions.table_names import table_name
    from logicalrep_runtime.scalars import Lsn

    try:
        lsn = Lsn(options.lsn)
    except ValueError as error:
        raise ArgumentsError(str(error)) from None
    table = table_name(options.table)
    if skip(connection, storage, table, lsn):
        print(f"requested the skip of commit {lsn} from the running replicate", file=sys.stderr)
    else:
        print(f"replicate is not running: the next run skips commit {lsn}", file=sys.stderr)
    return 0


def _drop(options: argparse.Namespace) -> int:
    connection, storage = server_and_storage(options)
    catalog = catalog_settings_of(options)
    from logicalrep.pipeline.operate.dropping import drop

    if options.delete_tables and not options.yes:
        if not sys.stdin.isatty():
            raise ArgumentsError("--delete-tables asks for confirmation: without a terminal, add --yes")
        if input(f"Delete the tables at {options.to}? [y/N] ").strip().lower() not in ("y", "yes"):
            return 1
    names = {"slot": options.slot, "publication": options.publication}
    for sentence in drop(connection, storage, deletes_tables=options.delete_tables, catalog=catalog, **names):
        say(sentence)
    return 0
