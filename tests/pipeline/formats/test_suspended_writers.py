"""A process that sleeps before or within a commit, and wakes when the log no longer has an entry of its version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable, WriterError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.reading import read_table
from tests.pipeline.storage.stores import Store
from tests.pipeline.stored import APP

pytestmark = pytest.mark.slow

FORMATS: list[FormatName] = ["delta", "iceberg"]
EARLY_UPKEEP = Limits(metadata_versions=2, metadata_seconds=0, upkeep_versions=3, log_checkpoint_commits=3)
"""Upkeep deletes the names of old versions early."""


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> FormatName:
    """Each format."""
    return request.param  # type: ignore[no-any-return]


def new_table(storage: Storage, format: FormatName) -> StoredTable:
    content = NewTable(
        table(("id",), TableSettings(format=format)), [], Position(APP, Lsn(999)), load="x", keep_hours=0
    )
    return table_format(storage, format).replace("public/t", content, None)


def reopened(storage: Storage, format: FormatName) -> StoredTable:
    stored = table_format(storage, format).open("public/t")
    assert stored is not None
    return stored


def log_entry(storage: Storage, version: int, format: FormatName) -> str:
    """Return the path of a version's entry in the log."""
    return (
        f"public/t/_delta_log/{version:020}.json"
        if format == "delta"
        else f"public/t/metadata/v{version}.metadata.json"
    )


def commit_many(storage: Storage, format: FormatName, first: int = 2000, *, keeps: bool = False) -> StoredTable:
    """Commit many versions in another process, whose upkeep deletes the names of the earlier ones."""
    stored = reopened(storage, format)
    version = stored.version
    for number in range(20):
        insert(stored, first + number, range(first + number, first + number + 1))
        if not keeps:
            stored.maintain(1000)
    assert keeps == (storage.read(log_entry(storage, version + 1, format)) is not None)
    return stored


def ids_at(storage: Storage, options: dict[str, str] | None = None) -> list[int]:
    return sorted(read_table(storage.uri_of("public/t"), options)["id"].to_pylist())


def before_next_create(monkeypatch: pytest.MonkeyPatch, path: str, action: Callable[[], object]) -> None:
    """Do something before a file is created, as if the process had slept there."""
    create = Storage.create

    def created(self: Storage, name: str, data: bytes) -> bool:
        if name == path:
            monkeypatch.setattr(Storage, "create", create)
            action()
        return create(self, name, data)

    monkeypatch.setattr(Storage, "create", created)


