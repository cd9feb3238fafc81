"""A page's rows as a table of text, to start the transcription of a new release from."""

from __future__ import annotations

from codegen.pagecheck.page import Message, Page, Row

_HEAD = ("line", "message", "row", "type", "since", "remarks", "description")


def render(page: Page) -> str:
    """The rows, one a line, under the headings and texts that stand between them on the page."""
    lines: list[str | tuple[str, ...]] = []
    group = None
    for message in page.messages:
        if message.group is not group:
            group = message.group
            if group.heading:
                lines += ["", f"{group.line}: {group.heading}"]
        lines += ["", *_message_lines(message)]
    cells = [_HEAD, *(line for line in lines if isinstance(line, tuple))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD) - 1)]
    title = f"PostgreSQL {page.release}: {page.source}" if page.release else page.source
    text = [title]
    if page.head_missing or page.messages[0].head_missing:
        text.append("(the page begins in the middle)")
    text += ["", _padded(_HEAD, widths)]
    text += [_padded(line, widths) if isinstance(line, tuple) else line for line in lines]
    if page.tail_missing or page.messages[-1].tail_missing:
        text += ["", "(the page ends in the middle)"]
    return "\n".join(text) + "\n"


def _message_lines(message: Message) -> list[str | tuple[str, ...]]:
    lines: list[str | tuple[str, ...]] = []
    name = message.name or "(before the page)"
    if message.direction:
        name += f" ({message.direction})"
    if message.anchor:
        lines.append(f"{message.line}: #{message.anchor}")
    position = 0
    for block in message.blocks:
        if block.text and block.kind != "fields":
            lines.append(f"{block.line}: {block.text}")
        for row in block.rows:
            position += 1
            lines.append(_cells(name, position, row))
    if not position:
        lines.append((str(message.line), name, "", "", "", "", ""))
    lines += [f"{remark.line}: {remark.text}" for remark in message.remarks]
    return lines


def _cells(name: str, position: int, row: Row) -> tuple[str, ...]:
    remarks: list[str] = []
    if row.condition:
        remarks.append(row.condition.kind)
    if row.each:
        remarks.append(f"for each {row.each}")
    if row.fixed_value:
        remarks.append(f"must be {row.fixed_value}")
    return (
        str(row.line),
        name,
        str(position),
        row.type or "(cut off)",
        str(row.since or ""),
        ", ".join(remarks),
        row.description,
    )


def _padded(cells: tuple[str, ...], widths: list[int]) -> str:
    *padded, last = cells
    return "  ".join([*(cell.ljust(width) for cell, width in zip(padded, widths, strict=True)), last]).rstrip()
