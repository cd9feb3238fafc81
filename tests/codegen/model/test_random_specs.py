"""Whatever the YAML is, the loader gives a protocol or a SpecError, and nothing else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.model import reader as loader
from codegen.model.nodes import Entries, Findings, read
from codegen.model.places import Finding, SpecError
from codegen.model.reader import load
from tests.codegen.model.small_spec import FILES, write
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

STEADY = settings(deadline=None, derandomize=True)
REAL = {str(path.relative_to(ROOT / "spec")): path.read_text(encoding="utf-8") for path in ROOT.glob("spec/**/*.yaml")}

WORDS = sorted({word for text in [*FILES.values(), *REAL.values()] for word in re.findall(r"[\w']+", text)})
LINES = sorted({line for text in FILES.values() for line in text.splitlines(keepends=True)})
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.text(max_size=8), st.sampled_from(WORDS)
)
KEYS = st.sampled_from(WORDS) | st.text(max_size=6) | st.integers() | st.none() | st.booleans()
STRUCTURES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20
)


@pytest.fixture(scope="module", autouse=True)
def _files_read_once() -> Iterator[None]:
    """A file that is as it was is not read again: reading YAML takes most of the time."""
    cache: dict[tuple[Path, str], Entries | None] = {}

    def read_once(path: Path, findings: Findings) -> Entries | None:
        try:
            key = (path, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return read(path, findings)
        if key not in cache:
            new = Findings()
            root = read(path, new)
            if new:
                findings.extend(new)
                return root
            cache[key] = root
        return cache[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "read", read_once)
        yield


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = tmp_path_factory.mktemp("real") / "spec"
    for name, text in REAL.items():
        (spec / name).parent.mkdir(parents=True, exist_ok=True)
        (spec / name).write_text(text, encoding="utf-8")
    return spec


def _load(spec: Path, changes: dict[str, str], files: dict[str, str]) -> None:
    """Load a spec with changed files, then put it back as it was."""
    for name, text in changes.items():
        (spec / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    findings = _findings(spec)
    for name in changes:
        (spec / name).write_text(files[name], encoding="utf-8")
    if findings is not None:
        assert findings
        assert findings == sorted(set(findings))
        for finding in findings:
            assert finding.text
            text = {**files, **changes}.get(str(finding.place.path.relative_to(spec)), "")
            assert 1 <= finding.place.line <= len(text.splitlines()) + 2


def _findings(spec: Path) -> list[Finding] | None:
    try:
        load(spec)
    except SpecError as error:
        return error.findings
    return None


@settings(STEADY, max_examples=100)
@given(file=st.sampled_from(sorted(FILES)), text=st.text(max_size=80))
def test_any_text(small: Path, file: str, text: str) -> None:
    _load(small, {file: text}, FILES)


@settings(STEADY, max_examples=200)
@given(file=st.sampled_from(sorted(FILES)), lines=st.lists(st.sampled_from(LINES), max_size=30))
def test_lines_in_any_order(small: Path, file: str, lines: list[str]) -> None:
    _load(small, {file: "".join(lines)}, FILES)


@settings(STEADY, max_examples=100)
@given(file=st.sampled_from(sorted(FILES)), structure=STRUCTURES)
def test_any_structure(small: Path, file: str, structure: object) -> None:
    _load(small, {file: yaml.safe_dump(structure, allow_unicode=True)}, FILES)


@settings(STEADY, max_examples=80)
@given(structure=st.dictionaries(st.sampled_from(["Row", "Cells", "Cell", "Stream Stop"]), STRUCTURES, max_size=4))
def test_any_structure_beneath_the_names_of_layouts(small: Path, structure: object) -> None:
    _load(small, {"shop/row.yaml": yaml.safe_dump(structure, allow_unicode=True)}, FILES)


def _damage(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 3)):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.randrange(6)
        if kind == 0:
            lines[at] = ""
        elif kind == 1:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 2:
            lines[at] *= 2
        elif kind == 3:
            lines[at] = draw.choice(["  ", "    "]) + lines[at]
        elif kind == 4:
            lines[at] = lines[at].removeprefix("  ")
        elif words := list(re.finditer(r"[\w']+", lines[at])):
            word = draw.choice(words)
            lines[at] = lines[at][: word.start()] + draw.choice(WORDS) + lines[at][word.end() :]
    return "".join(lines)


@settings(STEADY, max_examples=150)
@given(files=st.lists(st.sampled_from(sorted(FILES)), min_size=1, max_size=2), draw=st.randoms(use_true_random=False))
def test_a_damaged_small_spec(small: Path, files: list[str], draw: random.Random) -> None:
    _load(small, {file: _damage(draw, FILES[file]) for file in files}, FILES)


@settings(STEADY, max_examples=80)
@given(files=st.lists(st.sampled_from(sorted(REAL)), min_size=1, max_size=2), draw=st.randoms(use_true_random=False))
def test_a_damaged_real_spec(real: Path, files: list[str], draw: random.Random) -> None:
    _load(real, {file: _damage(draw, REAL[file]) for file in files}, REAL)