def after_next_create(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do something after a file is created, as if the process had slept there."""
    create = Storage.create

    def created(self: Storage, name: str, data: bytes) -> bool:
        monkeypatch.setattr(Storage, "create", create)
        is_created = create(self, name, data)
        action()
        return is_created

    monkeypatch.setattr(Storage, "create", created)


@pytest.mark.parametrize("at", ["before the commit", "in the commit"])
def test_a_version_whose_name_was_deleted_is_not_created_again(
    format: FormatName, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, format)
    insert(stored, 1000, range(3))
    entry = log_entry(storage, stored.version + 1, format)
    if at == "in the commit":
        before_next_create(monkeypatch, entry, lambda: commit_many(storage, format))
    else:
        commit_many(storage, format)
    for _ in range(2):
        with pytest.raises(WriterError):
            insert(stored, 1001, range(3, 6))
    assert storage.read(entry) is None
    assert ids_at(storage) == [0, 1, 2, *range(2000, 2020)]
    with pytest.raises(WriterError):
        stored.refuse_unknown_commits()
    last = reopened(storage, format)
    assert last.applied(APP) == Lsn(2019)
    insert(last, 3000, range(5000, 5001))
    assert ids_at(storage) == [0, 1, 2, *range(2000, 2020), 5000]


def test_a_commit_while_upkeep_deletes_the_entries_around_it_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, "delta")
    insert(stored, 1000, range(3))
    previous_entry, entry = (log_entry(storage, stored.version + step, "delta") for step in (0, 1))

    def commit_and_delete_in_another_order() -> None:
        data = storage.read(previous_entry)
        assert data is not None
        commit_many(storage, "delta")
        storage.write(previous_entry, data)

    before_next_create(monkeypatch, entry, commit_and_delete_in_another_order)
    with pytest.raises(WriterError):
        insert(stored, 1001, range(3, 6))
    assert storage.read(entry) is None
    assert ids_at(storage) == [0, 1, 2, *range(2000, 2020)]


def test_a_commit_on_a_disk_does_not_list_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    stored = new_table(storage, "delta")
    with monkeypatch.context() as unlisted:
        unlisted.setattr(Storage, "names", None)
        insert(stored, 1000, range(3))
        stored.refuse_unknown_commits()
    stored.maintain(1000)
    insert(reopened(storage, "delta"), 2000, range(5, 6))
    with pytest.raises(WriterError):
        stored.refuse_unknown_commits()


def test_a_commit_to_a_table_that_was_dropped_and_recreated_is_taken_back(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, "iceberg")
    for number in range(5):
        insert(stored, 1000 + number, range(number, number + 1))
    for path in storage.list("public/t"):
        storage.delete(path)
    new = new_table(storage, "iceberg")
    insert(new, 2000, range(7, 9))
    entry = log_entry(storage, stored.version + 1, "iceberg")
    with pytest.raises(DamagedError, match=f"version {stored.version} no longer exists"):
        stored.exchange([], [])
    assert storage.read(entry) is None
    assert ids_at(storage) == [7, 8]
    insert(new, 2001, range(9, 10))
    assert ids_at(storage) == [7, 8, 9]


@pytest.mark.parametrize("keeps", [True, False], ids=["names stay", "names go"])
def test_a_commit_that_another_process_built_on_stays(
    format: FormatName, keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, format)
    insert(stored, 1000, range(3))
    after_next_create(monkeypatch, lambda: commit_many(storage, format, keeps=keeps))
    with pytest.raises(WriterError):
        insert(stored, 1001, range(3, 6))
    assert ids_at(storage) == [*range(6), *range(2000, 2020)]
    # The log has no gap where the version was.
    entry = storage.read(log_entry(storage, stored.version, format))
    assert keeps == (storage.read(log_entry(storage, reopened(storage, format).version - 20, format)) is not None), (
        entry
    )
    insert(reopened(storage, format), 3000, range(5000, 5001))
    assert ids_at(storage) == [*range(6), *range(2000, 2020), 5000]


def test_a_load_of_a_suspended_process_replaces_no_rows(format: FormatName, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, format)
    commit_many(storage, format)
    content = NewTable(stored.table, [], Position(APP, Lsn(1500)), load="late", keep_hours=0)
    with pytest.raises(WriterError):
        table_format(storage, format).replace("public/t", content, stored)
    assert ids_at(storage) == [*range(2000, 2020)]


def test_the_version_hint_never_names_an_earlier_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, "iceberg")
    insert(stored, 1000, range(3))
    # Later upkeep deletes nothing, and so does not look for other processes.
    stored.maintain(1000)
    hint = tmp_path / "public/t/metadata/version-hint.text"
    write = Storage.write
    with monkeypatch.context() as away:

        def refuse(self: Storage, path: str, data: bytes) -> None:
            if path.endswith("version-hint.text"):
                raise StorageError("no room")
            write(self, path, data)

        away.setattr(Storage, "write", refuse)
        insert(stored, 1001, range(3, 5))
    last = reopened(storage, "iceberg")
    insert(last, 1002, range(5, 6))
    assert hint.read_text() == str(last.version)
    # It writes the hint that it could not write before.
    stored.maintain(1000)
    assert hint.read_text() == str(last.version)


def test_a_reader_opens_the_last_version_beside_a_commit_that_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    stored = new_table(storage, "iceberg")
    insert(stored, 1000, range(3))
    entry, opened = log_entry(storage, stored.version + 1, "iceberg"), []
    hint, first = tmp_path / "public/t/metadata/version-hint.text", str(stored.version)

    def open_with_an_old_hint() -> None:
        current = hint.read_text()
        hint.write_text(first)
        opened.append(reopened(storage, "iceberg").applied(APP))
        hint.write_text(current)

    names = Storage.names

    def named(self: Storage, folder: str, after: str) -> list[str]:
        monkeypatch.setattr(Storage, "names", names)
        assert storage.read(entry) is not None
        open_with_an_old_hint()
        return names(self, folder, after)

    def sleep() -> None:
        commit_many(storage, "iceberg")
        monkeypatch.setattr(Storage, "names", named)

    before_next_create(monkeypatch, entry, sleep)
    with pytest.raises(WriterError):
        insert(stored, 1001, range(3, 6))
    assert opened == [Lsn(2019)]


def test_versions_that_are_deleted_while_a_table_is_opened_are_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path), limits=EARLY_UPKEEP)
    insert(new_table(storage, "iceberg"), 1000, range(3))
    names = Storage.names

    def sleep_after(self: Storage, folder: str, after: str) -> list[str]:
        monkeypatch.setattr(Storage, "names", names)
        listed = names(self, folder, after)
        commit_many(storage, "iceberg")
        return listed

    monkeypatch.setattr(Storage, "names", sleep_after)
    assert reopened(storage, "iceberg").applied(APP) == Lsn(2019)


def test_a_version_whose_name_was_deleted_in_an_object_store_is_not_created_again(format: FormatName) -> None:
    store = Store()
    try:
        storage = Storage("s3://lake/shop", store.options, limits=EARLY_UPKEEP)
        stored = new_table(storage, format)
        insert(stored, 1000, range(3))
        entry = log_entry(storage, stored.version + 1, format)
        commit_many(storage, format)
        with pytest.raises(WriterError):
            insert(stored, 1001, range(3, 6))
        assert storage.read(entry) is None
        assert storage.names("public/t/no-such", "") == []
        assert reopened(storage, format).applied(APP) == Lsn(2019)
    finally:
        store.close()
