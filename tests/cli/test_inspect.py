"""`logicalrep inspect`: one message byte by byte."""

from __future__ import annotations

import io

import pytest

from logicalrep import Lsn, TimestampTz, v1, walsender
from logicalrep.cli.main import main
from logicalrep_protocol.pgwire import v3_2
from tests.protocol.recorded_formats import recorded

BACKUPS = {major: list(map(bytes.fromhex, messages)) for major, messages in recorded("basebackup").items()}
INSERT = "49 0000038f 4e 0003 74 00000001 31 6e 62 00000009 000102030405060708"


def inspected(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["inspect", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_each_field_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = inspected(capsys, INSERT)
    assert code == 0
    assert out == (
        "offset  bytes                           field                type         value\n"
        "     0  49                              tag                  Byte1('I')   'I'\n"
        "     1  00 00 03 8f                     relation_id          Int32 (Oid)  911\n"
        "     5  4e                              new_kind             Byte1('N')   'N'\n"
        "     6  00 03                           new.column_count     Int16        3\n"
        "     8  74                              new.cells[0].kind    Byte1('t')   't'\n"
        "     9  00 00 00 01                     new.cells[0].length  Int32        1\n"
        "    13  31                              new.cells[0].value   Byten        '1'\n"
        "    14  6e                              new.cells[1].kind    Byte1('n')   'n'\n"
        "    15  62                              new.cells[2].kind    Byte1('b')   'b'\n"
        "    16  00 00 00 09                     new.cells[2].length  Int32        9\n"
        r"    20  00 01 02 03 04 05 06 07 .. (9)  new.cells[2].value   Byten        '\x00\x01\x02\x03\x04\x05\x06\x07\x08'"
        "\n"
    )


@pytest.mark.parametrize("prefix", ["0x", "\\x", ""])
def test_hexadecimal_is_read_as_tools_print_it(capsys: pytest.CaptureFixture[str], prefix: str) -> None:
    code, out, _ = inspected(capsys, prefix + "45")
    assert (code, out.splitlines()[1]) == (0, "     0  45     tag    Byte1('E')  'E'")


def test_the_message_can_come_from_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("45\n"))
    assert inspected(capsys, "-")[0] == 0


def test_a_streamed_message_has_an_xid(capsys: pytest.CaptureFixture[str]) -> None:
    message = "54 000002e6 00000001 03 00004000"
    code, out, _ = inspected(capsys, message, "--streaming", "--protocol-version", "2")
    assert code == 0
    assert out == (
        "offset  bytes        field            type                   value\n"
        "     0  54           tag              Byte1('T')             'T'\n"
        "     1  00 00 02 e6  xid              Int32 (TransactionId)  742\n"
        "     5  00 00 00 01  relation_count   Int32                  1\n"
        "     9  03           options          Int8                   3 (cascade, restart_identity)\n"
        "    10  00 00 40 00  relation_ids[0]  Int32 (Oid)            16384\n"
    )


def test_a_fault_is_pointed_at_after_what_could_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspected(capsys, "49 0000038f 4e 0001 74 00000002 31")
    assert code == 1
    assert out == (
        "offset  bytes        field                type         value\n"
        "     0  49           tag                  Byte1('I')   'I'\n"
        "     1  00 00 03 8f  relation_id          Int32 (Oid)  911\n"
        "     5  4e           new_kind             Byte1('N')   'N'\n"
        "     6  00 01        new.column_count     Int16        1\n"
        "     8  74           new.cells[0].kind    Byte1('t')   't'\n"
        "     9  00 00 00 02  new.cells[0].length  Int32        2\n"
        "    13  31           new.cells[0].value                expected 2 bytes\n"
        "        ^^\n"
    )
    assert err == (
        "error: Insert: new.cells[0].value at offset 13: expected 2 bytes, found 1 byte to the end of the message\n"
    )


def test_a_session_that_had_two_phase_reads_its_messages_in_any_version(capsys: pytest.CaptureFixture[str]) -> None:
    prepare = "50 00 0000000000001000 0000000000001030 0003034062c50000 000002e4 6700"
    code, _, err = inspected(capsys, prepare, "--protocol-version", "1")
    assert code == 1
    assert "Prepare of version 3, which is sent to older versions too where two_phase" in err
    assert inspected(capsys, prepare, "--protocol-version", "1", "--two-phase")[0] == 0


def test_what_servers_send_to_all_versions_is_read_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = inspected(capsys, "41 000002e4 000002e5", "--protocol-version", "1")
    assert code == 0
    assert out.splitlines()[-1] == "     5  00 00 02 e5  subxid  Int32 (TransactionId)  741"


def test_the_envelope_can_be_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    keepalive = "6b 0000000000001000 0003034062c50000 01"
    code, out, _ = inspected(capsys, keepalive, "--walsender", "server")
    assert code == 0
    assert out.splitlines()[2] == "     1  00 00 00 00 00 00 10 00  end_lsn          Int64       0/1000"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["4"],
            "[USAGE] the message is not hexadecimal text: non-hexadecimal number found in fromhex() arg at position 1",
        ),
        (
            ["45", "--encoding", "EBCDIC"],
            "[ENCODING_UNKNOWN] client_encoding 'EBCDIC' has no Python codec; use UTF8 for the session",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert inspected(capsys, *arguments) == (2, "", f"error: {error}\n")


def test_colour_is_for_terminals_or_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in inspected(capsys, "45")[1]
    assert "\x1b" in inspected(capsys, "45", "--color", "always")[1]


@pytest.mark.parametrize("command", [[], ["decode"], ["inspect"]])
def test_help_explains(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*command, "--help"])
    assert exit_.value.code == 0
    assert "usage: logicalrep" in capsys.readouterr().out


