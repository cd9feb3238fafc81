"""`parse`, `Decoder` and `build`: in Python and with the native reader, beside construct Structs and other parsers."""

from __future__ import annotations

from collections.abc import Iterator

from bench import parsers
from bench.contenders import in_python, pypgoutput, structs
from bench.corpus import messages
from bench.measure import Contender, Row, consume, rates
from logicalrep import Decoder, v1

_UNIT = "messages/s"


def rows() -> list[Row]:
    """Return the table's rows, without the peers that are not installed."""
    _, sample = messages(30_000)
    few = sample[::10]
    parsed = [v1.parse(data) for data in sample]
    struct = structs()
    objects = [(struct[data[0]], struct[data[0]].parse(data)) for data in few]
    contenders = [
        Contender("parse", len(sample), in_python(lambda: consume(map(v1.parse, sample)))),
        Contender("Decoder", len(sample), in_python(lambda: consume(map(Decoder(1).decode, sample)))),
        Contender("parse, construct Struct", len(few), lambda: consume(struct[data[0]].parse(data) for data in few)),
        Contender("build", len(parsed), in_python(lambda: consume(message.build() for message in parsed))),
        Contender(
            "build, construct Struct", len(objects), lambda: consume(layout.build(item) for layout, item in objects)
        ),
    ]
    if v1.native_read is not None:
        contenders += [
            Contender("parse, native", len(sample), lambda: consume(map(v1.parse, sample))),
            Contender("Decoder, native", len(sample), lambda: consume(map(Decoder(1).decode, sample))),
            Contender("build, native", len(parsed), lambda: consume(message.build() for message in parsed)),
        ]
    peer = pypgoutput()
    if peer:
        contenders.append(
            Contender("parse, pypgoutput", len(sample), lambda: consume(peer[data[0]](data) for data in sample))
        )
    with parsers.contenders(sample) as peer_contenders:
        measured = rates([*contenders, *peer_contenders])
    return list(_table(measured))


def _table(measured: dict[str, float]) -> Iterator[Row]:
    def companion(name: str, other: str, to: str, target: float | None = None) -> Iterator[Row]:
        if name in measured:
            yield Row(name, measured[name], _UNIT, measured[other] / measured[name], to, target)

    yield Row("parse", measured["parse"], _UNIT)
    yield from companion("parse, pypgoutput", "parse", "parse is faster", 4.0)
    yield from companion("parse, construct Struct", "parse", "parse is faster", 20.0)
    yield Row("Decoder", measured["Decoder"], _UNIT)
    yield Row("build", measured["build"], _UNIT)
    if "Decoder, native" in measured:
        for name, target in (("parse", None), ("Decoder", 3.5), ("build", 4.0)):
            native = f"{name}, native"
            yield Row(
                native, measured[native], _UNIT, measured[native] / measured[name], "faster than in Python", target
            )
    best = "Decoder, native" if "Decoder, native" in measured else "Decoder"
    for name in (parsers.NODE, parsers.GO):
        yield from companion(name, best, f"{best} is faster")
    yield from companion("build, construct Struct", "build", "build is faster", 20.0)
