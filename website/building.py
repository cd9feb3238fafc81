"""The pages, the Python API and the reference of the protocol -> a static site that fetches nothing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from properdocs.commands.build import build as write_site
from properdocs.config import load_config
from properdocs.exceptions import Abort

from codegen.model.reader import load
from codegen.reference.site import site as reference
from codegen.shared import ROOT
from website.navigation import SECTIONS, first_page
from website.pages import PAGES, anchor, page_text
from website.python_api import python_api

REFERENCE = "protocol"
"""The folder of the protocol's reference in the site."""

_EXTENSIONS: dict[str, dict[str, Any]] = {
    "tables": {},
    "fenced_code": {},
    "attr_list": {},
    "sane_lists": {},
    "codehilite": {"guess_lang": False, "css_class": "code"},
    "toc": {"slugify": lambda text, separator: anchor(text), "toc_depth": "2-3"},
}


class _Warnings(logging.Handler):
    """A record of what the generator warns of: links, pages without a place, examples of an unknown language."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def write_pages(folder: Path) -> None:
    """Write what the site is made from into a folder: pages, pictures, styles, the reference's files."""
    for page in PAGES:
        path = folder / page.target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_text(page), encoding="utf-8")
    (folder / "python-api.md").write_text(python_api(), encoding="utf-8")
    for picture in [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "website/pictures").glob("*.svg")]:
        (folder / picture.name).write_bytes(picture.read_bytes())
    home = [(f"../{first_page(section)}", section) for section in SECTIONS]
    for name, text in reference(load(ROOT / "spec"), home).items():
        path = folder / REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    style = (folder / REFERENCE / "style.css").read_text("utf-8")
    (folder / "style.css").write_text(style + (ROOT / "website/theme/pages.css").read_text("utf-8"), encoding="utf-8")


def build(folder: Path, out: Path) -> list[str]:
    """Write the site by way of a folder for its pages; return what is wrong with it: links, anchors, left-out pages."""
    folder.mkdir(exist_ok=True)
    write_pages(folder)
    warnings = _Warnings()
    logger = logging.getLogger("properdocs")
    logger.addHandler(warnings)
    try:
        write_site(_config(folder, out))
    except Abort as error:
        warnings.texts.append(str(error))
    finally:
        logger.removeHandler(warnings)
    return warnings.texts


def _config(folder: Path, out: Path) -> Any:
    return load_config(
        str(ROOT / "website/properdocs.yml"),
        docs_dir=str(folder),
        site_dir=str(out),
        nav=[{section: pages} for section, pages in SECTIONS.items()],
        markdown_extensions=[{name: settings} for name, settings in _EXTENSIONS.items()],
    )
