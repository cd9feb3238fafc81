"""A TCP proxy before a server, which can be stuck: its connections stay open, and TCP answers, but nothing passes.

It is a process of its own, as libpq holds the interpreter's lock while it pings a server.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_PIECE = 1 << 16


class Proxy:
    """A proxy to a server's Unix socket; at first everything passes."""

    def __init__(self, process: subprocess.Popen[str], database: str) -> None:
        self._process = process
        port = self._answer()
        self.dsn = f"host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable connect_timeout=2"

    def freeze(self, *, new: bool = False) -> None:
        """Stop all bytes, in both directions, on the open connections; with `new` on new connections too."""
        self._tell(freeze="all" if new else "old")

    def thaw(self) -> None:
        """Let everything pass again, also what was held back."""
        self._tell(freeze="none")

    def cut(self, after: int | None) -> None:
        """Reset each connection once the server has sent so many bytes on it, counted from now on; None for never."""
        self._tell(cut=after)

    def delay(self, seconds: float) -> None:
        """Hold back each piece for some seconds from now on."""
        self._tell(delay=seconds)

    def half_close(self) -> None:
        """Tell both sides of the connections that there are that the other one sends no more, and stay open."""
        self._tell(half_close=True)

    def when_sent(self, size: int, **changes: Any) -> None:
        """Do something once the server has sent so many bytes on all connections, before the next one passes.

        `changes` is one of `freeze` ("old" or "all"), `cut`, `delay` and `half_close`.
        """
        self._tell(trigger=[size, changes])

    def sent(self) -> int:
        """Return the bytes that the server has sent on all connections."""
        return int(self._tell()["sent"])

    def connections(self) -> int:
        """Return the number of connections that were ever made."""
        return int(self._tell()["connections"])

    def connections_since(self) -> int:
        """Return the number of connections that were made since `when_sent` did something."""
        return int(self._tell()["since"])

    def _tell(self, **changes: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(changes) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def start_proxy_to(folder: object, database: str = "postgres") -> Iterator[Proxy]:
    """Yield a proxy to the server whose socket is in a folder, until the end of the context."""
    command = [sys.executable, __file__, f"{folder}/.s.PGSQL.5432"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Proxy(process, database)
        finally:
            process.kill()


@dataclass(eq=False)
class _Connection:
    writers: list[asyncio.StreamWriter]
    is_frozen: bool = False
    bytes_left: int | None = None


@dataclass
class _State:
    path: str
    freezes_new: bool = False
    cut: int | None = None
    delay: float = 0
    sent: int = 0
    connection_count: int = 0
    earlier_count: int = 0
    trigger: tuple[int, dict[str, Any]] | None = None
    open: list[_Connection] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection([writer], self.freezes_new, self.cut)
        self.connection_count += 1
        self.open.append(connection)
        try:
            async with self.changed:
                await self.changed.wait_for(lambda: not connection.is_frozen)
            from_server, to_server = await asyncio.open_unix_connection(self.path)
            connection.writers.append(to_server)
            await asyncio.gather(
                self.pass_on(connection, reader, to_server, is_answer=False),
                self.pass_on(connection, from_server, writer, is_answer=True),
            )
        except OSError:
            pass
        finally:
            self.open.remove(connection)
            for stream in connection.writers:
                stream.transport.abort()

    async def pass_on(
        self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while data := await reader.read(_PIECE):
            if is_answer:
                self.sent += len(data)
                if self.trigger is not None and self.sent >= self.trigger[0]:
                    (_, changes), self.trigger, self.earlier_count = self.trigger, None, self.connection_count
                    await self.told(changes)
            if self.delay:
                await asyncio.sleep(self.delay)
            async with self.changed:
                await self.changed.wait_for(lambda: not connection.is_frozen)
            if is_answer and connection.bytes_left is not None:
                data = data[: connection.bytes_left]
                connection.bytes_left -= len(data)
            writer.write(data)
            await writer.drain()
            if connection.bytes_left == 0:
                raise ConnectionResetError
        async with self.changed:
            await self.changed.wait_for(lambda: not connection.is_frozen)
        if writer.can_write_eof():
            writer.write_eof()

    async def told(self, changes: dict[str, Any]) -> dict[str, int]:
        async with self.changed:
            if "freeze" in changes:
                self.freezes_new = changes["freeze"] == "all"
                for connection in self.open:
                    connection.is_frozen = changes["freeze"] != "none"
            if "cut" in changes:
                self.cut = changes["cut"]
                for connection in self.open:
                    connection.bytes_left = self.cut
            if "half_close" in changes:
                for connection in self.open:
                    for writer in connection.writers:
                        if not writer.is_closing():
                            writer.write_eof()
            self.delay = changes.get("delay", self.delay)
            self.trigger = changes.get("trigger", self.trigger)
            self.changed.notify_all()
        return {
            "sent": self.sent,
            "connections": self.connection_count,
            "since": self.connection_count - self.earlier_count,
        }


async def _main(path: str) -> None:
    state = _State(path)
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        print(json.dumps(await state.told(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
