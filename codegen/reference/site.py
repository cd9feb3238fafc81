"""The spec -> a static reference site: `python -m codegen reference`. Plain HTML and CSS, no scripts, no network."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from codegen.emit.package import package_of
from codegen.emit.rendering import joined
from codegen.model.model import Protocol
from codegen.model.notation import INT_WIDTHS, Int, PartName
from codegen.model.reader import load_either
from codegen.model.versions import view
from codegen.reference import pages
from codegen.reference.drawing import draw, number
from codegen.reference.examples import examples
from codegen.reference.layout import Row, rows
from codegen.shared import ROOT, add_spec, lowered, mask, templates

_IDENTIFIER = re.compile(r"\b[a-z0-9]+(?:[_.][a-z0-9]+)*_[a-z0-9]+(?:[_.][a-z0-9]+)*\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument("--out", type=Path, default=ROOT / "build/reference", help="the folder of the site")
    parser.add_argument(
        "--picture", nargs=2, metavar=("NAME", "FILE"), help="write the picture of one layout, in place of the site"
    )


def run(options: argparse.Namespace) -> int:
    """Write the site. Exit code: 0 done, 2 no such layout. Raises SpecError for a faulty spec."""
    protocols = load_either(options.spec, options.project)
    if options.picture:
        return _write_picture(protocols, *options.picture)
    files = site(protocols)
    for path, text in files.items():
        (options.out / path).parent.mkdir(parents=True, exist_ok=True)
        (options.out / path).write_text(text, encoding="utf-8")
    print(f"wrote {len(files)} files to {options.out}; open {options.out / 'index.html'}")
    return 0


def _write_picture(protocols: Iterable[Protocol], name: str, file: str) -> int:
    for protocol in protocols:
        try:
            picture = standalone_picture(protocol, name)
        except KeyError:
            continue
        Path(file).write_text(picture, encoding="utf-8")
        return 0
    print(f"there is no message or part {name!r}", file=sys.stderr)
    return 2


def site(protocols: Iterable[Protocol], home: Sequence[tuple[str, str]] = ()) -> dict[Path, str]:
    """Return every file of the site by path. Deterministic.

    `home` links to a surrounding site: pairs of a URL and a name.
    """
    protocols = tuple(protocols)
    environment = _environment(protocols)
    environment.globals.update(home=home)
    messages = {protocol.name: pages.message_entries(protocol) for protocol in protocols}
    parts = {protocol.name: pages.part_entries(protocol) for protocol in protocols}
    entries = [entry for protocol in protocols for entry in (*messages[protocol.name], *parts[protocol.name])]
    texts = {
        "index.html": _render(environment, "index.html.j2", page="index.html", samples=pages.samples(protocols[0])),
        "changes.html": _render(environment, "changes.html.j2", page="changes.html"),
        "types.html": _render(environment, "types.html.j2", page="types.html", entries=entries),
        "style.css": _render(environment, "style.css.j2"),
    }
    for protocol in protocols:
        texts[f"{protocol.name}.html"] = _render(
            environment,
            "protocol.html.j2",
            page=f"{protocol.name}.html",
            protocol=protocol,
            messages=messages[protocol.name],
            examples=examples(protocol),
            parts=parts[protocol.name],
        )
    return {Path(name): texts[name] for name in sorted(texts)}


def standalone_picture(protocol: Protocol, name: str, version: int | None = None) -> str:
    """Return a layout as a standalone SVG file, light or dark as the reader's screen.

    It shows the given version, by default the newest. Raises KeyError if that version has no such layout.
    """
    version_view = view(protocol, version or len(protocol.versions))
    layout = version_view.layout(name)
    if layout is None:
        raise KeyError(name)
    picture = draw(f"Layout of {name}", rows(protocol, layout.fields, layout.since))
    return _render(_environment((protocol,)), "standalone.svg.j2", picture=picture, id=pages.anchor_of(layout))


def _environment(protocols: tuple[Protocol, ...]) -> Environment:
    environment = templates(
        Path(__file__).parent / "templates",
        autoescape=lambda name: name is not None and not name.endswith(".css.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(prose=prose, number=number, joined=joined, lowered=lowered)
    environment.globals.update(
        protocols=protocols,
        named_types={name: named for protocol in protocols for name, named in protocol.types.items()},
        widths=INT_WIDTHS,
        mask=mask,
        anchor_of=pages.anchor_of,
        href_of=pages.href_of,
        package_of=package_of,
        subject=protocols[0].title if protocols[0].is_alone else "logicalrep",
        source=f"{protocols[0].place.path.parent.name if protocols[0].is_alone else 'spec'}/",
        effect=pages.effect,
        effects=pages.effects,
        states=pages.states,
        block_rules=pages.block_rules,
        steps_between=pages.steps_between,
        uses=pages.uses,
        type_links=_type_links,
    )
    return environment


def _render(environment: Environment, template: str, **values: Any) -> str:
    return environment.get_template(template).render(**values)


def prose(text: str) -> Markup:
    """Return a sentence of the spec as HTML, with identifiers as code."""
    pieces = []
    end = 0
    for match in _IDENTIFIER.finditer(text):
        pieces += [escape(text[end : match.start()]), Markup("<code>{}</code>").format(match[0])]
        end = match.end()
    return Markup("").join([*pieces, escape(text[end:])])


def _type_links(protocol: Protocol, row: Row) -> Markup:
    """Return a field's type as printed, with links to its names."""
    kind = row.field.type
    if isinstance(kind, PartName):
        href = pages.href_of(protocol, protocol.part(kind.name))
        return Markup('<a href="{}">{}</a>').format(href, kind.name)
    if isinstance(kind, Int) and kind.name is not None:
        return Markup('{} (<a href="types.html#{}">{}</a>)').format(kind.base, kind.name.lower(), kind.name)
    return escape(str(kind))
