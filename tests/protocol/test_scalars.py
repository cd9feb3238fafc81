"""Log positions and times: integers that read and print as PostgreSQL's."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1

STEADY = settings(deadline=None, derandomize=True)

LSNS = {
    0: "0/0",
    1: "0/1",
    0xB374D848: "0/B374D848",
    0x16B374D848: "16/B374D848",
    1 << 32: "1/0",
    (1 << 63) + 0xAB: "80000000/AB",
    (1 << 64) - 1: "FFFFFFFF/FFFFFFFF",
}


@pytest.mark.parametrize(("number", "text"), LSNS.items())
def test_an_lsn_prints_and_reads_as_postgresql_does(number: int, text: str) -> None:
    assert str(Lsn(number)) == text
    assert Lsn(text) == number
    assert repr(Lsn(number)) == f"Lsn('{text}')"
    assert f"{Lsn(number)}" == text
    assert f"{Lsn(number):>20}" == f"{number:>20}"
    assert f"{Lsn(number):X}" == f"{number:X}"


def test_an_lsn_is_read_in_either_case_and_with_leading_zeros() -> None:
    assert Lsn("16/b374d848") == Lsn("16/B374D848") == Lsn("00000016/B374D848")
    assert Lsn("0/00000001") == 1


def test_an_lsn_is_an_exact_integer() -> None:
    lsn = Lsn("16/B374D848")
    assert lsn == 97500059720
    assert hash(lsn) == hash(97500059720)
    assert lsn + 1 == 97500059721
    assert type(lsn + 1) is int
    assert sorted([Lsn("1/0"), Lsn("0/FFFFFFFF")]) == [Lsn("0/FFFFFFFF"), Lsn("1/0")]
    assert lsn.to_bytes(8, "big").hex() == "00000016b374d848"


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "/", "0/", "/0", "0/0/0", "0x1/0", "1/0x0", "G/0", "0/G", " 0/0", "0/0 ", "0/0\n", "-1/0", "+1/0",
        "123456789/0", "0/123456789", "\u0661/0", "1_0/0",
    ],
)  # fmt: skip
def test_a_text_that_is_no_lsn_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not an LSN; expected two hexadecimal numbers, as in 16/B374D848$"
    ) as error:
        Lsn(text)
    assert str(error.value).startswith(repr(text))


@pytest.mark.parametrize("number", [-1, 1 << 64, -(1 << 70)])
def test_a_number_that_is_no_lsn_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=rf"^{number} is not an LSN; expected 0 to 2\^64-1$"):
        Lsn(number)


@STEADY
@given(st.integers(0, (1 << 64) - 1))
def test_an_lsn_reads_what_it_prints(number: int) -> None:
    assert Lsn(str(Lsn(number))) == number
    assert eval(repr(Lsn(number)), {"Lsn": Lsn}) == number


MOMENTS = {
    0: ("2000-01-01T00:00:00Z", datetime(2000, 1, 1, tzinfo=UTC)),
    1: ("2000-01-01T00:00:00.000001Z", datetime(2000, 1, 1, microsecond=1, tzinfo=UTC)),
    -1: ("1999-12-31T23:59:59.999999Z", datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    848_563_200_000_000: ("2026-11-21T08:00:00Z", datetime(2026, 11, 21, 8, tzinfo=UTC)),
    -63_082_281_600_000_000: ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    252_455_615_999_999_999: (
        "9999-12-31T23:59:59.999999Z",
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize(("number", "text", "moment"), [(number, *both) for number, both in MOMENTS.items()])
def test_a_time_gives_a_datetime_in_utc(number: int, text: str, moment: datetime) -> None:
    time = TimestampTz(number)
    assert time.datetime == moment
    assert time.datetime.tzinfo is UTC
    assert TimestampTz.from_datetime(moment) == number
    assert type(TimestampTz.from_datetime(moment)) is TimestampTz
    assert str(time) == text
    assert f"{time}" == text
    assert f"{time:d}" == str(number)
    assert repr(time) == f"TimestampTz({number})"


@pytest.mark.parametrize("number", [-63_082_281_600_000_001, 252_455_616_000_000_000, (1 << 63) - 1, -(1 << 63)])
def test_a_time_beyond_a_datetime_keeps_its_number(number: int) -> None:
    time = TimestampTz(number)
    assert time == number
    assert str(time) == f"{number} microseconds since 2000-01-01"
    with pytest.raises(OverflowError):
        _ = time.datetime


@pytest.mark.parametrize("number", [0, -1, 1, 848_563_200_000_000, -63_082_281_600_000_000, 1 << 62, -(1 << 63)])
def test_a_time_is_read_from_its_text(number: int) -> None:
    assert TimestampTz.from_text(str(TimestampTz(number))) == number
    assert type(TimestampTz.from_text(str(TimestampTz(number)))) is TimestampTz


@pytest.mark.parametrize(
    "text", ["", "now", "2000-01-01T00:00:00", "1 microseconds", "\u0661 microseconds since 2000-01-01"]
)
def test_another_text_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat string|no time zone"):
        TimestampTz.from_text(text)


def test_a_datetime_of_another_zone_is_the_same_point_in_time() -> None:
    moment = datetime(2000, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert TimestampTz.from_datetime(moment) == 0


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no time zone$"):
        TimestampTz.from_datetime(datetime(2000, 1, 1))


@STEADY
@given(st.integers(-63_082_281_600_000_000, 252_455_615_999_999_999))
def test_a_time_keeps_every_microsecond(number: int) -> None:
    assert TimestampTz.from_datetime(TimestampTz(number).datetime) == number


def test_numbers_keep_their_type_when_they_are_pickled() -> None:
    for value in (Lsn("16/B374D848"), TimestampTz(-1)):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            copy = pickle.loads(pickle.dumps(value, protocol))
            assert copy == value
            assert type(copy) is type(value)


def test_numbers_of_messages_know_what_they_are() -> None:
    begin: Any = v1.parse(bytes.fromhex("42 00000016b374d848 000303c3841b0000 000002e5"))
    assert type(begin.final_lsn) is Lsn
    assert type(begin.commit_timestamp) is TimestampTz
    assert str(begin.final_lsn) == "16/B374D848"
    assert str(begin.commit_timestamp) == "2026-11-21T08:00:00Z"


def test_ids_are_plain_integers() -> None:
    assert Oid(16387) == 16387
    assert type(TransactionId(741)) is int
