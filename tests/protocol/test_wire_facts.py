"""What real servers do that the documentation's page leaves out or states loosely: one test for each fact."""

from __future__ import annotations

from typing import Any

import pytest

from logicalrep import DecodeError, Lsn, TimestampTz, v1, v2, v3, v4
from logicalrep_protocol import versions
from logicalrep_protocol.v1 import Column, TupleData
from tests.protocol.agreement import VERSIONS, agree
from tests.protocol.captured import COLLECTION, read

STREAMED = {
    "Message": ("4d", "01 0000000001a2b3c8 6a6f6200 00000002 6869"),
    "Relation": ("52", "00004003 7300 7400 64 0000"),
    "Type": ("59", "00004010 7300 7400"),
    "Insert": ("49", "00004003 4e 0001 74 00000001 31"),
    "Update": ("55", "00004003 4e 0001 74 00000001 31"),
    "Delete": ("44", "00004003 4b 0001 74 00000001 31"),
    "Truncate": ("54", "00000001 00 00004003"),
}


def _decoded(name: str) -> list[tuple[bool, Any]]:
    """The messages of a capture, each with whether it lies in a stream."""
    capture = read(COLLECTION / name)
    decoder = capture.decoder()
    return [(streaming, decoder.decode(data)) for streaming, data in capture.with_state()]


@pytest.mark.parametrize("name", STREAMED)
def test_fact_1_seven_messages_have_an_xid_in_a_stream_and_nowhere_else(name: str) -> None:
    tag, rest = STREAMED[name]
    outside, inside = bytes.fromhex(tag + rest), bytes.fromhex(f"{tag} 000002e6 {rest}")
    assert not hasattr(v1.parse(outside), "xid")
    for version in sorted(VERSIONS)[1:]:
        assert agree(outside, version).xid is None
        assert agree(inside, version, streaming=True).xid == 742
        assert isinstance(agree(outside, version, streaming=True), DecodeError)
    for version in VERSIONS:
        assert isinstance(agree(inside, version), DecodeError)
    # Version 1 knows no streams, whatever it is told.
    assert v1.parse(outside, streaming=True) == v1.parse(outside)


def test_fact_1_origin_has_no_xid_in_a_stream_and_comes_in_the_first_segment_with_lsn_zero() -> None:
    origins = []
    first_segment = None
    for streaming, message in _decoded("pg16/stream/v4-live.walsender.jsonl.gz"):
        if isinstance(message, v2.StreamStart):
            first_segment = message.first_segment
        elif isinstance(message, v1.Origin) and streaming:
            origins.append((message.origin_lsn, first_segment))
    assert origins == [(Lsn(0), True)] * len(origins)
    assert origins


def test_fact_2_stream_abort_has_its_lsn_and_time_with_streaming_parallel_and_not_by_version() -> None:
    short = bytes.fromhex("41 000002e5 000002e6")
    long = bytes.fromhex("41 000002e5 000002e6 0000000001a2b3c8 000303c3841b0000")
    assert agree(short, 4) == v4.StreamAbort(xid=741, subxid=742)
    assert agree(long, 4, parallel=True) == v4.StreamAbort(
        xid=741, subxid=742, abort_lsn=Lsn("0/1A2B3C8"), abort_timestamp=TimestampTz(848_563_200_000_000)
    )
    assert isinstance(agree(long, 4), DecodeError)
    assert isinstance(agree(short, 4, parallel=True), DecodeError)
    for version in (2, 3):
        assert agree(short, version, parallel=True) == v2.StreamAbort(xid=741, subxid=742)
        assert isinstance(agree(long, version, parallel=True), DecodeError)


def test_fact_3_a_text_value_has_length_and_value_as_a_binary_one_has() -> None:
    for kind, letter in (("74", b"t"), ("62", b"b")):
        data = bytes.fromhex(f"49 00004003 4e 0001 {kind} 00000003 616263")
        assert agree(data, 1) == v1.Insert(relation_id=16387, new=TupleData(kinds=letter, values=(b"abc",)))
        for struct in (v1.Text.struct, v1.Binary.struct):
            assert [row.name for row in struct.subcons] == ["kind", "length", "value"]


def test_fact_4_the_order_of_fields_in_stream_commit_stream_prepare_and_rollback_prepared() -> None:
    def names(owner: Any) -> list[str]:
        return [row.name for row in owner.struct.subcons if row.name]

    assert names(v2.StreamCommit) == ["tag", "xid", "flags", "commit_lsn", "end_lsn", "commit_timestamp"]
    assert names(v3.StreamPrepare) == ["tag", "flags", "prepare_lsn", "end_lsn", "prepare_timestamp", "xid", "gid"]
    assert names(v3.RollbackPrepared) == [
        "tag", "flags", "prepare_end_lsn", "rollback_end_lsn", "prepare_timestamp", "rollback_timestamp", "xid", "gid",
    ]  # fmt: skip


