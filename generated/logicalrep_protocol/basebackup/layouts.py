"""Every layout as data: the rows of the documentation's tables as operations, each with its first version.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_runtime.layout import MessageLayout, ProtocolLayout
from logicalrep_runtime.operations import Bytes, Constant, Take, Text

BASEBACKUP = ProtocolLayout(
    name="basebackup",
    versions=(1,),
    outside="before the first archive",
    session={},
    tracked=(),
    parse_arguments=("encoding",),
    messages=(
        MessageLayout(
            name="New archive",
            tag="n",
            since=1,
            sender="server",
            reference="https://www.postgresql.org/docs/18/protocol-replication.html",
            places=("outside", "file of the backup"),
            opens="file of the backup",
            closes=("file of the backup",),
            doc="Begins an archive in tar format, of the main data directory or of a tablespace.",
            operations=(
                Constant(name="tag", type="Byte1('n')", width=1, is_character=True, code=110),
                Text(name="file_name", type="String", doc="The file name of the archive."),
                Text(
                    name="tablespace_path",
                    type="String",
                    doc="The full path of the tablespace's directory; empty for the main data directory.",
                ),
            ),
        ),
        MessageLayout(
            name="Manifest",
            tag="m",
            since=1,
            sender="server",
            reference="https://www.postgresql.org/docs/18/protocol-replication.html",
            places=("outside", "file of the backup"),
            opens="file of the backup",
            closes=("file of the backup",),
            doc="Begins the backup manifest, a list of the files of the backup.",
            operations=(Constant(name="tag", type="Byte1('m')", width=1, is_character=True, code=109),),
        ),
        MessageLayout(
            name="Archive or manifest data",
            tag="d",
            since=1,
            sender="server",
            reference="https://www.postgresql.org/docs/18/protocol-replication.html",
            places=("file of the backup",),
            doc="A piece of the archive or of the manifest that the last such message began.",
            operations=(
                Constant(name="tag", type="Byte1('d')", width=1, is_character=True, code=100),
                Bytes(name="data", type="Byten", doc="The data; pieces may end anywhere."),
            ),
        ),
        MessageLayout(
            name="Progress report",
            tag="p",
            since=1,
            sender="server",
            reference="https://www.postgresql.org/docs/18/protocol-replication.html",
            places=("outside", "file of the backup"),
            doc="Says how much of the backup the server has processed.",
            operations=(
                Constant(name="tag", type="Byte1('p')", width=1, is_character=True, code=112),
                Take(
                    name="byte_count",
                    type="Int64",
                    width=8,
                    signed=True,
                    doc="The number of bytes of archive data since the backup began, before compression on the server.",
                ),
            ),
        ),
    ),
    parts={},
)
"""The messages of a walsender in CopyData during BASE_BACKUP."""
