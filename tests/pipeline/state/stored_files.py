"""The files of a destination, written out with their keys."""

from __future__ import annotations

from typing import Any

STORED_HISTORY = '{"last": {"lsn": "0/18", "xid": 740, "timestamp": 5}, "slot_began": "0/8", "server_started": "1.5", "origin": "none"}'

STORED_TABLE_STATE = """{
  "folder": "public/t", "version": 3, "lsn": "0/10", "load": "load", "timeline": 1, "phase": "stopped", "error": "why",
  "oid": 7, "companions": {"history": 4}, "rows": 5, "commit_timestamp": "2026-01-01T00:00:00+00:00",
  "progress": {"rows": 8, "estimate": 9, "snapshot_since": "2026-01-01T00:00:00+00:00"}, "refused": "0/6",
  "skipped": [{"lsn": "0/5", "changes": 2, "at": "2026-01-01T00:00:00+00:00", "folders": ["public/t"]}],
  "unrepresentable": {"price": 2}, "commits": {"table": "ab", "history": null},
  "buffered": {"end": "0/10", "load": "load"}
}"""

STORED_SETTINGS = """{
  "unrepresentable": "text", "numeric": "text", "numeric_columns": {}, "deletes": "soft", "history": true, "append": false, "key": ["id"],
  "masked": {"a": "nulled"}, "left_out": ["b"], "mask_key": "check", "origin": "none",
  "write_mode": "merge-on-read", "format": "iceberg", "format_version": 2, "change_data_feed": false, "partition_by": ["day(at)"]
}"""

STORED_TABLE = """{
  "oid": 7, "schema": "public", "name": "t", "replica_identity": "d", "columns": [[1, "id", 9, -1, ["public", "moods"]]],
  "types": {"9": {
    "namespace": "public", "name": "moods", "is_base": false, "delimiter": ";",
    "element": {"namespace": "public", "name": "mood", "is_base": true, "delimiter": ",", "element": null}
  }},
  "key": ["id"], "files": [[7, 8]], "published": "digest", "settings": SETTINGS, "protected": [[2, "b"]],
  "dropped_columns": ["gone"], "companion": "history", "type_parts": [[9, 10, "happy", 11]],
  "evidence": {
    "columns": [[1, "id", 9, -1]], "columns_written": [[1, 12]], "numbers": 3, "published": ["p"],
    "written": [[7, "w"]], "links": [[13, 7, 14]],
    "bounds": [[13, 1, [["=", "happy"]]]], "labelled": [[1, 9, 0]],
    "key_indexes": [[15, 0]], "filled": [16], "logged": ["t17"], "lc_monetary": "C"
  },
  "skipped": [["0/5", 2, "2026-01-01T00:00:00+00:00"]], "comments": [[0, "all moods"], [1, "its name"]],
  "partitions": [["day", 1, 0]], "texts": []
}""".replace("SETTINGS", STORED_SETTINGS)

FILES = {
    "_logicalrep/destination.json": """{
      "slot": "s", "publication": "p", "system_identifier": 1, "database": "d", "format": 1,
      "table_format": "iceberg", "catalog": "sqlite:///c.db"
    }""",
    "_logicalrep/states/00000000000000000002.json": """{
      "format": 1, "writer": "RANDOM", "lsn": "0/20", "commit_timestamp": "2026-01-01T00:00:00+00:00",
      "caught_up": "2026-01-02T00:00:00+00:00", "until": "2026-01-03T00:00:00+00:00", "history": HISTORY, "tables": {"public.t": TABLE}
    }""".replace("TABLE", STORED_TABLE_STATE).replace("HISTORY", STORED_HISTORY),
    "_logicalrep/past/20260102T000000.000000Z.json": """{
      "format": 1, "writer": "RANDOM", "lsn": "0/20", "commit_timestamp": "2026-01-01T00:00:00+00:00",
      "caught_up": "2026-01-02T00:00:00+00:00", "until": "2026-01-02T00:00:00+00:00", "history": HISTORY, "tables": {"public.t": TABLE}
    }""".replace("TABLE", STORED_TABLE_STATE).replace("HISTORY", STORED_HISTORY),
    "_logicalrep/settings.json": """{
      "format": 1, "defaults": SETTINGS, "tables": {"public.t": SETTINGS}, "protected": {"7": "public.t"},
      "numbers": {"7": {"b": 2}}
    }""".replace("SETTINGS", STORED_SETTINGS),
    "_logicalrep/pending/public/t.json": """{
      "kind": "held", "folder": "public/t", "refused": "0/6", "since": 1.5
    }""",
    "_logicalrep/pending/public/u.json": '{"kind": "table", "folder": "public/u", "reason": "asked for", "replaces": "load", "begin": null}',
    "_logicalrep/pending/public/w.json": """{
      "kind": "buffered", "folder": "public/w", "reason": "its changes are buffered"
    }""",
    "_logicalrep/pending/public/v.json": """{
      "kind": "partitions", "folder": "public/v", "reason": "attached", "partitions": [7, 8], "begin": 2.5
    }""",
    "_logicalrep/reloads/public/t.json": '{"loads": [[1.5, "new table", 1]]}',
    "_logicalrep/buffered/public/t/0000000000000010-0000000000000000.parquet": "null",
    "_logicalrep/lost_slots.json": '{"times": [1.5]}',
    "_logicalrep/paused.json": '{"since": "2026-01-01T00:00:00+00:00"}',
    "_logicalrep/requests/RANDOM.json": '{"skip": ["public", "t", "0/6"]}',
    "public/t/_removed.json": '{"version": 4, "removed": [[1.5, "part-1.parquet", 100]]}',
    "public/t/_versions.json": """{
      "versions": [[3, 1.5, "metadata/snap-7-RANDOM.avro", 0]], "tables": [TABLE]
    }""".replace("TABLE", STORED_TABLE),
}
"""The files of a destination by their paths; a number or a name that differs each time is RANDOM."""

REQUESTED_PART: dict[str, Any] = {
    "part": {
        "table": ["public", "t"],
        "condition": {
            "any": [
                {"column": "id", "operator": "<", "value": "100"},
                {
                    "all": [
                        {"column": "id", "operator": ">=", "value": "200"},
                        {"column": "id", "operator": "<=", "value": "300"},
                    ]
                },
            ]
        },
        "partition": {"oid": 7, "name": ["public", "t_7"]},
    }
}
"""Another request."""
