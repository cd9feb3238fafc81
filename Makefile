# Everyday commands; `make` alone lists them. Each sets up what it needs, from nothing.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SPARK_READY := .venv/spark-ready
BASE ?= origin/main
KILLS ?= 25
SEED ?= 1
SEARCH ?= 10
SERVICE ?= 15
PARTS ?=
# The versions that CI tests with; LOCK= takes the newest of everything.
LOCK ?= .ci/lock.txt
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check $(addprefix -c ,$(LOCK))
# The major version of PostgreSQL for the tests that are repeated on each; all by default.
SERVER ?=
export SERVER
VERSIONS ?= 4.0 4.1

.DEFAULT_GOAL := help
.PHONY: help setup regen check shapes test test-quick test-all test-all-plain test-all-servers test-all-spark test-all-tables test-plain-reader test-packages server-packages test-spark-versions tshark lock workflows forge-release sbom audit soak demo bench bench-codecs bench-spark bench-tables bench-readers conformance reference docs diagrams recording spec-diff spec-review build wheels clean

help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

setup: $(READY) ## Make .venv and install everything into it

NATIVE := $(wildcard native/src/*.[ch] native/pyproject.toml native/setup.py)
CC ?= cc

# The extras require logicalrep-native, which is installed from the clone before them.
define INSTALL_NATIVE
$(BIN)/pip install --quiet --disable-pip-version-check --force-reinstall ./native
@$(BIN)/python -c 'import logicalrep_native' 2>/dev/null || \
  echo "There is no C compiler, so logicalrep-native has no module, and messages are read in Python."
endef

$(READY): pyproject.toml $(LOCK) $(NATIVE)
	$(PYTHON) -m venv .venv
	$(INSTALL_NATIVE)
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

# What runs servers and Spark, or checks code that does: 600 MB more, with a Java for machines that have none.
SPARK_EXTRAS := dev,server,replicate,connect,lineage

$(SPARK_READY): $(READY)
	$(PIP_INSTALL) -e '.[$(SPARK_EXTRAS),pipelines]'
	@touch $@

regen: $(READY) ## Write generated/ from spec/
	$(BIN)/python -m codegen regen
	$(BIN)/python -m codegen reference --picture Update docs/update.svg
	$(BIN)/python -m website.derivation
	$(BIN)/python -m logicalrep.values.docs docs/reference/types.md
	$(BIN)/python -m logicalrep.error_codes.page docs/reference/errors.md
	$(BIN)/python -m logicalrep.pipeline.tables.lifecycle docs/explanation/lifecycle.md

docs/reference/spark-options.md: src/logicalrep/spark/options.py $(SPARK_READY) ## Write the page of the Spark source's options
	$(BIN)/python -c 'import pathlib; from logicalrep.spark.options import page; pathlib.Path("$@").write_text(page())'

docs/reference/replicate-options.md: src/logicalrep/pipeline/config/options.py $(SPARK_READY) ## Write the page of the options of replicate
	$(BIN)/python -c 'import pathlib; from logicalrep.pipeline.config.options import page; pathlib.Path("$@").write_text(page())'

docs/reference/metrics.md: src/logicalrep/observe/metrics.py $(SPARK_READY) ## Write the page of the metrics
	$(BIN)/python -c 'import pathlib; from logicalrep.observe.metrics import page; pathlib.Path("$@").write_text(page())'

# The pages of PostgreSQL's documentation that make check compares the spec with; each has to be in the repository.
PAGES := $(addprefix spec/pages/, \
  postgresql-18-message-formats.html \
  postgresql-18-message-data-types.html \
  postgresql-18-error-fields.html \
  postgresql-18-logicalrep-message-formats.html \
  postgresql-15-copy.html \
  postgresql-15-streaming-replication-protocol.html \
  postgresql-19-primary-status.sgml \
  fragments/protocol-begin-to-message.sgml \
  fragments/protocol-delete-to-stream-commit.sgml \
  fragments/protocol-rollback-prepared-to-tupledata.sgml)

check: $(SPARK_READY) ## Find stale generated code, compare the spec with the documentation's pages, lint, and check types
	$(BIN)/python -m codegen check
	$(BIN)/python -m codegen docs $(PAGES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

shapes: $(READY) ## List the largest modules, folders and signatures, for a review
	$(BIN)/python -m tests.contracts.shapes

# The compiler of Kaitai Struct and its JavaScript, for tests of readers in other languages.
KAITAI := tests/codegen/kaitai
KAITAI_READY := build/kaitai/ready

$(KAITAI_READY): $(KAITAI)/package.json $(KAITAI)/package-lock.json
	@mkdir -p $(dir $@)
	@if command -v npm >/dev/null; then \
	  cp $^ $(dir $@) && npm ci --silent --no-audit --no-fund --prefix $(dir $@) && touch $@; \
	else \
	  echo "npm is not installed: the tests of Kaitai Struct's readers are left out."; \
	fi

tshark: ## Install tshark on Debian or Ubuntu, for the tests of the dissector
	@if command -v tshark >/dev/null; then :; \
	elif command -v apt-get >/dev/null; then \
	  sudo=$$(command -v sudo); \
	  $$sudo apt-get update --quiet=2 && \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends tshark; \
	else \
	  echo "There is no apt-get: the tests of the dissector are left out, unless you install tshark."; \
	fi

# Three processes for two cores, as tests often wait; each has its own servers and its own Spark, which it starts once.
PROCESSES ?= 3
PYTEST := $(BIN)/pytest -q -n $(PROCESSES) --dist worksteal

test: $(SPARK_READY) $(KAITAI_READY) ## Run each behaviour's tests once, with a real server and a real Spark
	$(PYTEST) -m "not thorough"

test-quick: $(SPARK_READY) $(KAITAI_READY) ## Run those that need no server, no Spark and little time
	$(PYTEST) -m "not postgres and not spark and not thorough and not slow"

test-all: test-all-plain test-all-servers test-all-spark test-all-tables ## Run all tests: every server, every capture

test-all-plain: $(SPARK_READY) $(KAITAI_READY) ## The part of test-all without servers
	$(PYTEST) -m "not postgres and not spark"

test-all-servers: $(SPARK_READY) ## The part of test-all with servers and without Spark
	$(PYTEST) -m "postgres and not spark"

test-all-spark: $(SPARK_READY) ## The part of test-all with Spark, without replicated tables
	$(PYTEST) -m spark --ignore tests/pipeline

test-all-tables: $(SPARK_READY) ## The part of test-all with Spark and replicated tables
	$(PYTEST) -m spark tests/pipeline

test-plain-reader: $(SPARK_READY) ## Run the tests of the codecs without logicalrep-native
	LOGICALREP_NATIVE=0 $(PYTEST) -m "not thorough and not postgres and not spark" tests/protocol tests/native tests/arrow

test-packages: ## Install the wheels and the sdist of dist/ into fresh environments, and use them
	$(PYTHON) .ci/packages.py

# Each runs with one version of Python, Spark and PostgreSQL; the workflows give others.
server-packages: ## Install PostgreSQL's own packages of SERVER, on Debian or Ubuntu
	sudo apt-get install --yes postgresql-common
	sudo /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y
	sudo apt-get install --yes postgresql-$(SERVER)

test-spark-versions: ## Run the Spark tests on PySpark 4.0 and 4.1, or on VERSIONS; make test has the newest
	for version in $(VERSIONS); do \
	  $(PYTHON) -m venv build/venv-spark-$$version && \
	  build/venv-spark-$$version/bin/pip install --quiet --disable-pip-version-check \
	    ./native -e '.[$(SPARK_EXTRAS)]' "pyspark==$$version.*" && \
	  build/venv-spark-$$version/bin/pytest -q tests/spark || exit 1; \
	done

soak: $(SPARK_READY) ## Kill streams 20 times a mode, and replicate KILLS times (25) with SEED; play random schema changes for SEARCH minutes (10), and again over catalogs that own tables; replicate for SERVICE minutes (15) to a catalog that fails and changes files
	KILLS=$(KILLS) SEED=$(SEED) $(BIN)/pytest -q --durations=0 tests/pipeline/test_kills.py
	SEARCH=$(SEARCH) SEED=$(SEED) $(BIN)/pytest -q --durations=0 tests/pipeline/catalog/search/test_search.py -k minutes
	CATALOG=owner SEARCH=$(SEARCH) SEED=$(SEED) $(BIN)/pytest -q --durations=0 tests/pipeline/catalog/search/test_search.py -k minutes
	SERVICE=$(SERVICE) SEED=$(SEED) $(BIN)/pytest -q --durations=0 tests/pipeline/formats/iceberg/catalogs/test_random_service.py -k minutes
	LOGICALREP_SOAK=1 $(BIN)/pytest -q --durations=0 tests/spark/test_kills.py tests/spark/test_scale.py

# Half of what the tests need, so that the first command in a new clone is soon done.
DEMO_READY := $(if $(wildcard $(SPARK_READY)),$(SPARK_READY),.venv/demo-ready)

.venv/demo-ready: pyproject.toml $(LOCK) $(NATIVE)
	$(PYTHON) -m venv .venv
	$(INSTALL_NATIVE)
	$(PIP_INSTALL) -e '.[replicate,server]'
	@touch $@

demo: $(DEMO_READY) ## Decode a capture, replicate a PostgreSQL 18 under load on Spark, kill, verify, query, stream
	$(BIN)/python examples/demo.py

BENCH_READY := .venv/bench-ready

$(BENCH_READY): $(SPARK_READY)
	$(PIP_INSTALL) -e '.[bench]'
	@touch $@

bench: bench-codecs bench-spark bench-tables ## Measure everything beside others and what bounds it, with targets

bench-codecs: $(BENCH_READY) ## Measure the decoders, beside other decoders and a copy of the bytes
	$(BIN)/python -m bench

bench-spark: $(BENCH_READY) ## Measure the Spark source: PARTS of open, latency, steady, rates, marginal; all by default
	$(BIN)/python -m bench.spark $(PARTS)

bench-tables: $(BENCH_READY) ## Measure replicate: first load, a backlog, seconds to visible, growth, the first minute; PARTS="load idle --write" for some, as docs/explanation/figures.md has them
	$(BIN)/python -m bench.tables $(PARTS)

conformance: $(BENCH_READY) ## Run tools through the conformance kit: PARTS="cases schema", PARTS="--write" for docs/conformance.md; see python -m conformance --help
	$(BIN)/python -m conformance $(PARTS)

bench-readers: $(BENCH_READY) ## Read the same tables with each reader, and write docs/reference/readers.md: PARTS="duckdb --keep build/readers/lake"
	$(BIN)/python -m bench.readers --write $(PARTS)

reference: $(READY) ## Write the reference, a static site, to build/reference
	$(BIN)/python -m codegen reference

docs: $(SPARK_READY) ## Write the site to build/site, and check its links
	$(BIN)/python -m website

diagrams: $(SPARK_READY) ## Draw the pictures of the pages' diagrams anew; it needs npm and Chromium
	$(BIN)/python -m website.diagrams

recording: $(SPARK_READY) ## Record the first minute in a terminal anew, as docs/first-minute.svg
	$(BIN)/python -m website.recording

spec-diff: $(READY) ## Show what changed in spec/ since BASE
	$(BIN)/python -m codegen diff $(BASE)

REVIEW := build/spec-diff.md
export FAIL_ON ?= wire

spec-review: $(READY) ## Review what changed in spec/ since BASE: annotations, a summary, a comment on PULL_REQUEST
	@mkdir -p $(dir $(REVIEW))
	$(BIN)/python -m codegen diff $(BASE) --format markdown --fail-on none > $(REVIEW)
	@if [ -n "$$GITHUB_STEP_SUMMARY" ]; then cat $(REVIEW) >> "$$GITHUB_STEP_SUMMARY"; fi
	@if [ -n "$$PULL_REQUEST" ]; then \
	  gh pr comment "$$PULL_REQUEST" --edit-last --create-if-none --body-file $(REVIEW); \
	fi
	$(BIN)/python -m codegen diff $(BASE) --format github --fail-on "$$FAIL_ON"

build: $(READY) ## Build a release's files into dist/: sdists and wheels, vectors, readers in other languages, the reference
	rm -rf dist build/logicalrep-vectors build/logicalrep-ksy build/logicalrep-reference
	$(BIN)/python -m build --quiet --outdir dist
	@if command -v $(CC) >/dev/null; then \
	  $(BIN)/python -m build --quiet --outdir dist native; \
	else \
	  echo "There is no C compiler, so logicalrep-native is not built."; \
	fi
	$(BIN)/python -m codegen vectors build/logicalrep-vectors
	$(BIN)/python -m codegen ksy build/logicalrep-ksy
	$(BIN)/python -m codegen lua dist/logicalrep.lua
	$(BIN)/python -m codegen reference --out build/logicalrep-reference
	for name in vectors ksy reference; do \
	  $(BIN)/python -m zipfile -c dist/logicalrep-$$name.zip build/logicalrep-$$name || exit 1; \
	done

# The compiler is a package of PyPI, and links with the oldest C library that manylinux2014 allows.
ZIG := build/venv-zig
ZIG_VERSION := 0.17.1

wheels: wheel-x86_64 wheel-aarch64 ## Build logicalrep-native for both processors into dist/, without a C compiler

wheel-%: $(READY) $(ZIG)/ready
	rm -rf native/build dist/logicalrep_native-*linux_$*.whl
	CC="$(abspath $(ZIG))/bin/python -m ziglang cc -target $*-linux-gnu.2.17 -g0" \
	LDSHARED="$(abspath $(ZIG))/bin/python -m ziglang cc -target $*-linux-gnu.2.17 -shared -s" \
	_PYTHON_HOST_PLATFORM=linux-$* $(BIN)/python -m build --quiet --wheel --outdir dist \
	  --config-setting=--build-option=--plat-name=manylinux2014_$* native

$(ZIG)/ready:
	$(PYTHON) -m venv $(ZIG)
	$(ZIG)/bin/pip install --quiet --disable-pip-version-check ziglang==$(ZIG_VERSION)
	@touch $@

TOOLS := build/venv-tools
TOOLS_READY := $(TOOLS)/ready

$(TOOLS_READY): .ci/tools.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check -r .ci/tools.txt
	@touch $@

# A package that only some version of Python has stands there with its condition.
lock: $(TOOLS_READY) ## Write .ci/lock.txt anew: the newest versions of all that the tests install
	$(TOOLS)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate --no-header \
	  --all-extras --no-emit-package logicalrep-native pyproject.toml -o .ci/lock.txt

workflows: $(TOOLS_READY) ## Check the files of .github/
	@if command -v go >/dev/null; then \
	  GOBIN=$(abspath build/tools) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 && \
	  build/tools/actionlint -shellcheck= -pyflakes=; \
	else \
	  echo "Go is not installed: actionlint is left out, and the forms alone are checked"; \
	fi
	$(TOOLS)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(TOOLS)/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(TOOLS)/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(TOOLS)/bin/check-jsonschema --builtin-schema vendor.github-issue-forms \
	  $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))

TAG ?=

build/notes.md: CHANGELOG.md
	@mkdir -p $(dir $@)
	awk '/^## /{copies = index($$0, "## $(patsubst v%,%,$(TAG))") == 1; next} copies' $< > $@
	@test -s $@ || { echo "CHANGELOG.md has no version $(patsubst v%,%,$(TAG))"; rm $@; exit 1; }

forge-release: build/notes.md ## Show a release at the forge: the files of dist/ and the version's changes, for TAG
	gh release create $(TAG) --verify-tag --title $(TAG) --notes-file $< dist/*

SHIPPED := build/shipped.txt

$(SHIPPED): pyproject.toml .ci/lock.txt $(TOOLS_READY)
	$(TOOLS)/bin/uv pip compile --quiet --python-version 3.11 --no-annotate --no-header -c .ci/lock.txt \
	  --no-emit-package logicalrep-native \
	  $(addprefix --extra ,replicate pipelines connect glue lineage server) pyproject.toml -o $@

sbom: $(SHIPPED) ## Write dist/logicalrep.cdx.json: what an installation with all extras for users consists of (CycloneDX)
	mkdir -p dist
	{ cat $(SHIPPED); grep --only-matching 'logicalrep-native==[0-9.]*' pyproject.toml; } | \
	$(TOOLS)/bin/cyclonedx-py requirements - --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --of JSON -o dist/logicalrep.cdx.json

audit: $(SHIPPED) ## Look for known vulnerabilities in what users install
	$(TOOLS)/bin/pip-audit --strict --disable-pip --no-deps -r $(SHIPPED)

clean: ## Remove everything that these commands made
	rm -rf .venv build dist native/build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
