"""The interface of an engine of others that works on a replicated table."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from logicalrep.pipeline.schema.table_formats import FormatName

FOLDER = "public/t"
"""The folder of the table at the destination."""


class ForeignEngine(ABC):
    """An engine that works on the table `public.t` of a destination; it sees what a program without our code sees."""

    format: ClassVar[FormatName]
    catalogs: ClassVar[tuple[str, ...]] = ("",)
    """The catalogs that the engine supports: `sqlite`, `rest`, and an empty text for none."""

    def __init__(self, lake: Path, catalog: str | None, chance: random.Random) -> None:
        """Take the destination, the URI of its catalog, and the random generator of the steps."""
        self.lake, self.catalog, self.chance = lake, catalog, chance
        self.row_changes = 0
        """The number of steps so far that changed rows, or hid what changed: `replicate` may reload the table."""

    @abstractmethod
    def steps(self) -> Mapping[str, Callable[[], object]]:
        """Return what it may do to the table, by name.

        A step that the table does not allow as it is does nothing. A step may raise `lost_races`, which the search
        takes for a commit of somebody else that came first.
        """

    @property
    @abstractmethod
    def lost_races(self) -> tuple[type[Exception], ...]:
        """The errors of a commit that came second."""

    def find_losses(self) -> list[str]:
        """Return the engine's own objects in the table that it can no longer read unchanged."""
        return []
