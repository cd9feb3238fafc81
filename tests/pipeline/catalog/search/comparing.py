"""The versions of a copy, and of its companions, beside what the server has, without any code of the project."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.histories.subjects_masks import SECRET
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.catalog.search.stored import Row, Stored, Version

MASK_KEY = "a key of sixteen characters or more"


@dataclass(frozen=True)
class Expected:
    """What the server has of a table, and how it is kept."""

    columns: Sequence[str]
    rows: Counter[Any]
    settings: TableSettings
    transactions: Sequence[set[int]] = ()
    """The numbers in `id` of the rows that one transaction inserts each: a version has all of them, or none."""


def difference(stored: Stored, folder: Path, expected: Expected) -> str:
    """Return how a copy differs from what is expected, now or in an earlier version; an empty text if it does not."""
    versions = stored.versions(folder)
    if not versions:
        return "the table is missing"
    settings, last = expected.settings, versions[-1]
    # Another table may have had this name.
    versions = [version for version in versions if version.described["oid"] == last.described["oid"]]
    mistake = (
        _difference(_current_rows(last), last.columns, expected)
        or _halves(versions, expected.transactions)
        or in_clear(row for version in versions for row in version.rows)
        or _of_feed(versions)
    )
    if not mistake and settings.history:
        (*_, kept) = stored.versions(folder.with_name(f"{folder.name}~history"))
        current = [row for row in kept.rows if row["_is_current"]]
        wrong = _difference(current, kept.columns, expected) or in_clear(kept.rows) or _of_history(versions, kept.rows)
        if wrong:
            mistake = f"its history: {wrong}"
    if not mistake and settings.append:
        (*_, kept) = stored.versions(folder.with_name(f"{folder.name}~changes"))
        if wrong := _of_changes(versions, kept.rows) or in_clear(kept.rows):
            mistake = f"its changes: {wrong}"
    return mistake


def masked(columns: Sequence[str], rows: Counter[Any], settings: TableSettings) -> tuple[list[str], Counter[Any]]:
    """Return the columns and the rows as a table has them whose columns are masked or left out."""

    def value(name: str, text: Any) -> Any:
        mask = settings.masked.get(name)
        if mask == "hashed" and text is not None:
            return hmac.digest(MASK_KEY.encode(), text.encode(), "sha256").hex()
        return None if mask == "nulled" else text

    stay = [at for at, name in enumerate(columns) if name not in settings.left_out]
    masked_rows: Counter[Any] = Counter()
    for row, count in rows.items():
        masked_rows[tuple(value(columns[at], row[at]) for at in stay)] += count
    return [columns[at] for at in stay], masked_rows


def _difference(rows: Iterable[Row], columns: Sequence[str], expected: Expected) -> str:
    # Columns of the companion's own, and the texts of values that a type cannot hold, which no history has.
    names = [name for name in columns if not name.startswith("_") and not name.endswith("_text")]
    if names != [*expected.columns]:
        return f"its columns are {names}, and not {[*expected.columns]}"
    stored = Counter(tuple(row.get(name) for name in names) for row in rows)
    missing, surplus = expected.rows - stored, stored - expected.rows
    if not missing and not surplus:
        return ""
    return f"{_shown(missing)} are missing, {_shown(surplus)} too many"


def _shown(rows: Iterable[Any]) -> str:
    return str([*rows][:3])[:400]


def _current_rows(version: Version) -> list[Row]:
    return [row for row in version.rows if not row.get("_is_deleted")]


def in_clear(rows: Iterable[Row]) -> str:
    """Return which row has a value that is not to be there; an empty text if none has."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and SECRET in value:
                return f"{name} has {value} in clear"
    return ""


def _halves(versions: Sequence[Version], transactions: Sequence[set[int]]) -> str:
    """Return which transaction's rows first appear in more than one version; an empty text if there is none."""
    first: dict[Any, int] = {}
    for number, version in enumerate(versions):
        for row in version.rows:
            first.setdefault(row.get("id"), number)
    for ids in transactions:
        indexes = {first[id_] for id_ in ids if id_ in first}
        if len(indexes) > 1:
            return f"the rows {ids} of one transaction come with the versions {sorted(indexes)}"
    return ""


def _of_history(versions: Sequence[Version], kept: Sequence[Row]) -> str:
    """Return for which version of a table its history does not have the same rows, which `id` tells apart."""
    # Of several at one position, the last has what was put in there, as an attached partition is.
    for version in {version.lsn: version for version in versions}.values():
        # A load is before the first change that comes after it.
        at = version.lsn + 1, -1
        stored = Counter(row["id"] for row in _current_rows(version))
        then = Counter(row["id"] for row in kept if _begin(row) <= at and (row["_is_current"] or _end(row) > at))
        if then != stored:
            return f"at {version.lsn} it has {_shown(then - stored)} too many, and lacks {_shown(stored - then)}"
    return ""


