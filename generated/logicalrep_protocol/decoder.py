"""A session's decoder for the versions of the protocol: bytes in, messages out, no socket.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Never, overload

from logicalrep_protocol import v1, v2, v3, v4
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE, AnyMessage, Relation, Type
from logicalrep_runtime.decoder import SessionDecoder
from logicalrep_runtime.scalars import Oid

if TYPE_CHECKING:
    # Type checkers bundle typing_extensions; without brackets `Decoder` means any version.
    from typing_extensions import TypeVar

    _Message = TypeVar("_Message", covariant=True, default=AnyMessage)
else:
    from typing import TypeVar

    _Message = TypeVar("_Message", covariant=True)


class Decoder(SessionDecoder[_Message]):
    """Decodes the messages of one session in the order in which they arrive.

    For type checkers, `Decoder(4).decode()` returns a message of version 4, and `message.tag == "B"` narrows its
    type. If the version is known only at run time, `decode` returns a message of any version.

    Use a new decoder for each session. A message that raises DecodeError does not change the decoder's state.

    PostgreSQL 19 has the messages of PostgreSQL 18. A new connection is a new session; a new call of
    pg_logical_slot_get_binary_changes is a new session too.

    Example:
        >>> decoder = Decoder(1)
        >>> message = decoder.decode(data)
    """

    __slots__ = (
        "parallel",
        "streaming",
        "two_phase",
    )

    layouts = LOGICALREP
    parsers = PARSE

    streaming: bool
    """For the next message: whether the message is between Stream Start and Stream Stop."""
    two_phase: bool
    """Whether the slot was created with two_phase."""
    parallel: bool
    """Whether the session was started with the option streaming = parallel."""

    @overload
    def __init__(
        self: Decoder[v1.AnyMessage | v2.StreamAbort],
        version: Literal[1],
        *,
        two_phase: Literal[False] = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[
            v1.AnyMessage | v2.StreamAbort | v3.BeginPrepare | v3.Prepare | v3.CommitPrepared | v3.RollbackPrepared
        ],
        version: Literal[1],
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[v2.AnyMessage],
        version: Literal[2],
        *,
        two_phase: Literal[False] = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[
            v2.AnyMessage | v3.BeginPrepare | v3.Prepare | v3.CommitPrepared | v3.RollbackPrepared | v3.StreamPrepare
        ],
        version: Literal[2],
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[v3.AnyMessage],
        version: Literal[3],
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[v4.AnyMessage],
        version: Literal[4],
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    @overload
    def __init__(
        self: Decoder[AnyMessage],
        version: int,
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
    ) -> None: ...

    def __init__(
        self,
        version: int,
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
        **unknown: Never,
    ) -> None:
        """`version` is 1 to 4; raises ValueError for another, EncodingError for an unknown `encoding`.

        `two_phase`: whether the slot was created with two_phase; servers then send Begin Prepare, Prepare, Commit
        Prepared, Rollback Prepared and Stream Prepare in older protocol versions too. `parallel`: whether the session
        was started with the option streaming = parallel. `encoding` is the session's client_encoding as a Python
        codec.
        """
        super().__init__(version, encoding=encoding, two_phase=two_phase, parallel=parallel, **unknown)

    def _read(self, parse: Callable[..., _Message], data: bytes) -> _Message:
        return parse(data, streaming=self.streaming, parallel=self.parallel, encoding=self.encoding)

    @property
    def relations(self) -> dict[Oid, Relation]:
        """The last Relation of each `relation_id`."""
        return self.described["Relation"]

    @property
    def types(self) -> dict[Oid, Type]:
        """The last Type of each `type_id`."""
        return self.described["Type"]
