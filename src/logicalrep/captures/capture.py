"""The reader of capture files, which store a server's messages with the settings of the session.

The reader recognizes three formats by their content, plain or compressed with gzip:

* JSON lines, `pgoutput-capture/1`: a header, then one message a line with its LSN and its bytes in hex;
* JSON lines, `pgoutput-raw/1`: a header, then one protocol message a line; XLogData is unwrapped;
* framed binary without a header: uint64 LSN, uint32 length and the message, big-endian, repeated.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, Self, TypeVar

from logicalrep.transactions.frames import split_frames
from logicalrep.values.encodings import python_codec
from logicalrep_protocol import versions, walsender
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.errors import EncodingError, LogicalRepError
from logicalrep_runtime.scalars import Lsn, lsn_of

if TYPE_CHECKING:
    from logicalrep.arrow.message_batch import MessageBatch

_T = TypeVar("_T")

_FRAME = Struct(">QI")
_CHUNK = 1 << 20
_DAMAGED = (OSError, EOFError, zlib.error, MemoryError)
LONGEST_MESSAGE = 256 << 20
"""The longest message of a capture, in bytes: a small compressed file may have a message of any size."""
_BESIDE_DATA = 64 << 10
"""The most bytes of a line beside its message in hex."""
_NEWEST = max(versions.PARSE)


class CaptureError(LogicalRepError, ValueError):
    """A file is not a capture, or is damaged. The text gives the position and the fault."""

    code = "CAPTURE_DAMAGED"


@dataclass(frozen=True)
class CaptureSession:
    """The settings of the captured session."""

    protocol_version: int = _NEWEST
    """The session's option proto_version."""
    parallel: bool = False
    """Whether the session had the option streaming = parallel."""
    two_phase: bool = False
    """Whether the session's slot was created with two_phase."""
    encoding: str = "utf-8"
    """The session's client_encoding, as a Python codec."""
    header: dict[str, Any] = field(default_factory=dict)
    """The capture's header, unchanged; empty if the format has none."""

    def decoder(self) -> Decoder:
        """Return a new decoder with the settings of the session."""
        return Decoder(self.protocol_version, parallel=self.parallel, two_phase=self.two_phase, encoding=self.encoding)


