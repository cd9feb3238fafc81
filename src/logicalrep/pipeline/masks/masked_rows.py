"""The masking of changes before they are written anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from logicalrep.arrow.changes.change_batch import NEW, OLD, ChangeBatch
from logicalrep.arrow.changes.table_changes import with_small_joined
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_settings import TableSettings


def refuse_other_masks(stored: TableSettings, settings: TableSettings) -> None:
    if (stored.masked, stored.left_out) != (settings.masked, settings.left_out):
        raise NeedsResync("its copy has other masked or left-out columns than the settings by table")


@dataclass(frozen=True)
class Masking:
    """The Relation message must list exactly the known columns, in the known order.

    Changes name columns: a renamed column would arrive in clear, and two columns may have exchanged their names.
    """

    settings: TableSettings
    columns: Sequence[str]
    """With left-out columns, in the order of their numbers."""
    key: MaskKey | None = field(repr=False)

    def masked(self, batches: Sequence[ChangeBatch]) -> Sequence[ChangeBatch]:
        """Raises NeedsResync for changes with other columns, or if stored values were hashed with another key."""
        if not self.settings.protected or not batches:
            return batches
        if any(batch.relation.names != tuple(self.columns) for batch in batches):
            raise NeedsResync("its changes have other columns, and it has masked or left-out columns")
        if not self.settings.protected <= {*self.columns}:
            raise NeedsResync("a masked or left-out column no longer exists")
        check = self.settings.mask_key
        if check is not None and (self.key is None or self.key.check != check):
            raise NeedsResync("its copy was hashed with another key")
        return [self._masked(batch) for batch in with_small_joined(batches)]

    def _masked(self, batch: ChangeBatch) -> ChangeBatch:
        relation = batch.relation
        stay = [index for index, name in enumerate(relation.names) if name not in self.settings.left_out]
        visible_relation = replace(
            relation,
            columns=tuple(relation.columns[index] for index in stay),
            types=tuple(relation.types[index] for index in stay),
        )
        old, new = ([self._texts(relation.names[at], side[at]) for at in stay] for side in map(batch.texts, (OLD, NEW)))
        return batch.with_columns(visible_relation, old, new, batch.unsent()[:, np.array(stay, np.int64)])

    def _texts(self, name: str, texts: pa.Array) -> pa.Array:
        masked: Mapping[str, str] = self.settings.masked
        if name not in masked:
            return texts
        if masked[name] == "nulled":
            return pa.nulls(len(texts), texts.type)
        assert self.key is not None
        return self.key.hashed(texts)
