"""The states that a destination had earlier: which versions of all tables belong together, as of a time.

A state is copied when a later one replaces it, so that nothing is written twice, and that a kill loses none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from logicalrep.observe.figures import Standing
from logicalrep.pipeline.state.state import FOLDER, State, States, read_file
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import Storage

_PAST = "past"
_NAME = "%Y%m%dT%H%M%S.%fZ"


def until(before: State, tables: Mapping[str, TableState], committed: str | None) -> str:
    """Return the time by which all that is in the tables had committed, ISO 8601 in UTC; never before that of a state.

    It is that of the last commit, or now where rows may have come otherwise, as from a load.

    Args:
        before: the state before.
        tables: the tables now.
        committed: the time of the last commit in them.
    """
    times = [datetime.fromisoformat(text) for text in (before.until, committed) if text is not None]
    if before.until is None or any(_may_have_others(before.tables.get(name), table) for name, table in tables.items()):
        times.append(datetime.now(UTC))
    return max(times).isoformat()


def _may_have_others(before: TableState | None, now: TableState) -> bool:
    """Return whether rows may have come to a table in another way than by its last commit."""
    if before is None or before.load != now.load:
        return now.version is not None
    is_same = (before.version, before.companions) == (now.version, now.companions)
    return not is_same and (
        before.commit_timestamp == now.commit_timestamp or Standing.LOADING in (before.state, now.state)
    )


def keep_past(storage: Storage, states: States, later: State, keep_hours: float) -> None:
    """Keep the last state if one is to be written that is of another span of time; delete those that are too old.

    Of those from before the hours for which versions are kept, the last one stays: it is how the tables were then.

    Raises:
        StateError: another process has written a state meanwhile.
        StorageError: the destination cannot be read or written.
    """
    last = states.last
    if last.until is None or later.until is None:
        return
    at, end = (
        datetime.fromisoformat(text).timestamp() // storage.limits.past_state_seconds
        for text in (last.until, later.until)
    )
    if at == end:
        return
    states.check()
    storage.copy(states.last_path, _path(datetime.fromisoformat(last.until)))
    oldest = datetime.now(UTC) - timedelta(hours=keep_hours)
    for old in [at for at in _times(storage) if at <= oldest][:-1]:
        storage.delete(_path(old))


def read_state(storage: Storage, at: datetime) -> State | None:
    """Return the last state that is kept with nothing that committed after a time; None if there is none.

    Raises StateError and MalformedFileError as `State.read` does.
    """
    state = State.read(storage)
    if state.until is not None and datetime.fromisoformat(state.until) <= at:
        return state
    while there := [each for each in _times(storage) if each <= at]:
        name = _path(there[-1]).removeprefix(f"{FOLDER}/")
        found = read_file(storage, name, State.of)
        if found is not None:
            return found
        # It was removed meanwhile, as it is too old.
    return None


def first_time(storage: Storage) -> datetime | None:
    """Return the earliest time of which a destination tells the versions of its tables; None if there is none."""
    last = State.read(storage).until
    return min([*_times(storage), *([] if last is None else [datetime.fromisoformat(last)])], default=None)


def _path(at: datetime) -> str:
    return f"{FOLDER}/{_PAST}/{at.astimezone(UTC).strftime(_NAME)}.json"


def _times(storage: Storage) -> list[datetime]:
    """Return the times of the states that are kept, in order."""
    names = (path.rpartition("/")[2] for path in storage.list(f"{FOLDER}/{_PAST}"))
    return sorted(
        datetime.strptime(name.removesuffix(".json"), _NAME).replace(tzinfo=UTC)
        for name in names
        if re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z\.json", name)
    )
