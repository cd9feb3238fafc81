"""The files that commits of a Delta table removed."""

from __future__ import annotations

import json
import time

from logicalrep.pipeline.formats.delta.change_feed import FOLDER as CHANGES_FOLDER
from logicalrep.pipeline.formats.delta.descriptors import read_descriptor
from logicalrep.pipeline.formats.delta.logged_paths import removed_path
from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles


def commit_path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020}.json"


class DeltaRemovedFiles(RemovedFiles):
    own_folders = (f"{CHANGES_FOLDER}/",)

    def removed_since(self, listed: int, version: int) -> list[RemovedFile]:
        files: list[RemovedFile] = []
        uri = self.storage.uri_of(self.folder)
        for number in range(listed + 1, version + 1):
            path = commit_path(self.folder, number)
            text = self.storage.read(path)
            with self.storage.parsing(path):
                actions = [json.loads(line) for line in (text or b"").splitlines()]
                infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
                at_commit = next((info["timestamp"] / 1000 for info in infos if "timestamp" in info), time.time())
                for action in actions:
                    if change := action.get("cdc"):
                        files.append(RemovedFile(at_commit, change["path"], change["size"]))
                    if remove := action.get("remove"):
                        at, removed = remove["deletionTimestamp"] / 1000, removed_path(remove["path"], uri)
                        if removed is not None:
                            files.append(RemovedFile(at, removed, remove.get("size") or 0))
                        if vector := remove.get("deletionVector"):
                            location = read_descriptor(vector, uri).location
                            if location is not None:
                                files.append(RemovedFile(at, location.path, location.end))
        return files
