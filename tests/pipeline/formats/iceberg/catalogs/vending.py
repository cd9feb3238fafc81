"""A catalog over an object store, whose credentials expire."""

from __future__ import annotations

import time
from itertools import count

from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Profile, Warehouse, expiring
from tests.pipeline.storage.stores import Store

SECRET = "vended-secret"


class Vending:
    """A catalog over a store, whose credentials expire within some seconds.

    The store accepts them for five seconds more, as slow requests may end then.
    """

    def __init__(self, store: Store, profile: Profile | None = None, seconds: float = 1.0) -> None:
        self.store, self.seconds, self._numbers = store, seconds, count()
        self.server = OwnerServer(Warehouse("s3://lake/warehouse", store.options), profile)
        self.server.vend = self._vend
        self.until: dict[str, float] = {}
        """The times until which the store accepts the credentials."""
        self.used: set[str] = set()
        """The keys of the requests that the store accepted."""
        self.refused = 0
        """The requests with expired keys."""
        store.accepts = self._accepts

    def _vend(self) -> dict[str, str]:
        key = f"vended{next(self._numbers)}"
        self.until[key] = time.time() + self.seconds + 5
        config = {"s3.access-key-id": key, "s3.secret-access-key": SECRET, "s3.session-token": f"{SECRET}-token"}
        return expiring({**config, "s3.endpoint": self.store.url, "client.region": "us-east-1"}, self.seconds)

    def _accepts(self, key: str) -> bool:
        """Accept the catalog's own key, and vended keys as long as the store does."""
        is_accepted = key == "key" or time.time() < self.until.get(key, 0)
        if is_accepted:
            self.used.add(key)
        self.refused += not is_accepted
        return is_accepted
