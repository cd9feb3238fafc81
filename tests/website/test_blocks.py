"""Each block of code in a document runs in a test, or is told here not to run, with the reason."""

from __future__ import annotations

import re

from tests.documents import ROOT
from website.pages import PAGES

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

_RUN = {
    "README.md": {"": "tests/pipeline/test_tutorial.py"},
    "docs/how-to/another-protocol.md": {"": "tests/codegen/test_another_protocol.py"},
    "docs/how-to/arrow.md": {
        "import duckdb": "tests/postgres/test_library_page.py",
        "import polars": "tests/arrow/test_documents.py",
    },
    "docs/how-to/changing-the-protocol.md": {"": "tests/codegen/test_changing_the_protocol.py"},
    "docs/how-to/dba.md": {"```sql": "tests/pipeline/test_dba_page.py"},
    "docs/how-to/history.md": {"```python": "tests/pipeline/test_documents.py"},
    "docs/how-to/library.md": {
        "Capture.open(": "tests/protocol/test_documents.py",
        "in changes:": "tests/postgres/test_library_page.py",
        "import duckdb": "tests/postgres/test_library_page.py",
        "logicalrep decode FILE": "tests/protocol/test_documents.py",
        "psql -XAtq": "tests/postgres/test_library_page.py",
        "$ logicalrep inspect": "tests/protocol/test_documents.py",
    },
    "docs/how-to/many-databases.md": {"```yaml": "tests/pipeline/config/test_config.py"},
    "docs/how-to/operations.md": {"```sh": "tests/pipeline/operate/test_operations_page.py"},
    "docs/how-to/partitions.md": {
        "```yaml": "tests/pipeline/test_file_partitions.py",
        "```python": "tests/pipeline/test_file_partitions.py",
    },
    "docs/how-to/reading.md": {"```python": "tests/pipeline/test_documents.py"},
    "docs/how-to/replicate.md": {"```python": "tests/pipeline/test_tutorial.py"},
    "docs/how-to/server-changes.md": {"```sh": "tests/pipeline/operate/test_operations_page.py"},
    "docs/how-to/slots.md": {"```sh": "tests/pipeline/operate/test_operations_page.py"},
    "docs/how-to/spark-copies.md": {"```python": "tests/spark/test_documents.py"},
    "docs/how-to/spark-monitoring.md": {"start_http_server": "tests/spark/monitoring/test_monitoring.py"},
    "docs/how-to/spark.md": {"```python": "tests/spark/test_documents.py"},
    "docs/how-to/structs.md": {"```python": "tests/protocol/test_documents.py"},
    "docs/how-to/table-settings.md": {"```yaml": "tests/pipeline/test_documents.py"},
    "docs/reference/formats.md": {"```python": "tests/pipeline/formats/iceberg/catalogs/test_replicate_catalog.py"},
    "docs/reference/pgwire.md": {"```python": "tests/protocol/test_pgwire_conversations.py"},
    "docs/reference/types.md": {"```python": "tests/values/test_values_docs.py"},
    "docs/tutorial.md": {
        "```sh": "tests/pipeline/test_tutorial.py",
        "```python": "tests/pipeline/test_tutorial.py",
        "```text": "tests/pipeline/test_tutorial.py",
    },
}
"""The tests that run a page's blocks: by their beginning, or by a text that they have."""

_NOT_RUN = {
    "CONTRIBUTING.md": {"make setup": "these are the commands that run the tests"},
    "docs/explanation/architecture.md": {"```mermaid": "a diagram: tests/website holds its picture against it"},
    "docs/explanation/concepts.md": {"```mermaid": "diagrams: tests/website holds their pictures against them"},
    "docs/explanation/lifecycle.md": {"```mermaid": "a diagram, which is written from the phases"},
    "docs/explanation/schema-changes.md": {
        "CREATE PUBLICATION stay_logged": "an example; tests/pipeline/catalog/test_unlogged_tables.py has its effect"
    },
    "docs/how-to/installation.md": {"error: deltalake is": "an error of an installation that lacks a package"},
    "docs/how-to/many-databases.md": {"```sh": "it follows servers until it is ended; tests/cli/databases has its own"},
    "docs/how-to/monitoring.md": {
        "--call-on-stop": "it sends a mail, or calls an address of somebody's",
        "INFO logicalrep.batch": "a line of a log, whose form tests/observe holds",
    },
    "docs/how-to/object-stores.md": {
        "--to s3://lake/shop": "a store of somebody's; tests/pipeline/storage has its own"
    },
    "docs/how-to/replicate.md": {
        'pip install ".[replicate]"': "it installs, and follows a server until it is ended",
        "$ logicalrep check": "an output that only a server with these faults gives",
        "logicalrep status --dsn …": "an overview; the commands run as docs/how-to/operations.md has them",
    },
    "docs/how-to/partitions.md": {"```sql": "DuckDB would fetch its extension for Delta"},
    "docs/how-to/rights.md": {"CREATE ROLE replicator": "the role would be one for all databases of the tests' server"},
    "docs/how-to/spark-monitoring.md": {
        'listen="127.0.0.1:9400"': "its port may be another's; tests/spark/monitoring reads the option with a free one",
        "batch slot=spark": "a line of a log, whose form tests/spark/monitoring holds",
    },
    "docs/how-to/spark.md": {"Traceback": "an error of a server without a setting"},
    "docs/how-to/verify.md": {"$ logicalrep verify": "an output; tests/pipeline/verify holds its form"},
    "docs/reference/formats.md": {
        "pip install": "it installs, and follows a server until it is ended",
        "spark.jars.packages ": "settings of a session; the tests of Spark's reading have them, with a jar of build/",
        "--catalog-option warehouse=lake": "a catalog of somebody's; the tests of catalogs have their own",
    },
    "docs/reference/vectors.md": {"```json": "objects of the files of vectors, which tests/codegen holds"},
    "docs/tutorial.md": {"pip install": "it installs what the tests have"},
    "examples/README.md": {"pip install": "it installs what the tests have"},
    "codegen/README.md": {"wire field-condition": "an output for a change of the spec; tests/codegen holds its form"},
    "native/README.md": {"pip install": "it installs what the tests have"},
    "spec/README.md": {
        "types.yaml  ": "a list of files",
        "```yaml": "a piece of a file of spec/, which is read whole",
    },
}
"""The blocks that do not run, found in the same way, with the reason."""


def _matches(block: str, text: str) -> bool:
    return block.startswith(text) if text.startswith("```") or not text else text in block


def test_each_block_names_its_test_or_the_reason_for_none() -> None:
    unknown = []
    used = set()
    for page in PAGES:
        told = _RUN.get(page.source, {}) | _NOT_RUN.get(page.source, {})
        for block in _BLOCK.findall((ROOT / page.source).read_text("utf-8")):
            # A text says more than a beginning that many blocks share.
            found = [text for text in told if _matches(block, text) and not text.startswith("```") and text]
            found = found or [text for text in told if _matches(block, text)]
            used |= {(page.source, text) for text in found}
            if len(found) != 1:
                unknown.append(f"{page.source}: {block.splitlines()[1]}: {found}")
    assert unknown == [], "run them in a test, by tests/documents.py, or tell here why not"
    assert used == {(source, text) for told in (_RUN, _NOT_RUN) for source in told for text in told[source]}


def test_named_tests_read_the_page() -> None:
    for source, tests in _RUN.items():
        name = source.removeprefix("docs/how-to/").removesuffix(".md")
        for test in set(tests.values()):
            assert name in (ROOT / test).read_text("utf-8"), f"{test} does not read {source}"
