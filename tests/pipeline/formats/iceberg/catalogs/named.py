"""Catalogs by their names, as their documents and issues describe them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Profile


@dataclass(frozen=True)
class NamedCatalog:
    profile: Profile
    has_service: bool = False
    """Whether a service merges files and removes snapshots after each commit."""
    has_tokens: bool = False
    """Whether clients need OAuth tokens, which expire before each commit."""
    credentials: Callable[[], dict[str, str]] = dict

    def options(self, server: OwnerServer) -> dict[str, str]:
        """Return a client's options for a server with this catalog, and let the server require them."""
        if not self.has_tokens:
            return {}
        server.tokens = []
        return {"credential": "client:s3cret", "oauth2-server-uri": f"{server.uri}/v1/oauth/tokens"}


CATALOGS = {
    "Unity Catalog": NamedCatalog(
        Profile(
            stages=False, forced={"write.object-storage.enabled": "true"}, reserved=("delta.", "write.", "history.")
        )
    ),
    "Polaris": NamedCatalog(
        Profile(needs_credentials=True), has_tokens=True, credentials=lambda: {"s3.access-key-id": "of a store"}
    ),
    "S3 Tables": NamedCatalog(Profile(stages=False), has_service=True),
    "Horizon": NamedCatalog(Profile(takes_equality_deletes=False)),
    "Glue": NamedCatalog(Profile(lowers_columns=True)),
}
