# Everything runs from a virtual environment in .venv, made on first use.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO_INSTALLED := .venv/.demo-installed
QUICK_SPARK := .venv/spark.jsa .venv-spark35/spark.jsa

# Hundreds of processes would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: requirements help setup demo test test-fast test-nightly test-sparks check format openapi pictures bench java older-spark other-sparks image chromium clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: $(INSTALLED) ## Make the virtual environment

# In a terminal pip shows the progress of each download; elsewhere the line before it must do.
PIP := [ -t 1 ] && quiet= || quiet=--quiet; $(BIN)/python -m pip install $$quiet

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Windrow needs Python 3.10 or newer")'
	@echo "Making a virtual environment in .venv"
	@$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml | $(BIN)/pip
	@echo "Installing everything for work on Windrow into .venv: 2.2 GB"
	@$(PIP) --editable '.[service,traces,spark,connect,worker,demo,test]'
	@touch $@ $(DEMO_INSTALLED)

# Modules are compiled when they are imported: most never are.
$(DEMO_INSTALLED): pyproject.toml | $(BIN)/pip
	@echo "Installing what the demo needs into .venv: 870 MB, most of it Spark"
	@$(PIP) --no-compile --editable '.[service,spark,demo]'
	@touch $@

$(QUICK_SPARK): $(INSTALLED) | java # What lets the tests' JVMs start in half the time.
	@$(@D)/bin/python -m tests.support.quick_spark >/dev/null 2>&1 || \
	  echo "No archive of Spark's classes could be written: each JVM of the tests takes longer to start" >&2

.venv-spark35/spark.jsa: | older-spark

older-spark: $(INSTALLED) # In an environment of its own, which is kept.
	@$(BIN)/python -m tests.support.older_spark

other-sparks: older-spark # 1.3 GB, likewise kept.
	@$(BIN)/python -m tests.support.older_spark --all

image: $(INSTALLED) # What the Dockerfile installs, without Docker; kept until a copied file changes.
	@$(BIN)/python -m tests.deploy.image_build

java:
	@command -v java >/dev/null || [ -n "$$JAVA_HOME" ] || { \
	  echo "Spark needs Java 17 or newer, and there is none here: install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2; exit 1; }

chromium: # The one thing that no wheel brings; only tests/browser needs it.
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	  else echo "No Chromium here: tests/browser is left out. Install it with: apt-get install chromium" >&2; fi; }

demo: java $(DEMO_INSTALLED) ## Read 19,486 small files three ways and compare
	@$(BIN)/windrow demo

# Four processes, for two cores, as tests wait half the time: for other processes, leases and timeouts.
# They share the tests as tests/support/distribution.py says, in its order.
PYTEST := $(BIN)/pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

test: $(INSTALLED) $(QUICK_SPARK) image chromium ## Run all tests
	$(PYTEST)

test-fast: $(INSTALLED) ## Run the quick tests that need no Spark, in about two and a half minutes
	$(PYTEST) -m "not spark and not slow" tests/unit tests/property tests/contract

test-nightly: $(INSTALLED) $(QUICK_SPARK) other-sparks image chromium ## Run all tests, their laws on many examples drawn anew
	$(PYTEST) --hypothesis-profile=nightly --all-sparks

test-sparks: $(INSTALLED) $(QUICK_SPARK) other-sparks ## Run the tests that try every supported release of Spark
	$(PYTEST) --all-sparks -m every_spark

check: $(INSTALLED) ## Lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: $(INSTALLED) ## Write openapi.yaml anew, and docs/access-matrix.md from it
	$(BIN)/python -m windrow_service.openapi > openapi.yaml
	$(BIN)/python -m tests.support.access_matrix > docs/access-matrix.md

requirements: requirements.txt requirements-build.txt ## Lock what the image has and what builds it, newest releases

requirements.txt: LOCKED := pyproject.toml --extra service --extra iceberg --extra traces
requirements-build.txt: LOCKED := --group image

# Not by time: a new release makes them old. Their first line, which says what they are, stays.
.PHONY: requirements.txt requirements-build.txt
requirements.txt requirements-build.txt: $(BIN)/pip
	@$(PIP) 'uv>=0.7'
	$(BIN)/uv pip compile $(LOCKED) --quiet \
	  --upgrade --generate-hashes --universal --python-version 3.10 --no-annotate --no-header \
	  --output-file .venv/$@
	(sed -n 1p $@; cat .venv/$@) > .venv/$@.new
	mv .venv/$@.new $@

pictures: $(INSTALLED) chromium ## Draw the pictures of docs/dashboard.md anew
	WINDROW_PICTURES=docs/images $(BIN)/pytest tests/browser/test_dashboard.py tests/browser/test_signing_in.py

bench: $(INSTALLED) java ## Compare the readers on generated tables
	$(BIN)/python benchmarks/read_small_files.py

clean: ## Remove what was built; data/ stays
	rm -rf .venv .venv-spark* .venv-image .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
