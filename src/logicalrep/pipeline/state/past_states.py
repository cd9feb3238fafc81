"""Earlier states of a destination; a state is copied when the next one replaces it, so that a kill loses none."""

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


def latest_commit_time(last_state: State, tables: Mapping[str, TableState], committed: str | None) -> str:
    """Return the time before which all rows had committed, ISO 8601 in UTC: the last commit's, or now if rows may have
    other origins; never before the last state's."""
    times = [datetime.fromisoformat(text) for text in (last_state.until, committed) if text is not None]
    if last_state.until is None or any(
        _may_have_others(last_state.tables.get(name), table) for name, table in tables.items()
    ):
        times.append(datetime.now(UTC))
    return max(times).isoformat()


def _may_have_others(last_state: TableState | None, state: TableState) -> bool:
    """Return whether a table may have got rows other than by its last commit."""
    if last_state is None or last_state.load != state.load:
        return state.version is not None
    is_same = (last_state.version, last_state.companions) == (state.version, state.companions)
    return not is_same and (
        last_state.commit_timestamp == state.commit_timestamp or Standing.LOADING in (last_state.state, state.state)
    )


def archive_state(storage: Storage, states: States, next_state: State, keep_hours: float) -> None:
    """Copy the last state if the next one is in another span, and delete expired ones except the last from before
    `keep_hours`. Raises StateError if another process has written a state."""
    last = states.last
    if last.until is None or next_state.until is None:
        return
    at, end = (
        datetime.fromisoformat(text).timestamp() // storage.limits.past_state_seconds
        for text in (last.until, next_state.until)
    )
    if at == end:
        return
    states.check()
    storage.copy(states.last_path, _path(datetime.fromisoformat(last.until)))
    oldest = datetime.now(UTC) - timedelta(hours=keep_hours)
    for old in [at for at in _times(storage) if at <= oldest][:-1]:
        storage.delete(_path(old))


def read_state(storage: Storage, at: datetime) -> State | None:
    """Return the last stored state without commits after a time; None if there is none. Raises as `State.read` does."""
    state = State.read(storage)
    if state.until is not None and datetime.fromisoformat(state.until) <= at:
        return state
    while times := [time for time in _times(storage) if time <= at]:
        name = _path(times[-1]).removeprefix(f"{FOLDER}/")
        past_state = read_file(storage, name, State.of)
        if past_state is not None:
            return past_state
        # The state expired and was deleted meanwhile.
    return None


def earliest_time(storage: Storage) -> datetime | None:
    """Return the earliest time for which a destination has the versions of its tables; None if there is none."""
    last = State.read(storage).until
    return min([*_times(storage), *([] if last is None else [datetime.fromisoformat(last)])], default=None)


def _path(at: datetime) -> str:
    return f"{FOLDER}/{_PAST}/{at.astimezone(UTC).strftime(_NAME)}.json"


def _times(storage: Storage) -> list[datetime]:
    names = (path.rpartition("/")[2] for path in storage.list(f"{FOLDER}/{_PAST}"))
    return sorted(
        datetime.strptime(name.removesuffix(".json"), _NAME).replace(tzinfo=UTC)
        for name in names
        if re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z\.json", name)
    )
