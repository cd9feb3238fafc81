"""What is where in the site: each page has one place, by what a reader wants of it."""

from __future__ import annotations

SECTIONS: dict[str, list[str]] = {
    "Overview": ["index.md", "conformance.md", "changelog.md"],
    "Tutorial": ["tutorial.md"],
    "How-to": [
        "how-to/installation.md",
        "how-to/replicate.md",
        "how-to/spark.md",
        "how-to/many-databases.md",
        "how-to/partitions.md",
        "how-to/operations.md",
        "how-to/monitoring.md",
        "how-to/server-changes.md",
        "how-to/upgrades.md",
        "how-to/rights.md",
        "how-to/dba.md",
        "examples.md",
        "how-to/reading.md",
        "how-to/verify.md",
        "how-to/history.md",
        "how-to/table-settings.md",
        "how-to/large-tables.md",
        "how-to/object-stores.md",
        "how-to/two-way.md",
        "how-to/spark-copies.md",
        "how-to/spark-queries.md",
        "how-to/spark-monitoring.md",
        "how-to/slots.md",
        "how-to/clusters.md",
        "how-to/library.md",
        "how-to/arrow.md",
        "how-to/structs.md",
        "how-to/message-strategies.md",
        "how-to/changing-the-protocol.md",
        "how-to/another-protocol.md",
        "contributing.md",
        "security.md",
        "conduct.md",
    ],
    "Reference": [
        "reference/replicate-options.md",
        "reference/spark-options.md",
        "reference/postgresql-minors.md",
        "reference/exit-codes.md",
        "reference/errors.md",
        "reference/metrics.md",
        "reference/sizing.md",
        "reference/types.md",
        "reference/names-and-values.md",
        "reference/change-feed.md",
        "reference/formats.md",
        "reference/readers.md",
        "reference/catalogs.md",
        "reference/destination.md",
        "reference/stored-tables.md",
        "python-api.md",
        "reference/pgwire.md",
        "reference/binary-formats.md",
        "reference/vectors.md",
        "reference/other-languages.md",
        "native-reader.md",
        "generator.md",
        "notation.md",
        "captures.md",
        "conformance-kit.md",
        "glossary.md",
    ],
    "Explanation": [
        "explanation/concepts.md",
        "explanation/guarantees.md",
        "explanation/loads.md",
        "explanation/schema-changes.md",
        "explanation/lifecycle.md",
        "explanation/reloads.md",
        "explanation/upkeep.md",
        "explanation/spark-guarantees.md",
        "explanation/spark-modes.md",
        "explanation/costs.md",
        "explanation/performance.md",
        "explanation/figures.md",
        "explanation/performance-of-codecs.md",
        "explanation/page-check.md",
        "explanation/architecture.md",
        "modules.md",
        "decisions/index.md",
    ],
}
"""The sections and their pages. The pages of decisions/ are reached from its index; the reference has its own bar."""


def first_page(section: str) -> str:
    """Return the address of a section's first page.

    Example:
        >>> first_page("Tutorial")
        'tutorial.html'
    """
    return SECTIONS[section][0].removesuffix(".md") + ".html"
