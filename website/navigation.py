"""What is where in the site: each page has one place, by what a reader wants of it."""

from __future__ import annotations

SECTIONS: dict[str, list[str]] = {
    "Overview": ["index.md", "comparison.md", "changelog.md"],
    "Tutorial": ["tutorial.md"],
    "How-to": [
        "installation.md",
        "replicate.md",
        "operations.md",
        "dba.md",
        "examples.md",
        "spark.md",
        "spark-modes.md",
        "clusters.md",
        "library.md",
        "arrow.md",
        "structs.md",
        "changing-the-protocol.md",
        "another-protocol.md",
        "vectors.md",
        "contributing.md",
        "security.md",
        "conduct.md",
    ],
    "Reference": [
        "replicate-options.md",
        "options.md",
        "errors.md",
        "metrics.md",
        "types.md",
        "formats.md",
        "destination.md",
        "python-api.md",
        "pgwire.md",
        "native-reader.md",
        "generator.md",
        "notation.md",
        "captures.md",
        "glossary.md",
    ],
    "Explanation": ["architecture.md", "lifecycle.md", "performance.md", "modules.md", "decisions/index.md"],
}
"""The sections and their pages. Those of decisions/ are reached from its index; the reference has a bar of its own."""


def first_page(section: str) -> str:
    """Return the address of a section's first page.

    Example:
        >>> first_page("Tutorial")
        'tutorial.html'
    """
    return SECTIONS[section][0].removesuffix(".md") + ".html"
