"""The pages of the reference: complete, well-formed, the same for the same spec, and legible."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from codegen.__main__ import main
from codegen.model.model import Protocol
from codegen.model.reader import load
from codegen.reference import pages as reference_pages
from codegen.reference import site as reference
from tests.codegen.reference.conftest import SPEC

pytestmark = pytest.mark.slow

ROOT = SPEC.parent
VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """What the tests ask of a page: ids, links, headings, resources, and that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.resources: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        elif "href" in values or "src" in values:
            self.resources.append(values.get("href") or values["src"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()


@pytest.fixture(scope="module")
def pages(files: dict[str, str]) -> dict[str, Page]:
    return {name: Page(text) for name, text in files.items() if name.endswith(".html")}


def test_there_is_a_page_for_each_protocol_and_four_more(files: dict[str, str]) -> None:
    assert sorted(files) == [
        "basebackup.html",
        "changes.html",
        "copy_binary.html",
        "index.html",
        "logicalrep.html",
        "pgwire.html",
        "style.css",
        "types.html",
        "walsender.html",
    ]


def test_elements_are_closed_and_ids_unique(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.open == [], name
        assert len(page.ids) == len(set(page.ids)), name


def test_links_resolve(pages: dict[str, Page], protocols: tuple[Protocol, ...]) -> None:
    official = [protocol.page for protocol in protocols]
    official.append("https://www.postgresql.org/docs/19/protocol-replication.html")
    for name, page in pages.items():
        for link in page.links:
            target, _, fragment = link.partition("#")
            if target.startswith("https:"):
                assert target in official, (name, link)
            else:
                assert not fragment or fragment in pages[target or name].ids, (name, link)


def test_nothing_is_loaded_but_the_style(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.resources == ["data:,", "style.css"], name
        assert "script" not in page.tags, name


def test_headings_skip_no_level(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.headings[0] == 1, name
        assert page.headings.count(1) == 1, name
        for level, next_level in pairwise(page.headings):
            assert next_level <= level + 1, (name, page.headings)


def test_every_message_has_anchor_picture_table_and_official_link(
    files: dict[str, str], pages: dict[str, Page], protocols: tuple[Protocol, ...]
) -> None:
    for protocol in protocols:
        name = f"{protocol.name}.html"
        for message in protocol.messages:
            anchor = reference_pages.anchor_of(message)
            assert anchor in pages[name].ids
            assert f'<title id="{anchor}-' in files[name]
            assert f'aria-label="Fields of {message.name}"' in files[name]
            assert protocol.official(message) in pages[name].links
            for row in message.fields:
                if not row.is_in(len(protocol.versions)):
                    continue
                assert f"{anchor}.{row.name}" in pages[name].ids
                assert row.doc == "" or str(reference.prose(row.doc)) in files[name]
                for text in (row.note, row.page_note):
                    assert str(reference.prose(text)) in files[name]


def test_the_matrix_knows_new_changed_and_conditional_messages(messages: Protocol) -> None:
    by_name = {message.name: reference_pages.states(messages, message) for message in messages.messages}
    assert by_name["Begin"] == ("new", "same", "same", "same")
    assert by_name["Insert"] == ("new", "changed", "same", "same")
    assert by_name["Stream Abort"] == ("with", "new", "same", "changed")
    assert by_name["Stream Prepare"] == ("absent", "two_phase", "new", "same")
    assert by_name["Prepare"] == ("two_phase", "two_phase", "new", "same")


def test_the_step_to_version_4(messages: Protocol) -> None:
    step = reference_pages.steps_between(messages)[-1]
    assert (step.older.number, step.newer.number) == (3, 4)
    assert [fact.name for fact in step.facts] == ["parallel"]
    assert step.new == ()
    assert [(change.entry.layout.name, [row.field.name for row in change.added]) for change in step.changed] == [
        ("Stream Abort", ["abort_lsn", "abort_timestamp"])
    ]
    assert len(step.same) == len(messages.messages) - 1


def test_effects_read_as_sentences(messages: Protocol) -> None:
    assert "rolls back a prepared transaction" in reference_pages.effects(messages)
    assert "commits a transaction" in reference_pages.effects(messages)


def test_python_classes_are_named_with_the_versions_that_share_them(files: dict[str, str]) -> None:
    text = files["logicalrep.html"].replace("\u200b", "")
    assert "<code>logicalrep_protocol.v4.StreamAbort</code>" in text
    assert "v2 and v3 share another" in text
    assert "abort_lsn: Lsn | None = None" in text


def test_a_new_field_appears_without_a_hand_edit(tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(SPEC, spec)
    with (spec / "logicalrep/stream_abort.yaml").open("a", encoding="utf-8") as file:
        file.write("    - cause: Int16\n      since: 4\n      doc: Why it <ended> & so on.\n")
    files = {str(path): text for path, text in reference.site(load(spec)).items()}
    assert 'id="stream-abort.cause"' in files["logicalrep.html"]
    assert "Why it &lt;ended&gt; &amp; so on." in files["logicalrep.html"]
    assert ">cause</text>" in files["logicalrep.html"]
    assert "<code>cause</code>" in files["changes.html"]


def test_an_edited_spec_has_made_up_examples(tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(SPEC, spec)
    query = spec / "pgwire/query.yaml"
    query.write_text(query.read_text(encoding="utf-8").replace("Byte1('Q')", "Byte1('q')"), encoding="utf-8")
    page = reference.site(load(spec))[Path("pgwire.html")]
    assert re.search(r"<figcaption>Made up:</figcaption>\s*<div.*?of a message Query\"", page)
    assert re.search(r"<figcaption>As PostgreSQL 18 sent it:</figcaption>\s*<div.*?of a message ReadyForQuery\"", page)


def test_a_new_version_gets_its_column_and_its_step(messages: Protocol) -> None:
    newest = replace(messages.versions[-1], number=5, module="v5", server=19)
    files = reference.site([replace(messages, versions=(*messages.versions, newest))])
    assert 'id="logicalrep-5"' in files[Path("changes.html")]
    assert "PostgreSQL 19" in files[Path("index.html")]


def test_the_same_spec_gives_the_same_bytes(files: dict[str, str]) -> None:
    code = (
        "import hashlib, sys; from pathlib import Path; from codegen.model.reader import load; "
        "from codegen.reference.site import site; "
        f"texts = site(load(Path({str(SPEC)!r}))); "
        "print(hashlib.sha256(''.join(f'{name}{text}' for name, text in texts.items()).encode()).hexdigest())"
    )
    wanted = hashlib.sha256("".join(f"{name}{text}" for name, text in files.items()).encode()).hexdigest()
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == wanted


def test_the_command_writes_the_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reference", "--spec", str(SPEC), "--out", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site/index.html").is_file()
    assert "index.html" in capsys.readouterr().out


def test_the_command_reports_mistakes_of_the_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reference", "--spec", str(tmp_path), "--out", str(tmp_path / "site")]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_picture_stands_alone(messages: Protocol) -> None:
    text = reference.standalone_picture(messages, "Stream Abort")
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "Layout of Stream Abort"
    assert "prefers-color-scheme: dark" in text
    assert ">abort_lsn</text>" in text
    assert ">abort_lsn</text>" not in reference.standalone_picture(messages, "Stream Abort", version=3)
    with pytest.raises(KeyError):
        reference.standalone_picture(messages, "Stream Abort", version=1)


def test_colours_are_legible(files: dict[str, str]) -> None:
    light, dark = _palettes(files["style.css"])
    texts = ["text", "quiet"]
    pairs = [
        (text, ground) for text in texts for ground in ("page", "sheet", "constant", "integer", "variable", "part")
    ]
    pairs += [(text, ground) for text in ("link", "mark") for ground in ("page", "sheet", "constant")]
    pairs += [("conditional-line", "page")]
    lines = ["constant-line", "integer-line", "variable-line", "part-line", "conditional-line", "link"]
    for palette in (light, dark):
        for text, ground in pairs:
            assert _contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
        for line in lines:
            assert _contrast(palette[line], palette["page"]) >= 3, line
            assert _contrast(palette[line], palette["sheet"]) >= 3, line


def _palettes(style: str) -> list[dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(blocks) == 2
    return [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in blocks]


def _contrast(colour: str, other: str) -> float:
    """The ratio that WCAG 2 defines."""
    lighter, darker = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_picture_in_the_readme_is_as_the_spec_has_it() -> None:
    logicalrep = next(protocol for protocol in load(ROOT / "spec") if protocol.name == "logicalrep")
    assert (ROOT / "docs" / "update.svg").read_text(encoding="utf-8") == reference.standalone_picture(
        logicalrep, "Update"
    )


def test_each_message_has_the_bytes_of_a_real_one_beside_its_layout(files: dict[str, str], messages: Protocol) -> None:
    page = files["logicalrep.html"]
    shown = page.split('<figure class="example">')[1:]
    assert len(shown) == len(messages.messages)
    assert all(figure.strip().startswith("<figcaption>As PostgreSQL 18 sent it:") for figure in shown)
    for figure, message in zip(shown, messages.messages, strict=True):
        figure = figure.partition("</figure>")[0]
        rows = re.findall(
            r"<tr><td><code>(.*?)</code></td><th scope=\"row\"><code>(.*?)</code></th><td>(.*?)</td>", figure
        )
        assert rows[0] == (f"{ord(message.tag):02x}", "tag", f"&#39;{message.tag}&#39;")
        top = {path.partition(".")[0].partition("[")[0] for _, path, _ in rows}
        always = {row.name for row in message.fields if not row.optional and row.when is None}
        assert always <= top | {"columns", "relation_ids"}
    made_up = files["walsender.html"].count("<figcaption>Made up:")
    assert made_up == files["walsender.html"].count('<figure class="example">') > 4


def test_a_message_of_a_recorded_conversation_says_who_sent_it(
    files: dict[str, str], protocols: tuple[Protocol, ...]
) -> None:
    pgwire = next(protocol for protocol in protocols if protocol.name == "pgwire")
    captions = re.findall(
        r"<figcaption>(.*?):</figcaption>\s*<div.*?The bytes of a message (.*?)\"", files["pgwire.html"]
    )
    origins = {name: origin for origin, name in captions}
    assert list(origins) == [message.name for message in pgwire.messages]
    # GSSAPI, Kerberos and SSPI need a domain.
    assert {name for name, origin in origins.items() if origin == "Made up"} == {
        "AuthenticationKerberosV5", "AuthenticationGSS", "AuthenticationGSSContinue", "AuthenticationSSPI",
        "GSSENCRequest", "GSSResponse",
    }  # fmt: skip
    for message in pgwire.messages:
        wanted = {"server": "As PostgreSQL", "client": "As a client sent it to PostgreSQL"}.get(message.sender, "As ")
        assert origins[message.name].startswith((wanted, "Made up"))
    assert origins["NegotiateProtocolVersion"] == "As PostgreSQL 16 sent it"
    key = files["pgwire.html"].split('aria-label="The bytes of a message BackendKeyData"')[1].partition("</table>")[0]
    # A length of 40 leaves 32 bytes for the key, as version 3.2 has them.
    assert "<td><code>00 00 00 28</code></td>" in key
    # Of several messages one is shown that has something in its list.
    assert "columns[0].value" in files["pgwire.html"].split('aria-label="The bytes of a message DataRow"')[1]
