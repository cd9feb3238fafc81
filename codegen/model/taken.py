"""Names that generated code reserves: the functions return the owner of a reserved name, None for a free name."""

from __future__ import annotations

import builtins
import keyword

from codegen.model.model import Protocol
from codegen.model.names import class_name, snake_case

_CLASSES = {
    "AnyChar", "AnyMessage", "Array", "Boolean", "Buffer", "Bytes", "Callable", "Char", "ClassVar", "Const",
    "DataclassStruct", "DecodeError", "Decoder", "Dictionaries", "Discriminated", "EncodeError", "FixedBytes",
    "Flags", "Format", "FormatError", "GreedyBytes", "IfPresent", "IfSession", "Iterator", "Literal",
    "MalformedError", "Mapping", "MessageLength", "NoneOf", "NullableBytes", "OneOf", "OptionalChar", "PARSE",
    "Rebuild", "StrEnum", "String", "StructChoice", "Tagged", "Typed", "Until", "UntilZero", "ValueError", "Whole",
}  # fmt: skip
_ATTRIBUTES = {
    "build": "the method that writes a message",
    "struct": "the Struct of each class",
    "tag": "the tag of each message",
    "kinds": "the tags of a row's values",
    "values": "the values of a row",
    "of": "the method that makes a row of values",
}
_IN_CLASSES = {"bool", "bytes", "classmethod", "getattr", "int", "property", "staticmethod", "str", "tuple"}
_IN_CONSTRUCTORS = {"cls", "flags_of", "self", "subcon"}
_VARIABLES = {
    "data", "offset", "encoding", "start", "end", "stop", "item", "kind", "read_length", "self", "out", "error",
    "encode_error", "flags_of", "lsn_of",
}  # fmt: skip
_OF_SESSIONS = {
    "block", "decode", "described", "facts", "given", "layouts", "message", "messages", "parsers", "plan", "plans",
    "sender", "version",
}  # fmt: skip
_MODULES = {"columnar", "decoder", "layouts", "versions"}


def attribute(name: str) -> str | None:
    """Return the owner of a name that a field or a bit cannot have, as attribute and parameter of a class."""
    if name in _IN_CLASSES:
        return "a builtin of Python that generated classes use"
    if name in _IN_CONSTRUCTORS:
        return "a name that constructors have for themselves"
    return _ATTRIBUTES.get(name) or _keyword(name)


def fact(name: str, protocol: Protocol) -> str | None:
    """Return the owner of a name that a session fact cannot have, as argument and attribute of decoders."""
    remembered = {described(message.name) for message in protocol.messages if message.describes is not None}
    if name in _OF_SESSIONS | remembered:
        return "an attribute or argument of decoders and their sessions"
    return attribute(name) or ("what the generated code has for itself" if local(name) != name else None)


def local(name: str) -> str:
    """Return the variable of a field in generated code, with a suffix if Python or the code reserves the name."""
    return f"{name}_" if name in _VARIABLES or hasattr(builtins, name) else name


def python_class(name: str, protocol: Protocol) -> str | None:
    """Return the owner of a name that the class of a message, part, alternative or enumeration cannot have."""
    if name in protocol.types or any(name == named.python for named in protocol.types.values()):
        return "a named type"
    if name == protocol.name.upper():
        return "the constant with the protocol's layouts"
    return "what every generated module imports or defines" if name in _CLASSES else _keyword(name)


def module(name: str) -> str | None:
    """Return the owner of a name that the module of a version cannot have."""
    return "a module that is always generated" if name in _MODULES else _keyword(name)


def described(name: str) -> str:
    """Return the decoder's attribute with the last messages of that name: Relation -> relations."""
    return f"{snake_case(class_name(name))}s"


def _keyword(name: str) -> str | None:
    return "Python's syntax" if keyword.iskeyword(name) else None
