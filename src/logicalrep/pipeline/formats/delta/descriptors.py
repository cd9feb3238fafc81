"""The descriptors of deletion vectors in a Delta table's log.

Source: "Deletion Vector Descriptor Schema" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from typing import Any

from logicalrep.pipeline.formats.delta.logged_paths import stored_path
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector, VectorLocation
from logicalrep.pipeline.storage.storage import below

_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The digits of ZeroMQ's Z85, the log's encoding of bytes; `base64.b85encode` has other digits."""
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


def _encoded(data: bytes) -> str:
    return base64.b85encode(data + bytes(-len(data) % 4)).translate(_TO_Z85).decode()


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))


def vector_path(id_: uuid.UUID) -> str:
    return f"deletion_vector_{id_}.bin"


def descriptor(vector: DeletionVector) -> dict[str, object]:
    if vector.location is None:
        return {
            "storageType": "i",
            "pathOrInlineDv": _encoded(vector.data),
            "sizeInBytes": len(vector.data),
            "cardinality": vector.count,
        }
    location, text = vector.location, vector.location.uri
    if not text:
        prefix, _, name = location.path.rpartition("/")
        text = prefix + _encoded(uuid.UUID(name[len("deletion_vector_") : -len(".bin")]).bytes)
    return {
        "storageType": "p" if location.uri else "u",
        "pathOrInlineDv": text,
        "offset": location.offset,
        "sizeInBytes": location.size,
        "cardinality": vector.count,
    }


def read_descriptor(fields: Mapping[str, Any], uri: str) -> DeletionVector:
    """Return the vector of a descriptor.

    Args:
        fields: the descriptor.
        uri: the table's URI: other programs may write the absolute path of a file of vectors.

    Raises ValueError if the descriptor is invalid, or the vector is outside of the table's folder.
    """
    kind, text, size = fields["storageType"], fields["pathOrInlineDv"], int(fields["sizeInBytes"])
    if kind == "i":
        return DeletionVector(int(fields["cardinality"]), _decoded(text)[:size])
    if kind == "u":
        prefix = f"{text[:-20]}/" if len(text) > 20 else ""
        path = prefix + vector_path(uuid.UUID(bytes=_decoded(text[-20:])))
    elif kind == "p":
        path = stored_path(text, uri)
    else:
        raise ValueError(f"a deletion vector has the unknown kind {kind!r}")
    location = VectorLocation(below(path), int(fields.get("offset") or 0), size, text if kind == "p" else "")
    return DeletionVector(int(fields["cardinality"]), location=location)
