"""From the documentation to the bytes: `python -m website.derivation` draws docs/begin.svg.

The picture has a row for each field of Begin: the documentation's row, the spec's YAML, the attribute of the generated
class, and the bytes of a message that PostgreSQL sent.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from codegen.model.model import Protocol
from codegen.model.reader import load
from codegen.model.versions import view
from codegen.reference.examples import examples
from codegen.shared import ROOT, templates
from logicalrep_protocol import v4

PICTURE = ROOT / "docs/begin.svg"
DOCUMENTATION = {
    "Byte1('B')": "Identifies the message as a begin message.",
    "Int64 (XLogRecPtr)": "The final LSN of the transaction.",
    "Int64 (TimestampTz)": "Commit timestamp of the transaction. …",
    "Int32 (TransactionId)": "Xid of the transaction.",
}
"""The rows of PostgreSQL's page on Begin: the type, and the first sentence."""
_COLUMNS = (
    (0, "PostgreSQL's documentation", "Begin"),
    (240, "spec/logicalrep/begin.yaml", "Begin:  fields:"),
    (514, "the generated class", "class Begin:"),
    (724, "the bytes", "as PostgreSQL 18 sent them"),
)
"""The columns' left edges in pixels, headings and first lines."""
_WIDTH, _TOP, _ROW, _MARGIN = 920, 62, 46, 16
_STYLE = """
text { font: 11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  fill: var(--text); white-space: pre; }
.heading { font: 600 13px system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; fill: var(--mark); }
.quiet { font: 10.5px system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; fill: var(--quiet); }
.ground { fill: var(--page); } .stripe { fill: var(--sheet); } .rule { stroke: var(--rule); }
"""


def picture(protocol: Protocol) -> str:
    """Return the picture as a standalone SVG file.

    Raises:
        ValueError: the fields of Begin are not the documentation's rows.
    """
    layout = view(protocol, len(protocol.versions)).layout("Begin")
    assert layout is not None
    if [str(field.type) for field in layout.fields] != list(DOCUMENTATION):
        raise ValueError("the spec's fields of Begin are not the rows in website/derivation.py")
    lines = examples(protocol)["Begin"].lines
    message = v4.parse(bytes.fromhex("".join(line.data for line in lines)))
    assert message.tag == "B"
    body = "".join(_text(x, 18, "heading", heading) + _text(x, 38, "quiet", first) for x, heading, first in _COLUMNS)
    for number, (field, line, text) in enumerate(zip(layout.fields, lines, DOCUMENTATION.items(), strict=True)):
        y = _TOP + number * _ROW
        annotation = v4.Begin.__annotations__[field.name]
        if number % 2 == 0:
            body += f'<rect class="stripe" x="-8" y="{y - 15}" width="{_WIDTH}" height="{_ROW - 4}" rx="4"/>\n'
        cells = (text, (f"- {field.name}: {text[0]}", ""), (_attribute(field.name, annotation), ""), (line.data, ""))
        for (x, _, _), (code, quiet) in zip(_COLUMNS, cells, strict=True):
            body += _text(x, y, "", code) + (_text(x, y + 16, "quiet", quiet) if quiet else "")
        body += _text(_COLUMNS[3][0], y + 16, "quiet", str(getattr(message, field.name)))
    height = _TOP + len(lines) * _ROW - 14
    size = f'width="{_WIDTH + _MARGIN}" height="{height + _MARGIN}"'
    palette = templates(ROOT / "codegen/reference/templates").get_template("palette.css.j2").render()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Begin, from the documentation to the bytes" '
        f'viewBox="-{_MARGIN} -{_MARGIN // 2} {_WIDTH + _MARGIN} {height + _MARGIN}">\n'
        f"<style>\n{palette}{_STYLE}</style>\n"
        f'<rect class="ground" x="-{_MARGIN}" y="-{_MARGIN // 2}" {size} rx="6"/>\n{body}</svg>\n'
    )


def _attribute(name: str, annotation: str) -> str:
    return f'{name} = "B"' if name == "tag" else f"{name}: {annotation}"


def _text(x: int, y: int, style: str, text: str) -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x}" y="{y}">{escape(text)}</text>\n'


def protocol() -> Protocol:
    """Return the spec's logical replication protocol."""
    return next(protocol for protocol in load(ROOT / "spec") if protocol.name == "logicalrep")


if __name__ == "__main__":
    PICTURE.write_text(picture(protocol()), encoding="utf-8")
