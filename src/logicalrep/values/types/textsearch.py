"""tsvector and tsquery, which stay text; their binary formats become the same text."""

from __future__ import annotations

from logicalrep.values.types.binary import BinaryReader

_WEIGHTS = ("", "C", "B", "A")


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def tsvector_binary(value: bytes, encoding: str) -> str:
    """Read a count of lexemes: each a string and a count of positions, which have a weight in the top bits."""
    reader = BinaryReader(value)
    lexemes = []
    for _ in range(reader.count(3)):
        lexeme = _quoted(str(reader.string(), encoding))
        positions = []
        for _ in range(reader.uint16()):
            packed = reader.uint16()
            positions.append(f"{packed & 0x3FFF}{_WEIGHTS[packed >> 14]}")
        lexemes.append(f"{lexeme}:{','.join(positions)}" if positions else lexeme)
    reader.end()
    return " ".join(lexemes)


_OPERAND, _OPERATOR = 1, 2
_NOT, _AND, _OR, _PHRASE = 1, 2, 3, 4
_PRIORITY = {_OR: 1, _AND: 2, _PHRASE: 3, _NOT: 4}

# A text in pieces, nested and joined once, since joining at every operator would take quadratic time.
_Nested = tuple["str | _Nested", ...]


def tsquery_binary(value: bytes, encoding: str) -> str:
    """Read a count of tokens in prefix order, with an operator's right operand before its left operand."""
    reader = BinaryReader(value)
    tokens: list[tuple[int, int, str]] = []  # operator (0: operand), distance, text
    for _ in range(reader.count(2)):
        kind = reader.uint8()
        if kind == _OPERAND:
            weights, prefix = reader.uint8(), reader.uint8()
            flags = ("*" if prefix else "") + "".join(
                letter for bit, letter in ((8, "A"), (4, "B"), (2, "C"), (1, "D")) if weights & bit
            )
            lexeme = _quoted(str(reader.string(), encoding))
            tokens.append((0, 0, f"{lexeme}:{flags}" if flags else lexeme))
        elif kind == _OPERATOR:
            operator = reader.uint8()
            if operator not in _PRIORITY:
                raise ValueError(f"unknown operator {operator}")
            tokens.append((operator, reader.uint16() if operator == _PHRASE else 0, ""))
        else:
            raise ValueError(f"unknown token kind {kind}")
    reader.end()
    if not tokens:
        return ""

    operands: list[tuple[int, _Nested]] = []  # the priority of the operand's own operator, its text
    for operator, distance, text in reversed(tokens):
        if not operator:
            operands.append((9, (text,)))
        elif len(operands) < (1 if operator == _NOT else 2):
            raise ValueError("an operator without its operands")
        elif operator == _NOT:
            operands.append((_PRIORITY[_NOT], ("!", _operand(*operands.pop(), _PRIORITY[_NOT]))))
        else:
            priority = _PRIORITY[operator]
            # A phrase on the right of a phrase is always in parentheses: the operator is not associative.
            right_operand = _operand(*operands.pop(), priority + (operator == _PHRASE))
            left_operand = _operand(*operands.pop(), priority)
            sign = {_AND: "&", _OR: "|"}.get(operator) or ("<->" if distance == 1 else f"<{distance}>")
            operands.append((priority, (left_operand, f" {sign} ", right_operand)))
    if len(operands) != 1:
        raise ValueError("operands without an operator")
    return _joined(operands[0][1])


def _operand(priority: int, text: _Nested, outer: int) -> _Nested:
    return ("( ", text, " )") if priority < outer else text


def _joined(nested: _Nested) -> str:
    out: list[str] = []
    pending: list[str | _Nested] = [nested]
    while pending:
        text = pending.pop()
        if isinstance(text, str):
            out.append(text)
        else:
            pending.extend(reversed(text))
    return "".join(out)
