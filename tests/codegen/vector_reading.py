"""Vectors read by a generated package: `parse`, the Struct of the message, and the Struct of any message."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from construct import ConstructError

from codegen.model.model import Protocol
from codegen.model.names import class_name
from codegen.model.versions import View, views
from codegen.vectors.command import vectors
from logicalrep_runtime.errors import LogicalRepError


def module_path(view: View) -> str:
    """Return a version's module below the package: `v4`, `pgwire.v3_2`."""
    return ".".join(filter(None, (view.protocol.package, view.module)))


def read_in_each_way(module: ModuleType, vector: dict[str, Any], sender: str) -> None:
    """Read and build a vector of a message in each way. Raises AssertionError, or the error of a reader."""
    data, session = bytes.fromhex(vector["bytes"]), vector.get("session", {})
    any_message = getattr(module, "message", None) or getattr(module, f"{sender}_message")
    arguments = {"sender": sender} if hasattr(module, "client_message") else {}
    message = module.parse(data, **session, **arguments)
    assert message.build() == data, vector["name"]
    for struct in (type(message).struct, any_message):
        assert struct.parse(data, **session) == message, vector["name"]
        assert struct.build(message, **session) == data, vector["name"]


def misread(package: ModuleType, protocols: tuple[Protocol, ...]) -> Iterator[str]:
    """Yield the messages with a vector that a package misreads, with the sender: `server pgwire.v3_2.Bind`."""
    for protocol in protocols:
        for view in views(protocol):
            module = importlib.import_module(f"{package.__name__}.{module_path(view)}")
            senders = {message.name: message.senders for message in view.messages}
            for vector in vectors(view):
                for sender in () if "refused" in vector else senders[vector["message"]]:
                    try:
                        read_in_each_way(module, vector, sender)
                    except (AssertionError, ConstructError, LogicalRepError, LookupError, TypeError):
                        yield f"{sender} {module_path(view)}.{class_name(vector['message'])}"