@pytest.mark.parametrize(("character", "name"), [("d", "DEFAULT"), ("n", "NOTHING"), ("f", "FULL"), ("i", "INDEX")])
def test_fact_5_the_replica_identity_is_a_character(character: str, name: str) -> None:
    relation = agree(b"R\0\0\x40\x03s\0t\0" + character.encode() + b"\0\0", 1)
    assert relation.replica_identity == character
    assert relation.replica_identity is v1.ReplicaIdentity[name]


def test_fact_5_no_other_replica_identity_is_known() -> None:
    for byte in set(range(256)) - set(b"dnfi"):
        assert isinstance(agree(b"R\0\0\x40\x03s\0t\0" + bytes([byte]) + b"\0\0", 1), DecodeError)


def test_fact_6_an_empty_namespace_is_kept_as_it_is() -> None:
    assert agree(bytes.fromhex("52 00004003 00 7400 64 0000"), 1).namespace == ""
    assert agree(bytes.fromhex("59 00004010 00 7400"), 1).namespace == ""


def test_fact_7_a_type_comes_for_oids_from_10000_on_and_names_a_domains_base_type() -> None:
    types = [message for _, message in _decoded("pg12/types/v1.sql.jsonl.gz") if isinstance(message, v1.Type)]
    assert len(types) == 44
    assert min(message.type_id for message in types) >= 10_000
    # An enumeration, its array, and domains, which have the names of the types beneath them.
    assert [(message.namespace, message.name) for message in types[:7]] == [
        ("public", "mood"),
        ("public", "_mood"),
        ("", "int4"),
        ("", "int4"),
        ("", "varchar"),
        ("", "_int4"),
        ("public", "mood"),
    ]
    assert len({message.type_id for message in types[:7]}) == 7


def test_fact_8_a_row_mixes_text_and_binary_values() -> None:
    data = bytes.fromhex("49 00004003 4e 0004 62 00000004 00000007 74 00000001 37 6e 75")
    assert agree(data, 1).new.kinds == b"btnu"
    rows = [
        message.new.kinds
        for _, message in _decoded("pg16/types/v3-bin.sql.jsonl.gz")
        if isinstance(message, versions.Insert)
    ]
    assert any(b"b" in kinds and b"t" in kinds for kinds in rows)


def test_fact_9_names_come_in_the_client_encoding_and_content_and_values_are_bytes() -> None:
    data = bytes.fromhex("4d 01 0000000001a2b3c8 e400 00000002 e4ff")
    message = agree(data, 1, encoding="iso8859-1")
    assert (message.prefix, message.content) == ("ä", b"\xe4\xff")
    assert message.build(encoding="iso8859-1") == data
    assert isinstance(agree(data, 1, encoding="utf-8"), DecodeError)
    row = bytes.fromhex("49 00004003 4e 0001 74 00000001 e4")
    assert agree(row, 1, encoding="utf-8").new.values == (b"\xe4",)
    # A backslash is the second byte of some characters of SJIS.
    relation = bytes.fromhex("52 00004003 00 835c00 64 0000")
    assert agree(relation, 1, encoding="shift_jis").name == "ソ"


def test_fact_10_no_columns_are_legal_in_a_relation_and_in_a_row() -> None:
    assert agree(bytes.fromhex("52 00004003 7300 7400 64 0000"), 1).columns == ()
    assert agree(bytes.fromhex("49 00004003 4e 0000"), 1).new == TupleData(kinds=b"", values=())
    messages = [message for _, message in _decoded("pg10/shapes/v1.sql.jsonl.gz")]
    empty = {message.relation_id for message in messages if isinstance(message, v1.Relation) and not message.columns}
    assert empty
    assert any(isinstance(message, v1.Insert) and message.relation_id in empty for message in messages)
    assert max(len(message.columns) for message in messages if isinstance(message, v1.Relation)) == 1600


ZERO = "0000000000000000"
FLAGGED = {
    "Commit": "43 FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000",
    "Stream Commit": "63 000002e5 FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000",
    "Prepare": "50 FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
    "Commit Prepared": "4b FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
    "Rollback Prepared": "72 FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000303c3841b0000 000002e5 67696400",
    "Stream Prepare": "70 FF 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
}