def _begin(row: Row) -> tuple[int, int]:
    return row["_valid_from_lsn"], row["_valid_from_ordinal"]


def _end(row: Row) -> tuple[int, int]:
    return row["_valid_to_lsn"], row["_valid_to_ordinal"]


def _of_changes(versions: Sequence[Version], changes: Sequence[Row]) -> str:
    """Return what is wrong with changes: each is there once, and they lead from one version to the next.

    Of versions in whose place a load or another description came, they do not say it.
    """
    changes = sorted(changes, key=lambda row: (row["_commit_version"], row["_ordinal"], _is_new(row)))
    if any((a["_commit_version"], a["_ordinal"], _is_new(a)) == (b["_commit_version"], b["_ordinal"], _is_new(b))
           for a, b in pairwise(changes)):  # fmt: skip
        return "one is there twice"
    columns = versions[-1].described["columns"]
    # Changes have lost the values of a column that went, also if it came again.
    first = max(
        (number for number, version in enumerate(versions, 1) if version.described["columns"] != columns), default=0
    )
    for start, after in pairwise(versions[first:]):
        described = after.described
        # Rows of an attached partition are in no change.
        if after.is_described or not described["key"] or [described["oid"]] != [oid for oid, _ in described["files"]]:
            continue
        names = [name for name in after.columns if not name.startswith("_")]
        rows = {tuple(row.get(name) for name in described["key"]): row for row in _current_rows(start)}
        for old, new in _pairs(row for row in changes if start.lsn < row["_commit_version"] <= after.lsn):
            _replay(rows, old, new, described["key"])
        expected, stored = (
            Counter(tuple(row.get(name) for name in names) for row in side)
            for side in (rows.values(), _current_rows(after))
        )
        if expected != stored:
            return f"up to {after.lsn} they give {_shown(expected - stored)}, and the version has {_shown(stored - expected)}"
    return ""


def _of_feed(versions: Sequence[Version]) -> str:
    """Return for which version the change data feed differs from the rows of both versions.

    A commit with another description may give all rows a new form.
    """
    for start, after in pairwise(versions):
        if after.feed is None or after.is_described:
            continue
        feed = _counted(after.feed, (*after.columns, "_change_type"))
        if (expected := _changes_between(start, after)) != feed:
            return (
                f"the feed of {after.lsn} lacks {_shown(expected - feed)}, and has {_shown(feed - expected)} too many"
            )
        if mistake := in_clear(after.feed):
            return f"the feed of {after.lsn}: {mistake}"
    return ""


def _changes_between(start: Version, after: Version) -> Counter[Any]:
    names, key = after.columns, after.described["key"] or ()
    old_rows, new_rows = (_counted(version.rows, names) for version in (start, after))
    removed, added = old_rows - new_rows, new_rows - old_rows
    numbers = [names.index(name) for name in key]
    keys = [{tuple(row[number] for number in numbers) for row in rows} for rows in (removed, added)]
    updated = keys[0] & keys[1] if key else set()
    changes: Counter[Any] = Counter()
    for rows, alone, paired in ((removed, "delete", "update_preimage"), (added, "insert", "update_postimage")):
        for row, count in rows.items():
            changes[(*row, paired if tuple(row[number] for number in numbers) in updated else alone)] += count
    return changes


def _counted(rows: Iterable[Row], names: Sequence[str]) -> Counter[Any]:
    return Counter(tuple(row.get(name) for name in names) for row in rows)


def _is_new(change: Row) -> bool:
    return change["_change_type"] != "update_preimage"


def _pairs(changes: Iterable[Row]) -> Iterable[tuple[Row | None, Row]]:
    """Yield each change with the old row that is before it, if one was sent."""
    old = None
    for change in changes:
        if _is_new(change):
            yield old, change
            old = None
        else:
            old = change


def _replay(rows: dict[Any, Row], old: Row | None, change: Row, key: Sequence[str]) -> None:
    kind = change["_change_type"]
    at = tuple((change if old is None else old)[name] for name in key)
    if kind == "truncate":
        rows.clear()
        return
    old_row: Mapping[str, Any] = {} if kind == "insert" else rows.pop(at, {})
    if kind != "delete":
        unchanged = change["_unchanged"] or ()
        row = {name: old_row.get(name) if name in unchanged else value for name, value in change.items()}
        rows[tuple(row[name] for name in key)] = row


__all__ = ["MASK_KEY", "Expected", "difference", "in_clear", "masked"]
