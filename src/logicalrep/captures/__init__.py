"""Capture files: what a server sent, kept in a file with how the session was set up.

with Capture.open("capture.jsonl.gz") as capture:
    for lsn, data in capture:
        ...
"""

from __future__ import annotations

from logicalrep.captures.capture import Capture, CaptureError, CaptureSession

__all__ = ["Capture", "CaptureError", "CaptureSession"]