@pytest.mark.parametrize("name", FLAGGED)
def test_fact_11_flags_other_than_zero_are_refused(name: str) -> None:
    assert not isinstance(agree(bytes.fromhex(FLAGGED[name].replace("FF", "00")), 4), DecodeError)
    for flags in ("01", "80", "ff"):
        error = agree(bytes.fromhex(FLAGGED[name].replace("FF", flags)), 4)
        assert isinstance(error, DecodeError)
        assert (error.message, error.field, error.expected, error.found) == (name, "flags", "0", str(int(flags, 16)))


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ("42 FIRST 000303c3841b0000 000002e5", ["final_lsn"]),
        ("62 FIRST SECOND 000303c3841b0000 000002e5 67696400", ["prepare_lsn", "end_lsn"]),
        ("50 00 FIRST SECOND 000303c3841b0000 000002e5 67696400", ["prepare_lsn", "end_lsn"]),
        ("4b 00 FIRST SECOND 000303c3841b0000 000002e5 67696400", ["commit_lsn", "end_lsn"]),
        (
            "72 00 FIRST SECOND 000303c3841b0000 000303c3841b0000 000002e5 67696400",
            ["prepare_end_lsn", "rollback_end_lsn"],
        ),
        ("70 00 FIRST SECOND 000303c3841b0000 000002e5 67696400", ["prepare_lsn", "end_lsn"]),
    ],
    ids=["Begin", "Begin Prepare", "Prepare", "Commit Prepared", "Rollback Prepared", "Stream Prepare"],
)
def test_fact_11_lsns_of_zero_are_refused_in_begin_and_the_prepare_family(data: str, fields: list[str]) -> None:
    lsn = "0000000001a2b3c8"
    assert not isinstance(agree(bytes.fromhex(data.replace("FIRST", lsn).replace("SECOND", lsn)), 4), DecodeError)
    for first, second, field in ((ZERO, lsn, 0), (lsn, ZERO, 1), (ZERO, ZERO, 0)):
        if field < len(fields) and (len(fields) > 1 or first == ZERO):
            error = agree(bytes.fromhex(data.replace("FIRST", first).replace("SECOND", second)), 4)
            assert isinstance(error, DecodeError)
            assert (error.field, error.expected, error.found) == (fields[field], "anything but zero", "0")


def test_fact_11_lsns_of_zero_are_legal_elsewhere() -> None:
    for data in (
        f"43 00 {ZERO} {ZERO} {ZERO}",
        f"63 000002e5 00 {ZERO} {ZERO} {ZERO}",
        f"4f {ZERO} 6e00",
        f"4d 00 {ZERO} 00 00000000",
    ):
        assert not isinstance(agree(bytes.fromhex(data), 2), DecodeError)
    assert agree(bytes.fromhex(f"41 000002e5 000002e5 {ZERO} {ZERO}"), 4, parallel=True).abort_lsn == 0


def test_fact_12_lsns_xids_and_oids_are_unsigned() -> None:
    begin = agree(bytes.fromhex("42 ffffffffffffffff 000303c3841b0000 ffffffff"), 1)
    assert (begin.final_lsn, begin.xid) == (2**64 - 1, 2**32 - 1)
    assert str(begin.final_lsn) == "FFFFFFFF/FFFFFFFF"
    relation = agree(bytes.fromhex("52 80000000 00 7400 64 0001 00 6100 ffffffff ffffffff"), 1)
    assert (relation.relation_id, relation.columns[0].type_id) == (2**31, 2**32 - 1)
    assert agree(bytes.fromhex("54 00000001 00 ffffffff"), 1).relation_ids == (2**32 - 1,)
    abort = agree(bytes.fromhex("41 80000000 ffffffff"), 2)
    assert (abort.xid, abort.subxid) == (2**31, 2**32 - 1)


def test_fact_12_times_lengths_and_type_modifiers_are_signed() -> None:
    assert agree(bytes.fromhex("42 0000000000000001 ffffffffffffffff 00000001"), 1).commit_timestamp == -1
    assert agree(bytes.fromhex("42 0000000000000001 8000000000000000 00000001"), 1).commit_timestamp == -(2**63)
    relation = agree(bytes.fromhex("52 00004003 00 7400 64 0001 00 6100 00000017 ffffffff"), 1)
    assert relation.columns == (Column(flags=0, name="a", type_id=23, type_modifier=-1),)
    error = agree(bytes.fromhex("49 00004003 4e 0001 74 ffffffff"), 1)
    assert (error.field, error.found) == ("new.cells[0].length", "-1")


def test_fact_12_high_numbers_of_a_server_are_read() -> None:
    """The captures of pg15-high have transaction ids and OIDs above 2^31 and LSNs above 2^63."""
    messages = [message for _, message in _decoded("pg15-high/stream/v3-live.walsender.jsonl.gz")]
    begins = [message for message in messages if isinstance(message, v1.Begin)]
    starts = [message for message in messages if isinstance(message, v2.StreamStart)]
    relations = [message for message in messages if isinstance(message, v2.Relation)]
    assert min([*(message.xid for message in begins), *(message.xid for message in starts)]) > 2**31
    assert min(message.final_lsn for message in begins) > 2**63
    assert max(message.relation_id for message in relations) > 2**31


def test_all_versions_take_what_version_1_takes_outside_of_streams() -> None:
    for tag, rest in STREAMED.values():
        data = bytes.fromhex(tag + rest)
        for module in VERSIONS.values():
            assert module.parse(data).build() == data
