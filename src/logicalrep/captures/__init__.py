"""Capture files: a server's messages, stored in a file with the settings of the session.

with Capture.open("capture.jsonl.gz") as capture:
    for lsn, data in capture:
        ...
"""

from __future__ import annotations

from logicalrep.captures.capture import Capture, CaptureError, CaptureSession

__all__ = ["Capture", "CaptureError", "CaptureSession"]