class Capture:
    """An open capture file: its `session`, and iteration over its messages, each with its LSN.

    >>> with Capture.open("orders.jsonl.gz") as capture:
    ...     for lsn, data in capture:
    ...         ...
    """

    def __init__(self, path: Path, raw: io.BufferedReader, stream: io.BufferedReader) -> None:
        self._path = path
        self._raw = raw
        self._stream = stream
        self.size = path.stat().st_size
        self.session = CaptureSession()
        """The session's settings; with the newest protocol version if the file does not give one."""
        self._is_raw_conversation = False
        self._is_json = self._peek() == b"{"
        self._numbered = self._lines()
        if self._is_json:
            self.session = self._read_header()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a capture.

        Args:
            path: the file, plain or compressed with gzip.

        Raises:
            CaptureError: the file is not a capture.
            OSError: the file cannot be read.
        """
        path = Path(path)
        raw = path.open("rb")
        try:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            return cls(path, raw, io.BufferedReader(gzip.open(raw)) if compressed else raw)
        except BaseException:
            raw.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()

    @property
    def position(self) -> int:
        """The number of bytes of the file read so far, out of `size`."""
        return self._raw.tell()

    def __iter__(self) -> Iterator[tuple[Lsn, bytes]]:
        return self._json_messages() if self._is_json else self._framed_messages()

    def batches(self) -> Iterator[MessageBatch]:
        """Yield the messages as message batches, to be read in columns; needs `logicalrep[arrow]`."""
        from logicalrep.arrow.message_batch import message_batches_of, split

        if self._is_json:
            return message_batches_of(self._json_messages())
        return self._chunks(lambda data: split(data, _FRAME.size))

    def _peek(self) -> bytes:
        try:
            return self._stream.peek(1)[:1]
        except _DAMAGED as error:
            raise CaptureError(f"{self._path}: is damaged: {error}") from None

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, from 1."""
        longest = 2 * LONGEST_MESSAGE + _BESIDE_DATA
        for number in count(1):
            try:
                line = self._stream.readline(longest + 1)
            except _DAMAGED as error:
                raise CaptureError(f"{self._path}:{number}: is damaged: {_words(error)}") from None
            if len(line) > longest:
                raise CaptureError(
                    f"{self._path}:{number}: the line is longer than a message of {LONGEST_MESSAGE} bytes, the longest "
                    "that is read from a capture"
                )
            if not line:
                return
            yield number, line

    def _read_header(self) -> CaptureSession:
        header = self._json(next(self._numbered)[1], 1)
        kind = header.get("format")
        if kind not in ("pgoutput-capture/1", "pgoutput-raw/1"):
            raise CaptureError(
                f"{self._path}:1: the format is {kind!r}; 'pgoutput-capture/1' or 'pgoutput-raw/1' is expected"
            )
        self._is_raw_conversation = kind == "pgoutput-raw/1"
        version = header.get("proto_version")
        if type(version) is not int or version not in versions.PARSE:
            raise CaptureError(f"{self._path}:1: proto_version is {version!r}; 1 to {_NEWEST} is expected")
        options = header.get("options")
        try:
            encoding = python_codec(str(header.get("client_encoding", "UTF8")))
        except EncodingError as error:
            raise CaptureError(f"{self._path}:1: {error.description}", code=error.code) from None
        return CaptureSession(
            protocol_version=version,
            parallel=isinstance(options, dict) and options.get("streaming") == "parallel",
            two_phase=header.get("slot_two_phase") is True,
            encoding=encoding,
            header=header,
        )

    def _json(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError, MemoryError) as error:
            raise CaptureError(f"{self._path}:{number}: is not JSON: {_words(error)}") from None
        if not isinstance(value, dict):
            raise CaptureError(f"{self._path}:{number}: is not a JSON object")
        return value

    def _json_messages(self) -> Iterator[tuple[Lsn, bytes]]:
        for number, line in self._numbered:
            if not line.strip():
                continue
            row = self._json(line, number)
            try:
                data = bytes.fromhex(row["data"])
                if not self._is_raw_conversation:
                    yield Lsn(row["lsn"]), data
                    continue
                if row["dir"] != "s" or row["type"] != "d":
                    continue
                envelope = walsender.parse(data)
            except KeyError as error:
                raise CaptureError(f"{self._path}:{number}: has no {error}") from None
            except (TypeError, ValueError, MemoryError) as error:
                raise CaptureError(f"{self._path}:{number}: {_words(error)}") from None
            if isinstance(envelope, walsender.XLogData):
                yield envelope.start_lsn, envelope.payload

    def _framed_messages(self) -> Iterator[tuple[Lsn, bytes]]:
        for messages in self._chunks(lambda data: split_frames(data, _FRAME.size)):
            for lsn, data in messages:
                yield lsn_of(lsn), data

    def _chunks(self, split: Callable[[memoryview], tuple[int, _T]]) -> Iterator[_T]:
        """Yield the results of `split`, which takes the frames at the start of a chunk and returns their bytes."""
        # All chunks share one buffer: the rest of one, part of a frame, is moved to the start of the next.
        chunk, unread, offset = bytearray(_CHUNK), 0, 0
        while more := self._read(memoryview(chunk)[unread:], unread, offset):
            size, frames = split(memoryview(chunk)[: unread + more])
            yield frames
            unread += more - size
            if size:
                chunk[:unread] = chunk[size : size + unread]
                offset += size
            if unread >= _FRAME.size:
                _, length = _FRAME.unpack_from(chunk)
                if length > LONGEST_MESSAGE:
                    raise CaptureError(
                        f"{self._path}: a message of {length} bytes at byte {offset} is longer than "
                        f"{LONGEST_MESSAGE} bytes; is this a file of uint64 LSN, uint32 length and message?"
                    )
            if unread == len(chunk):
                try:
                    chunk += bytes(unread)
                except MemoryError as error:
                    raise CaptureError(f"{self._path}: at byte {offset}: {_words(error)}") from None
        if unread >= _FRAME.size:
            raise CaptureError(f"{self._path}: ends within a message, at byte {offset + _FRAME.size}")
        if unread:
            raise CaptureError(f"{self._path}: ends within a frame, at byte {offset}")

    def _read(self, room: memoryview, unread: int, offset: int) -> int:
        try:
            if unread > _CHUNK:
                # For a long message the read fills the buffer, so that the message is not checked too often.
                return self._stream.readinto(room)
            return self._stream.readinto1(room)
        except _DAMAGED as error:
            raise CaptureError(f"{self._path}: is damaged at byte {offset}: {_words(error)}") from None


def _words(error: Exception) -> str:
    return "there is not enough memory for it" if isinstance(error, MemoryError) else str(error)
