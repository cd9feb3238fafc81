"""The generator's commands: what is committed is what the spec gives, and what is stale is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.emit.package import emit
from codegen.emit.rendering import MARK
from codegen.model.layouts import Alternative, Message, Part
from codegen.model.reader import load
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def emitted() -> dict[Path, str]:
    return emit(load(ROOT / "spec"))


@pytest.fixture(scope="module", autouse=True)
def _emitted_once(emitted: dict[Path, str]) -> Iterator[None]:
    """The commands of this module all emit the same spec; formatting it takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codegen.__main__.emit", lambda protocols: dict(emitted))
        yield


@pytest.fixture
def out(tmp_path: Path, emitted: dict[Path, str]) -> Path:
    """A folder with a package that is not stale."""
    folder = tmp_path / "out"
    for path, text in emitted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def _files(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (path.read_text(encoding="utf-8"), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_committed_package_is_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_docstrings_have_the_notes_on_servers_and_no_notes_on_the_page(emitted: dict[Path, str]) -> None:
    docstrings = " ".join(" ".join(text.split()) for text in emitted.values())
    for protocol in load(ROOT / "spec"):
        layouts: list[Message | Part | Alternative] = [*protocol.messages, *protocol.parts]
        layouts += [alternative for part in protocol.parts for alternative in part.alternatives]
        rows = [row for layout in layouts for row in layout.fields]
        noted = [*layouts, *(row for row in rows if "count" not in row.name)]
        assert [element.name for element in noted if element.note not in docstrings] == []
        assert [
            element.name for element in (*layouts, *rows) if element.page_note and element.page_note in docstrings
        ] == []
    assert "The start of the prepare record. Never zero." in docstrings
    assert "PRIMARY-STATUS-UPDATE Since PostgreSQL 19." in docstrings


def test_check_is_content_with_what_regen_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["regen", "--out", str(out)]) == 0
    written = capsys.readouterr().out.splitlines()
    assert f"wrote {out}/logicalrep_protocol/v1.py" in written
    assert len(written) == len(_files(out))
    assert main(["check", "--out", str(out)]) == 0
    assert capsys.readouterr() == ("", "")


def test_regen_writes_nothing_the_second_time(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old_files = _files(out)
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == ("", "")
    assert _files(out) == old_files


def test_a_changed_file_is_shown_and_mended(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old_files = _files(out)
    path = out / "logicalrep_protocol" / "v1.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('tag: ClassVar[Literal["B"]]', 'tag: ClassVar[Literal["Z"]]', 1), encoding="utf-8")
    assert main(["check", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith(f"--- {path} (as it is)\n+++ {path} (as the spec has it)\n@@ ")
    assert '\n-    tag: ClassVar[Literal["Z"]] = "B"\n+    tag: ClassVar[Literal["B"]] = "B"\n' in printed.out
    assert printed.err == "1 stale, run `make regen`: logicalrep_protocol/v1.py\n"
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == (f"wrote {path}\n", "")
    new_files = _files(out)
    assert {name: text for name, (text, _) in new_files.items()} == {
        name: text for name, (text, _) in old_files.items()
    }
    assert {name for name in new_files if new_files[name][1] != old_files[name][1]} == {"logicalrep_protocol/v1.py"}


def test_a_file_of_an_earlier_spec_is_shown_and_removed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = out / "logicalrep_protocol" / "v9.py"
    mark = "Generated from the spec by `python -m codegen regen`; do not edit."
    path.write_text(f'"""{mark}"""\n', encoding="utf-8")
    assert main(["check", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert printed.out == f'--- {path} (as it is)\n+++ {path} (as the spec has it)\n@@ -1 +0,0 @@\n-"""{mark}"""\n'
    assert printed.err == "1 stale, run `make regen`: logicalrep_protocol/v9.py\n"
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == (f"removed {path}\n", "")
    assert not path.exists()


def test_every_file_with_a_text_has_the_mark(emitted: dict[Path, str]) -> None:
    assert [path.name for path, text in emitted.items() if MARK not in text] == ["py.typed"]


@pytest.mark.parametrize("command", ["check", "regen"])
@pytest.mark.parametrize("content", [b"own = 1\n", b"", b"\xff\xfe\x00"], ids=["text", "empty", "binary"])
def test_a_foreign_file_is_a_finding_and_stays(
    out: Path, command: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "logicalrep_protocol" / "columnar" / "own.py"
    path.write_bytes(content)
    assert main([command, "--out", str(out)]) == 1
    finding = f"{path}: the generator has not written it; move it out of the package\n"
    assert capsys.readouterr() == ("", finding)
    assert path.read_bytes() == content


def test_a_binary_file_in_the_place_of_a_generated_one_is_shown_and_mended(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "logicalrep_protocol" / "v1.py"
    old_bytes = path.read_bytes()
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["check", "--out", str(out)]) == 1
    assert capsys.readouterr().err == "1 stale, run `make regen`: logicalrep_protocol/v1.py\n"
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == (f"wrote {path}\n", "")
    assert path.read_bytes() == old_bytes


def test_a_missing_file_is_shown_and_written(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = out / "logicalrep_protocol" / "decoder.py"
    text = path.read_text(encoding="utf-8")
    path.unlink()
    assert main(["check", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith(f"--- {path} (as it is)\n+++ {path} (as the spec has it)\n@@ -0,0 +1,")
    assert printed.err == "1 stale, run `make regen`: logicalrep_protocol/decoder.py\n"
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == (f"wrote {path}\n", "")
    assert path.read_text(encoding="utf-8") == text


def test_a_missing_file_without_a_text_is_stale_too(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "logicalrep_protocol" / "py.typed").unlink()
    assert main(["check", "--out", str(out)]) == 1
    assert capsys.readouterr().err == "1 stale, run `make regen`: logicalrep_protocol/py.typed\n"


def test_compiled_files_are_let_alone(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = out / "logicalrep_protocol" / "__pycache__" / "v1.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"\xff\xfe")
    assert main(["check", "--out", str(out)]) == 0
    assert main(["regen", "--out", str(out)]) == 0
    assert capsys.readouterr() == ("", "")
    assert cache.exists()


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["mend"], 2), (["check", "--spec"], 2), (["--help"], 0)])
def test_wrong_arguments_are_an_error_of_the_command_line(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == code
    printed = capsys.readouterr()
    assert (printed.err if code else printed.out).startswith("usage: python -m codegen ")


def _run(*arguments: str, cwd: Path, seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codegen", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
    )


def test_the_output_depends_on_neither_hashes_nor_the_folder(tmp_path: Path, emitted: dict[Path, str]) -> None:
    wanted = {str(path): text for path, text in emitted.items()}
    shutil.copytree(ROOT / "spec", tmp_path / "copy")
    for index, (seed, arguments) in enumerate({"1": [], "2": ["--spec", "copy"]}.items()):
        out = tmp_path / str(index)
        result = _run("regen", "--out", str(out), *arguments, cwd=tmp_path, seed=seed)
        assert (result.returncode, result.stderr) == (0, "")
        assert f"wrote {index}/logicalrep_protocol/__init__.py" in result.stdout.splitlines()
        assert {name: text for name, (text, _) in _files(out).items()} == wanted


def test_the_program_finds_the_committed_package_from_anywhere(tmp_path: Path) -> None:
    result = _run("check", cwd=tmp_path, seed="3")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
