"""The names that the generated code has for itself: by what a name of the spec is taken, None if by nothing."""

from __future__ import annotations

import builtins
import keyword

from codegen.spec.model import Protocol
from codegen.spec.names import class_name, snake_case

_CLASSES = {
    "AnyMessage", "Array", "Boolean", "Buffer", "Bytes", "Callable", "Char", "ClassVar", "Const", "DataclassStruct",
    "DecodeError", "Decoder", "EncodeError", "Flags", "Format", "FormatError", "GreedyBytes", "IfPresent", "IfSession",
    "Literal", "MalformedError", "NoneOf", "OptionalChar", "Rebuild", "StrEnum", "String", "Tagged", "Typed", "Whole",
}  # fmt: skip
_ATTRIBUTES = {
    "build": "the method that writes a message",
    "struct": "the Struct of each class",
    "tag": "the tag of each message",
    "kinds": "the tags of a row's values",
    "values": "the values of a row",
    "of": "the method that makes a row of values",
}
_PARAMETERS = {"self", "flags_of", "subcon"}
_VARIABLES = {
    "data", "offset", "encoding", "start", "end", "item", "kind", "read_length", "self", "out", "error", "encode_error",
    "flags_of", "lsn_of",
}  # fmt: skip
_OF_SESSIONS = {
    "block", "decode", "described", "facts", "given", "layouts", "message", "messages", "parsers", "plan", "plans",
    "sender", "version",
}  # fmt: skip
_MODULES = {"columnar", "decoder", "layouts", "versions"}


def bit(name: str) -> str | None:
    """Of a bit, an attribute and a parameter of constructors."""
    return _attribute(name) or ("a name that constructors have for themselves" if name in _PARAMETERS else None)


def field(name: str, protocol: Protocol | None) -> str | None:
    """Of a field, which is a variable too; of one of an alternative, for which there is none, without a protocol."""
    if protocol is None:
        return _attribute(name)
    is_fact = any(name == fact.name for fact in protocol.session)
    return _attribute(name) or _variable(name) or ("a session fact" if is_fact else None)


def fact(name: str, protocol: Protocol) -> str | None:
    """Of a session fact, an argument and an attribute of decoders."""
    remembered = {described(message.name) for message in protocol.messages if message.describes is not None}
    is_sessions = name in _OF_SESSIONS | remembered
    owner = "an attribute or argument of decoders and their sessions" if is_sessions else None
    return _attribute(name) or _variable(name) or owner


def python_class(name: str, protocol: Protocol) -> str | None:
    """Of a message, part, alternative or enumeration, by the name of its class."""
    if name in protocol.types or any(name == named.python for named in protocol.types.values()):
        return "a named type"
    return "what every generated module imports or defines" if name in _CLASSES else _keyword(name)


def module(name: str) -> str | None:
    """Of the module of a version."""
    return "a module that is always generated" if name in _MODULES else _keyword(name)


def described(name: str) -> str:
    """The attribute in which a decoder keeps the last messages of that name: Relation -> relations."""
    return f"{snake_case(class_name(name))}s"


def _attribute(name: str) -> str | None:
    return _python(name) or _ATTRIBUTES.get(name)


def _variable(name: str) -> str | None:
    return "a variable of the code that reads and writes messages" if name in _VARIABLES else None


def _keyword(name: str) -> str | None:
    return "Python's syntax" if keyword.iskeyword(name) else None


def _python(name: str) -> str | None:
    return _keyword(name) or ("a builtin of Python" if hasattr(builtins, name) else None)
