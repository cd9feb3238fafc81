"""A stand-in for a server with texts in another language, which implements only the beginning of a connection.

It is a process of its own, as libpq holds the interpreter's lock while it pings a server.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

_SSL, _GSS = 80877103, 80877104
_OK = b"R" + struct.pack(">ii", 8, 0)
_WANTS_PASSWORD = b"R" + struct.pack(">ii", 8, 3)
_READY = b"Z" + struct.pack(">i", 5) + b"I"
_SETTINGS = {"client_encoding": "UTF8", "server_version": "16.0", "standard_conforming_strings": "on"}
_SETTINGS |= {"default_transaction_read_only": "off"}


class StandIn:
    """A stand-in that answers connections on loopback, and accepts them at first."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.dsn = f"host=127.0.0.1 port={self._answer()} user=x dbname=d sslmode=disable"

    def refuse(self, sqlstate: str, words: str) -> None:
        """Refuse connections from now on."""
        self._tell(refuses=[sqlstate, words])

    def follow(self) -> None:
        """Act as a standby from now on."""
        self._tell(in_hot_standby="on")

    def let_in(self) -> None:
        """Accept all connections from now on, as a primary."""
        self._tell(refuses=None, in_hot_standby="off")

    def want_password(self) -> None:
        """Ask for a password from now on."""
        self._tell(wants_password=True)

    @property
    def passwords(self) -> list[str]:
        """The passwords that it was given."""
        return self._tell()  # type: ignore[no-any-return]

    def _tell(self, **changes: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(changes) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def start_stand_in() -> Iterator[StandIn]:
    """Yield a stand-in that answers until the end of the context."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield StandIn(process)
        process.kill()


def _message(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack(">i", len(body) + 4) + body


def _body(sent: BinaryIO) -> bytes:
    return sent.read(struct.unpack(">i", sent.read(4))[0] - 4)


def _serve(connection: socket.socket, state: dict[str, Any], passwords: list[str]) -> None:
    with connection, connection.makefile("rb") as sent:
        while struct.unpack(">i", _body(sent)[:4])[0] in (_SSL, _GSS):
            connection.sendall(b"N")
        if state["wants_password"]:
            connection.sendall(_WANTS_PASSWORD)
            if not sent.read(1):
                return
            passwords.append(_body(sent).rstrip(b"\0").decode())
        if state["refuses"] is not None:
            sqlstate, words = state["refuses"]
            fields = {"S": "SCHWERWIEGEND", "V": "FATAL", "C": sqlstate, "M": words}
            body = b"".join(f"{name}{text}\0".encode() for name, text in fields.items())
            connection.sendall(_message(b"E", body + b"\0"))
            return
        settings = _SETTINGS | {"in_hot_standby": state["in_hot_standby"]}
        statuses = b"".join(_message(b"S", f"{name}\0{value}\0".encode()) for name, value in settings.items())
        connection.sendall(_OK + statuses + _READY)
        while sent.read(1) == b"Q":
            _body(sent)
            connection.sendall(_message(b"C", b"SELECT 0\0") + _READY)


def _listen(listening: socket.socket, state: dict[str, Any], passwords: list[str]) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_serve, args=(connection, state, passwords), daemon=True).start()


def _main() -> None:
    state: dict[str, Any] = {"refuses": None, "wants_password": False, "in_hot_standby": "off"}
    passwords: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_listen, args=(listening, state, passwords), daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    for line in sys.stdin:
        state.update(json.loads(line))
        print(json.dumps(passwords), flush=True)


if __name__ == "__main__":
    _main()
