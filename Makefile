# Everything runs from a virtual environment in .venv, made on first use.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO_INSTALLED := .venv/.demo-installed
DEMO_NEEDS := examples/windrow_demo/requirements.txt
ENGINES_INSTALLED := .venv/.demo-engines-installed
ENGINES_NEEDS := examples/windrow_demo/engines.txt
QUICK_SPARK := .venv/spark.jsa
QUICK_SPARKS := $(QUICK_SPARK) .venv-spark35/spark.jsa

# Otherwise hundreds of processes would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: requirements help setup demo demo-engines docs reference test test-changed test-fast test-nightly test-slice test-sparks judges check format openapi pictures states bench java other-sparks image chromium clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: $(INSTALLED) ## Make the virtual environment

# In a terminal pip shows the progress of each download; elsewhere the line printed before it must suffice.
PIP := [ -t 1 ] && quiet= || quiet=--quiet; $(BIN)/python -m pip install $$quiet

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Windrow needs Python 3.10 or newer")'
	@echo "Making a virtual environment in .venv"
	@$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml $(DEMO_NEEDS) | $(BIN)/pip
	@echo "Installing everything for work on Windrow into .venv: 2.2 GB"
	@$(PIP) --editable '.[service,traces,spark,connect,docs,test]' --requirement $(DEMO_NEEDS)
	@touch $@ $(DEMO_INSTALLED)

# Modules are compiled when they are imported, and most never are.
$(DEMO_INSTALLED): pyproject.toml $(DEMO_NEEDS) | $(BIN)/pip
	@echo "Installing what the demo needs into .venv: 870 MB, most of it Spark"
	@$(PIP) --no-compile --editable '.[service,spark]' --requirement $(DEMO_NEEDS)
	@touch $@

$(QUICK_SPARKS): $(INSTALLED) | java # Halves the start-up time of the tests' JVMs.
	@$(@D)/bin/python -m tests.support.spark.quick_spark >/dev/null 2>&1 || \
	  echo "No archive of Spark's classes could be written: each JVM of the tests takes longer to start" >&2

.venv-spark35/spark.jsa: | other-sparks

other-sparks: $(INSTALLED) # In separate environments, 1.8 GB, which are kept.
	@$(BIN)/python -m tests.support.spark.older_spark

image: $(INSTALLED) # Installs what the Dockerfile installs, without Docker; kept until a copied file changes.
	@$(BIN)/python -m tests.deploy.image_build

java:
	@command -v java >/dev/null || [ -n "$$JAVA_HOME" ] || { \
	  echo "Spark needs Java 17 or newer, which was not found: install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2; exit 1; }

chromium: # The only requirement that no wheel contains; only tests/browser needs it.
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null; \
	  else echo "Chromium was not found: tests/browser is skipped. Install it with: apt-get install chromium" >&2; fi; }

demo: java $(DEMO_INSTALLED) ## Read 19,486 small files four ways and compare
	@$(BIN)/python -m windrow_demo

$(ENGINES_INSTALLED): $(ENGINES_NEEDS) | $(DEMO_INSTALLED)
	@echo "Installing DuckDB, Polars and PyIceberg into .venv: 400 MB"
	@$(PIP) --no-compile --requirement $(ENGINES_NEEDS)
	@touch $@

demo-engines: java $(ENGINES_INSTALLED) ## Read them with DuckDB, Polars, PyIceberg and Spark, bare and by Windrow
	@$(BIN)/python -m windrow_demo engines

# What tests need is made at the same time, as most of it keeps one core busy or waits for a download.
test: $(INSTALLED) ## Run all tests but the nightly ones
	@$(MAKE) --no-print-directory --jobs=4 $(QUICK_SPARK) image chromium
	$(BIN)/pytest

test-changed: $(INSTALLED) ## Run the tests that the work since main can reach, and say which these are
	$(BIN)/python -m tests.support.changed

test-fast: $(INSTALLED) ## Run the quick tests that need no Spark, in a minute and a half
	$(BIN)/pytest -m "not spark and not slow"

test-nightly: $(INSTALLED) $(QUICK_SPARKS) other-sparks image chromium ## Run all tests, with many new examples for each law
	$(BIN)/pytest --hypothesis-profile=nightly --all-sparks

test-slice: $(INSTALLED) $(QUICK_SPARKS) other-sparks image chromium ## Run the tenth of the nightly tests whose turn it is, or SLICE=1 … 10, or SLICE=all
	$(BIN)/python -m tests.support.night $(SLICE)

judges: $(INSTALLED) ## Run Spark's own test suites, and write docs/reference/judges.md
	$(BIN)/python -m tests.judges

test-sparks: $(INSTALLED) $(QUICK_SPARKS) other-sparks ## Run the tests that use every supported release of Spark
	$(BIN)/pytest --all-sparks -m every_spark

check: $(INSTALLED) ## Lint, types, import rules, who changes files, words, Java
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.support.removals
	$(BIN)/python -m tests.support.documents.voice
	$(BIN)/python -m tests.support.spark.java_sources

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: $(INSTALLED) ## Write openapi.yaml anew, and docs/reference/access-matrix.md from it
	$(BIN)/python -m windrow_service.openapi > openapi.yaml
	$(BIN)/python -m tests.support.api.access_matrix > docs/reference/access-matrix.md

reference: $(INSTALLED) ## Write the pages of docs/reference that are made from the code anew
	$(BIN)/python -m tests.support.documents.reference

docs: $(INSTALLED) ## Build the documents as a site, which coordinators then serve at /guide
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

requirements: requirements.txt requirements-build.txt ## Lock the newest releases of the image's packages and build tools

requirements.txt: LOCKED := pyproject.toml --extra service --extra iceberg --extra hdfs --extra traces
requirements-build.txt: LOCKED := --group image

# Always written anew, because new releases make them old. Their first line, a comment, is kept.
.PHONY: requirements.txt requirements-build.txt
requirements.txt requirements-build.txt: $(BIN)/pip
	@$(PIP) 'uv>=0.7'
	$(BIN)/uv pip compile $(LOCKED) --quiet \
	  --upgrade --generate-hashes --universal --python-version 3.10 --no-annotate --no-header \
	  --output-file .venv/$@
	(sed -n 1p $@; cat .venv/$@) > .venv/$@.new
	mv .venv/$@.new $@

pictures: $(INSTALLED) chromium ## Draw the pictures of docs/how-to/dashboard.md anew
	WINDROW_PICTURES=docs/images $(BIN)/pytest tests/browser/test_dashboard.py tests/browser/test_acting.py tests/browser/test_signing_in.py

states: $(INSTALLED) chromium ## Take pictures of the dashboard in every state, to look at
	mkdir -p dist/states
	WINDROW_STATES=dist/states $(BIN)/pytest tests/browser/test_states.py

bench: $(INSTALLED) java ## Compare the readers on generated tables
	$(BIN)/python benchmarks/read_small_files.py

clean: ## Remove what was built; data/ stays
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
