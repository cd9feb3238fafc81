r"""Untrusted text made safe to print: names, values and server messages may contain any character.

Escape sequences move a terminal's cursor and change its title, line breaks forge log lines, and direction characters
reorder text. Each becomes an escape such as `\n` or `\u202e`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

# Control characters, format characters except joiners, line separators, and surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_PASSWORD_IN_URL = re.compile(r"(://[^/?#@:\s]*):[^/?#@\s]*@")
_OF_SECRETS = "token|secret|passw|credential|sig|key|auth|header|sas"
_SECRET_NAME = re.compile(_OF_SECRETS, re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(rf"""([?&][\w.-]*(?:{_OF_SECRETS})[\w.-]*)=[^&\s'"]+""", re.IGNORECASE)
HIDDEN = "***"
# JSON has its own escapes in strings, and line breaks outside of strings.
_UNSAFE_IN_JSON = re.compile("(?!\n)" + _UNSAFE.pattern)


def visible(text: str) -> str:
    r"""Return a text in one line, with escapes for invisible characters."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def secrets_of(options: Mapping[str, str]) -> list[str]:
    """Return the values of options whose names suggest secrets."""
    return [value for name, value in options.items() if _SECRET_NAME.search(name)]


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text with `***` in place of the given secrets, passwords in URLs, and tokens in URLs' queries."""
    # A secret may contain another secret.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        for spelling in (secret, quote(secret, safe="")):
            text = text.replace(spelling, HIDDEN)
    return _SECRET_IN_QUERY.sub(rf"\1={HIDDEN}", _PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}@", text))


def visible_json(value: object, indent: int | None = None) -> str:
    r"""Return a value as JSON, with unchanged letters of all languages, and escapes for invisible characters."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)
