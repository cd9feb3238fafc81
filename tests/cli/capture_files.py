"""Capture files as JSON lines."""

from __future__ import annotations

import json

HEADER = {"format": "pgoutput-capture/1", "proto_version": 2, "options": {"streaming": "on"}, "client_encoding": "UTF8"}


def jsonl(messages: list[bytes], **header: object) -> bytes:
    lines: list[dict[str, object]] = [{**HEADER, **header}]
    lines += [{"lsn": "0/FF0", "data": message.hex()} for message in messages]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()
