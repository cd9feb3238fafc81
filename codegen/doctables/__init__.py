"""A documentation page of PostgreSQL, HTML or DocBook, whole or a fragment -> the rows of its message tables."""

from codegen.doctables.page import Block, Group, Message, Page, Remark, Row
from codegen.doctables.printing import render
from codegen.doctables.reading import DocPageError, parse_page, read_page
from codegen.doctables.remarks import BlockKind, Choice, Condition, ConditionKind

__all__ = [
    "Block",
    "BlockKind",
    "Choice",
    "Condition",
    "ConditionKind",
    "DocPageError",
    "Group",
    "Message",
    "Page",
    "Remark",
    "Row",
    "parse_page",
    "read_page",
    "render",
]