def test_a_replicating_connection_is_shown_with_all_that_it_carries(capsys: pytest.CaptureFixture[str]) -> None:
    payload = v1.Begin(final_lsn=Lsn(16), commit_timestamp=TimestampTz(0), xid=7).build()
    envelope = b"w" + bytes(24) + payload
    data = b"d" + (len(envelope) + 4).to_bytes(4, "big") + envelope
    assert main(["inspect", "--protocol", "pgwire", "--replication", data.hex()]) == 0
    first, second, third = capsys.readouterr().out.split("\n\n")
    assert [line.split()[-2:] for line in first.splitlines()[1:3]] == [
        ["Byte1('d')", "'d'"],
        ["Int32", str(len(data) - 1)],
    ]
    assert "start_lsn" in second
    assert "final_lsn" in third
    assert "0/10" in third


@pytest.mark.parametrize("major", BACKUPS)
def test_a_connection_that_takes_a_backup_is_shown_with_all_that_it_carries(
    capsys: pytest.CaptureFixture[str], major: int
) -> None:
    """What a server sent, as CopyData."""
    fields = {b"n": "file_name", b"m": "tag", b"d": "data", b"p": "byte_count"}
    assert {message[:1] for message in BACKUPS[major]} == fields.keys()
    for message in BACKUPS[major]:
        data = v3_2.CopyData(data=message).build()
        assert main(["inspect", "--protocol", "pgwire", "--replication", data.hex()]) == 0
        _, carried = capsys.readouterr().out.split("\n\n")
        lines = carried.splitlines()
        assert lines[1].split() == [
            "0",
            f"{message[0]:02x}",
            "tag",
            f"Byte1('{chr(message[0])}')",
            f"'{chr(message[0])}'",
        ]
        assert fields[message[:1]] in lines[-1 if message[:1] in b"mdp" else 2].split()


def test_a_status_update_of_the_client_is_no_message_of_a_backup(capsys: pytest.CaptureFixture[str]) -> None:
    """The client's `p` asks for the primary's status, the server's reports the progress of a backup."""
    request = walsender.RequestPrimaryStatusUpdate(send_timestamp=TimestampTz(0))
    data = v3_2.CopyData(data=request.build()).build()
    assert main(["inspect", "--protocol", "pgwire", "--sender", "client", "--replication", data.hex()]) == 0
    assert "send_timestamp" in capsys.readouterr().out


def test_a_message_of_the_connection_is_shown_as_what_was_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    data = "700000000b73656372657400"
    assert main(["inspect", "--protocol", "pgwire", "--sender", "client", "--expected", "password", data]) == 0
    assert "'secret'" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["inspect", "--protocol", "pgwire", "--expected", "nothing", data])
    assert "nothing is none of startup, encryption, messages" in capsys.readouterr().err


def test_messages_of_a_base_backup_and_files_of_copy_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--protocol", "basebackup", b"nbase.tar\0\0".hex()]) == 0
    assert "'base.tar'" in capsys.readouterr().out
    file = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\1a\xff\xff"
    assert main(["inspect", "--protocol", "copy_binary", file.hex()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split()[2:] == ["rows[0].columns[0].value", "Byten", "'a'"]
    assert lines[-1].split()[3:] == ["trailer", "Int16(-1)", "-1"]
    assert main(["inspect", "--protocol", "copy_binary", file[:-1].hex()]) == 1
