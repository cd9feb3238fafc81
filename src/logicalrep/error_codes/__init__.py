"""The codes of all errors, with causes and remedies."""

from __future__ import annotations

from logicalrep.error_codes.read import READ
from logicalrep.error_codes.replicate import REPLICATE
from logicalrep.error_codes.servers import SERVERS

CODES = READ | REPLICATE | SERVERS
