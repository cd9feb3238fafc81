"""Publications that are not there at some point of the WAL: what was changed there cannot be told any more.

Up to PostgreSQL 17 that is an error of the server. 18 leaves those changes out, with a warning and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.errors import Diagnostic

from logicalrep.postgres.slots import Connection, SlotError

# The functions of the server that say so: their words may be in any language.
_WARNS = "LoadPublications"
_REFUSE = ("GetPublicationByName", "get_publication_oid")


class PublicationError(SlotError):
    """A publication that did not exist when a change was made that is to be read."""

    code = "PUBLICATION_GONE"


@contextmanager
def publications_there(connection: Connection) -> Iterator[None]:
    """Raises PublicationError where the server finds a publication missing while it is asked for changes."""
    missing: list[str] = []

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.source_function == _WARNS:
            missing.append(diagnostic.message_primary or "")

    connection.add_notice_handler(note)
    try:
        yield
    except psycopg.errors.UndefinedObject as error:
        if error.diag.source_function not in _REFUSE:
            raise
        raise _error(error.diag.message_primary or "") from error
    finally:
        connection.remove_notice_handler(note)
    if missing:
        raise _error(missing[0])


def _error(said: str) -> PublicationError:
    return PublicationError(
        f"the server comes to a change from before a publication was made, or after it was dropped ({said}): what was "
        "published then is not known, and to make it again does not help; make a new slot, copy the tables anew and "
        "start with a new checkpoint"
    )
