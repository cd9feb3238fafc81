"""A destination whose tables are at places that a catalog chooses."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from logicalrep.pipeline.storage.layout import FolderLayout
from logicalrep.pipeline.storage.placed import Place, PlacedStorage
from logicalrep.pipeline.storage.storage import Storage


def add_places(storage: PlacedStorage, warehouse: Path, numbers: Iterable[int]) -> None:
    for number in numbers:
        storage.place(f"public/t{number}", Place(Storage(str(warehouse / str(number))), FolderLayout("data")))


def test_files_are_found_while_other_threads_add_tables(tmp_path: Path) -> None:
    storage, warehouse = PlacedStorage(str(tmp_path / "lake")), tmp_path / "warehouse"
    add_places(storage, warehouse, range(200))
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add_places, storage, warehouse, range(200, 4000))
        while not adding.done():
            assert storage.path_of(f"{warehouse}/7/data/x.parquet") == "public/t7/data/x.parquet"
