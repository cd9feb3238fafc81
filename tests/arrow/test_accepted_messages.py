"""The messages that each decoder takes, by version, session and place, in one table that is derived by hand.

The versions come from the documentation and from observed servers: see tests/protocol/test_wire_facts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from construct import ConstructError

import logicalrep_protocol
from logicalrep import DecodeError, Decoder
from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.versions import PARSE

# The tag and the class; the versions that have the message, for Structs and `parse`; those in which sessions take it,
# and in which they do where the slot has two_phase; where it stands: outside, in a transaction, in a prepared one, in a
# stream.
TABLE = """
B Begin             1234  1234  1234  o
M Message           1234  1234  1234  otps
C Commit            1234  1234  1234  t
O Origin            1234  1234  1234  tps
R Relation          1234  1234  1234  tps
Y Type              1234  1234  1234  tps
I Insert            1234  1234  1234  tps
U Update            1234  1234  1234  tps
D Delete            1234  1234  1234  tps
T Truncate          1234  1234  1234  tps
S StreamStart       234   234   234   o
E StreamStop        234   234   234   s
c StreamCommit      234   234   234   o
A StreamAbort       234   1234  1234  o
b BeginPrepare      34    34    1234  o
P Prepare           34    34    1234  op
K CommitPrepared    34    34    1234  o
r RollbackPrepared  34    34    1234  o
p StreamPrepare     34    34    234   o
"""

LSN, MOMENT, XID, OID, GID = "0000000000000001", "0000000000000002", "00000003", "00000004", "6700"
PREPARED = f"00 {LSN} {LSN} {MOMENT} {XID} {GID}"
BODIES = {
    "B": f"{LSN} {MOMENT} {XID}", "M": f"00 {LSN} 7000 00000000", "C": f"00 {LSN} {LSN} {MOMENT}", "O": f"{LSN} 6f00",
    "R": f"{OID} 00 7400 64 0000", "Y": f"{OID} 00 7400", "I": f"{OID} 4e 0000", "U": f"{OID} 4e 0000",
    "D": f"{OID} 4b 0000", "T": f"00000001 00 {OID}", "S": f"{XID} 01", "E": "", "c": f"{XID} 00 {LSN} {LSN} {MOMENT}",
    "A": f"{XID} {XID}", "b": f"{LSN} {LSN} {MOMENT} {XID} {GID}", "P": PREPARED, "K": PREPARED,
    "r": f"00 {LSN} {LSN} {MOMENT} {MOMENT} {XID} {GID}", "p": PREPARED,
}  # fmt: skip
WITH_XID_IN_STREAMS = "MRYIUDT"
OPENERS = {"o": "", "t": "B", "p": "b", "s": "S"}


class Row(NamedTuple):
    tag: str
    name: str
    versions: str
    in_sessions: str
    with_two_phase: str
    places: str


class Case(NamedTuple):
    """A message in a session at a place."""

    row: Row
    version: int
    two_phase: bool
    parallel: bool
    place: str

    @property
    def facts(self) -> dict[str, bool]:
        """The facts that the message's layout depends on."""
        return {"streaming": self.place == "s", "parallel": self.parallel}

    @property
    def comes(self) -> bool:
        """Whether a session takes the message at all."""
        return str(self.version) in (self.row.with_two_phase if self.two_phase else self.row.in_sessions)


ROWS = [Row(*line.split()) for line in TABLE.strip().splitlines()]


def message(tag: str, case: Case) -> bytes:
    """Return the message as a server sends it there."""
    body = bytes.fromhex(BODIES[tag])
    if case.place == "s" and tag in WITH_XID_IN_STREAMS:
        body = bytes.fromhex(XID) + body
    if tag == "A" and case.parallel and case.version >= 4:
        body += bytes.fromhex(LSN + MOMENT)
    return tag.encode() + body


def cases() -> Iterator[Case]:
    """Yield all cases, except for places that do not exist in such a session."""
    for row, version, two_phase, parallel, place in product(ROWS, PARSE, (False, True), (False, True), OPENERS):
        if not (place == "s" and version < 2) and not (place == "p" and version < 3 and not two_phase):
            yield Case(row, version, two_phase, parallel, place)


def is_taken(decode: Callable[[], Any], error: type[Exception] = DecodeError) -> bool:
    try:
        decode()
    except error:
        return False
    return True


def session_takes(case: Case) -> bool:
    decoder = Decoder(case.version, two_phase=case.two_phase, parallel=case.parallel)
    if case.place != "o":
        decoder.decode(message(OPENERS[case.place], case._replace(place="o")))
        decoder.decode(message("R", case))
    return is_taken(lambda: decoder.decode(message(case.row.tag, case)))


def struct_takes(case: Case) -> bool:
    owner = getattr(
        getattr(logicalrep_protocol, PARSE[case.version].__module__.rpartition(".")[2]), case.row.name, None
    )
    if owner is None:
        return False
    return is_taken(lambda: owner.struct.parse(message(case.row.tag, case), **case.facts), ConstructError)


def columnar_takes(case: Case) -> bool:
    session = Session(version=case.version, two_phase=case.two_phase, **case.facts)
    return is_taken(lambda: decode_batch(pa.array([message(case.row.tag, case)]), session))


def test_the_table_has_every_message_of_every_version() -> None:
    layouts = logicalrep_protocol.layouts.LOGICALREP.messages
    assert sorted(row.tag for row in ROWS) == sorted(layout.tag for layout in layouts)
    versions = {int(version) for row in ROWS for version in row.in_sessions}
    assert versions == set(PARSE), "derive from the documentation, and from servers, what sessions of this version take"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_decoder_takes_what_the_table_says(row: Row) -> None:
    for case in cases():
        if case.row is not row:
            continue
        is_own = str(case.version) in row.versions
        data = message(row.tag, case)
        assert struct_takes(case) == is_own, case
        assert is_taken(lambda data=data, case=case: PARSE[case.version](data, **case.facts)) == is_own, case  # type: ignore[misc]
        assert session_takes(case) == (case.comes and case.place in row.places), case
        # The columnar decoder leaves the order of messages to the assembler of transactions.
        assert columnar_takes(case) == case.comes, case


def test_a_stream_abort_is_as_long_as_its_session_says() -> None:
    row = next(row for row in ROWS if row.tag == "A")
    for version, parallel in product(PARSE, (False, True)):
        case = Case(row, version, False, parallel, "o")
        other = message("A", case._replace(version=4, parallel=not (parallel and version >= 4)))
        assert session_takes(case)
        for takes in (
            lambda case=case, other=other: Decoder(case.version, parallel=case.parallel).decode(other),  # type: ignore[misc]
            lambda case=case, other=other: decode_batch(  # type: ignore[misc]
                pa.array([other]), Session(version=case.version, parallel=case.parallel)
            ),
        ):
            assert not is_taken(takes)
