"""The files that commits of a Delta table removed."""

from __future__ import annotations

import json

from logicalrep.pipeline.formats.delta.descriptors import read_descriptor
from logicalrep.pipeline.formats.delta.logged_paths import removed_path
from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles


def commit_path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020}.json"


class DeltaRemovedFiles(RemovedFiles):
    def removed_since(self, listed: int, version: int) -> list[RemovedFile]:
        files: list[RemovedFile] = []
        uri = self.storage.uri_of(self.folder)
        for number in range(listed + 1, version + 1):
            path = commit_path(self.folder, number)
            text = self.storage.read(path)
            with self.storage.parsing(path):
                for action in map(json.loads, (text or b"").splitlines()):
                    if remove := action.get("remove"):
                        at, removed = remove["deletionTimestamp"] / 1000, removed_path(remove["path"], uri)
                        if removed is not None:
                            files.append(RemovedFile(at, removed, remove.get("size") or 0))
                        if vector := remove.get("deletionVector"):
                            location = read_descriptor(vector, uri).location
                            if location is not None:
                                files.append(RemovedFile(at, location.path, location.end))
        return files
