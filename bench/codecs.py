"""`parse` and `build`: the generated code beside the construct Structs and pypgoutput."""

from __future__ import annotations

from bench.corpus import messages
from bench.measure import Contender, Row, consume, rates
from bench.peers import pypgoutput, structs
from logicalrep import v1

_UNIT = "messages/s"


def rows() -> list[Row]:
    """Return the table's rows, without pypgoutput if it is not installed."""
    _, sample = messages(30_000)
    few = sample[::10]
    parsed = [v1.parse(data) for data in sample]
    struct = structs()
    objects = [(struct[data[0]], struct[data[0]].parse(data)) for data in few]
    contenders = [
        Contender("parse", len(sample), lambda: consume(map(v1.parse, sample))),
        Contender("parse, construct Struct", len(few), lambda: consume(struct[data[0]].parse(data) for data in few)),
        Contender("build", len(parsed), lambda: consume(message.build() for message in parsed)),
        Contender("build, construct Struct", len(objects), lambda: consume(each.build(item) for each, item in objects)),
    ]
    peer = pypgoutput()
    if peer:
        contenders.insert(
            2, Contender("parse, pypgoutput", len(sample), lambda: consume(peer[data[0]](data) for data in sample))
        )
    found = rates(contenders)
    table = [Row("parse", found["parse"], _UNIT)]
    for name, target in (("parse, pypgoutput", 4.0), ("parse, construct Struct", 20.0)):
        if name in found:
            table.append(Row(name, found[name], _UNIT, found["parse"] / found[name], "parse is faster", target))
    table.append(Row("build", found["build"], _UNIT))
    name = "build, construct Struct"
    table.append(Row(name, found[name], _UNIT, found["build"] / found[name], "build is faster", 20.0))
    return table
