"""The Python codecs of PostgreSQL's character sets, for a session's client_encoding."""

from __future__ import annotations

from logicalrep_runtime.errors import EncodingError

CODECS = {
    "BIG5": "big5",
    "EUCCN": "gb2312",
    "EUCJIS2004": "euc_jis_2004",
    "EUCJP": "euc_jp",
    "EUCKR": "euc_kr",
    "GB18030": "gb18030",
    "GBK": "gbk",
    "ISO88595": "iso8859-5",
    "ISO88596": "iso8859-6",
    "ISO88597": "iso8859-7",
    "ISO88598": "iso8859-8",
    "JOHAB": "johab",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "LATIN1": "iso8859-1",
    "LATIN2": "iso8859-2",
    "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16",
    "SHIFTJIS2004": "shift_jis_2004",
    "SJIS": "shift_jis",
    "SQLASCII": "ascii",
    "UHC": "cp949",
    "UNICODE": "utf-8",
    "UTF8": "utf-8",
    "WIN866": "cp866",
    "WIN874": "cp874",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN1252": "cp1252",
    "WIN1253": "cp1253",
    "WIN1254": "cp1254",
    "WIN1255": "cp1255",
    "WIN1256": "cp1256",
    "WIN1257": "cp1257",
    "WIN1258": "cp1258",
}


def python_codec(client_encoding: str) -> str:
    """Return a client_encoding's codec. Raises EncodingError if Python has none (MULE_INTERNAL, EUC_TW).

    The codec of SQL_ASCII is plain ASCII, as the meaning of its other bytes is unknown.
    """
    name = "".join(character for character in client_encoding.upper() if character.isalnum())
    if name not in CODECS:
        raise EncodingError(f"client_encoding {client_encoding!r} has no Python codec; use UTF8 for the session")
    return CODECS[name]
