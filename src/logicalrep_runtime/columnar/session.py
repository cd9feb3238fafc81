"""The state of a session between batches: its version, its encoding, and its facts, as names and as bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

from logicalrep_runtime.columnar.plan import MessagePlan, Plan, bit_of
from logicalrep_runtime.errors import check_version, codec_name, unknown_argument
from logicalrep_runtime.layout import ProtocolLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnarSession:
    """The session's state, which decoding depends on. `decode_batch` returns the state for the next batch.

    The generated subclass `Session` adds the protocol's tables, and its session facts as attributes.
    """

    plans: ClassVar[Mapping[int, Plan]]
    """The columns of each version."""
    layouts: ClassVar[ProtocolLayout]
    """The protocol's messages, and its session facts in the order of their bits."""
    parsers: ClassVar[Mapping[int, Callable[..., Any]]]
    """Each version's `parse` by the version's number."""

    version: int
    """The protocol version."""
    encoding: str = "utf-8"
    """The session's client_encoding as a Python codec. Texts in encodings other than UTF-8 are decoded one by one."""

    def __new__(cls, *unnamed: object, **arguments: object) -> Self:
        names = [field.name for field in fields(cls)]
        for name in arguments.keys() - set(names):
            raise unknown_argument(cls, name, names)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        check_version(self.version, self.plans)
        # All spellings of one codec give equal sessions.
        object.__setattr__(self, "encoding", codec_name(self.encoding))

    @property
    def plan(self) -> Plan:
        """The columns of the session's version."""
        return self.plans[self.version]

    def with_facts(self, bits: int) -> Self:
        """Return the session with its facts replaced; `bits` has one bit per fact."""
        return replace(self, **facts_of(self.layouts, bits))


def facts_of(layouts: ProtocolLayout, bits: int) -> dict[str, Any]:
    return {fact: bool(bits & bit_of(layouts.session, fact)) for fact in layouts.session}


@lru_cache(64)
def bits_of(session: ColumnarSession) -> int:
    facts = session.layouts.session
    return sum(bit_of(facts, fact) for fact in facts if getattr(session, fact))


def parser_of(
    session: ColumnarSession, message: MessagePlan | None, facts: int, encoding: str
) -> Callable[[bytes], Any]:
    """Return `parse` for a message of the session while the facts hold; `message` is None for an unknown tag."""
    facts_by_name = facts_of(session.layouts, facts)
    version = session.version if message is None else message.layout_version(session.version, facts_by_name)
    arguments = {**facts_by_name, "encoding": encoding}
    return partial(session.parsers[version], **{name: arguments[name] for name in session.layouts.parse_arguments})
