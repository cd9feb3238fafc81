"""The codes of all errors, each with its cause and remedy."""

from __future__ import annotations

from logicalrep.error_codes.of_reading import OF_READING
from logicalrep.error_codes.of_replicating import OF_REPLICATING
from logicalrep.error_codes.of_servers import OF_SERVERS

CODES = OF_READING | OF_REPLICATING | OF_SERVERS
"""The cause and the remedy of each code."""
