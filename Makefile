# make demo: a real experiment on embedded data. make test: the tests. Both set everything up.

PYTHON ?= $(shell command -v python3.12 >/dev/null 2>&1 && python3.12 -c '' 2>/dev/null && echo python3.12 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LAUNCHERS := $(VENV)/.installed-launchers
OLDEST := .venv-oldest
NEWEST := .venv-newest
# Python compiles a module when it is first imported; pip would compile all, for half of the time.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-rest test-all test-long test-oldest test-newest chaos fuzz lint types format docs site benchmark \
  package version clean

# Two targets install into the same environment, and must not do so at once.
.NOTPARALLEL:

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What the launchers need, in half of the time of all.
$(LAUNCHERS): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -c requirements.txt -e '.[experiments]'
	touch $(LAUNCHERS)

# requirements.txt names all packages and versions, so that nothing is to be resolved, which saves ten seconds.
$(STAMP): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) --no-deps -r requirements.txt -e .
	touch $(LAUNCHERS) $(STAMP)

demo: $(LAUNCHERS)
	$(BIN)/python -m experiments.compare \
	  --configs=configs/ip_cae.py,configs/cae.py,configs/random_selection.py \
	  --workdir=runs/demo
	@echo "pictures: runs/demo/*/curves.png and runs/demo/*/selection.png"

# Most of the time of the tests is compilation: no optimisation by LLVM, no code made of fusions by
# way of MLIR, no modules cut up for several threads. The numbers differ in their last bits.
FAST_COMPILE := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
  --xla_cpu_parallel_codegen_split_count=1

# One thread per worker: on two cores, the threads of OpenBLAS and OpenMP wait for one another in loops
# that take longer than the work. Some shells forbid Python to write bytecode; each of the hundred
# processes that the tests start would then compile JAX from its source, for four seconds.
TEST_SETTINGS = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 JAX_TRACEBACK_IN_LOCATIONS_LIMIT=0 \
  XLA_FLAGS="$(1) $$XLA_FLAGS"

PYTEST = $(call TEST_SETTINGS,$(FAST_COMPILE)) $(BIN)/python -m pytest -n 2 --dist worksteal $(1) $(PYTEST_FLAGS)

# What a change needs; PYTEST_FLAGS=--cpu-limit=3 fails tests that should be marked slow, as CI does.
test: $(STAMP)
	$(call PYTEST,-m "not slow and not long")

# The tests that take longer, on both cores.
test-rest: $(STAMP)
	$(call PYTEST,-m "slow and not long")

test-all: test test-rest

# Tests of minutes each: figures of papers on real data, workers that are killed, checks of every class; with
# the default optimisation of programs.
test-long: $(STAMP)
	$(BIN)/python -m pytest -m long

# The smoke test in an environment, in a new empty folder of it; optionally of one version of fsjax.
SMOKE = rm -rf $(1)/smoke && mkdir $(1)/smoke && cd $(1)/smoke && \
  $(abspath $(1))/bin/python -I $(CURDIR)/tools/smoke.py $(2)

# The tests with the oldest versions that pyproject.toml allows, and with the newest there are; with
# TESTS="tests/methods -k wast" some of them. Such versions warn of one another, so that a warning is
# not an error here. JAX 0.11 no longer knows one of the flags, and would abort.
TESTS ?=
SOME_VERSIONS = $(call TEST_SETTINGS,$(2)) \
  $(1)/bin/python -m pytest -W default -m "not slow and not long" -n 2 --dist worksteal $(TESTS)

test-oldest:
	test -x $(OLDEST)/bin/python || python3.11 -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP_INSTALL) -r requirements-oldest.txt
	$(OLDEST)/bin/python $(PIP_INSTALL) --no-deps -e .
	$(call SMOKE,$(OLDEST))
	$(call SOME_VERSIONS,$(OLDEST),$(FAST_COMPILE))

test-newest:
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(PIP_INSTALL) --upgrade --upgrade-strategy eager -e '.[test]'
	$(call SMOKE,$(NEWEST))
	$(call SOME_VERSIONS,$(NEWEST),$(filter-out %fusion_emitters=false,$(FAST_COMPILE)))

# Wheel and sdist in dist/. Each is installed into an empty environment and tried there: the wheel
# without any extra, the sdist with all.
PACKAGE := build/package
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' fsjax/__init__.py)

package:
	rm -rf dist $(PACKAGE)
	$(PYTHON) -m venv $(PACKAGE)/builder
	$(PACKAGE)/builder/bin/python $(PIP_INSTALL) build
	$(PACKAGE)/builder/bin/python -m build --quiet --outdir dist .
	$(PACKAGE)/builder/bin/python -m tools.wheel_contents dist/*.whl
	$(PYTHON) -m venv $(PACKAGE)/wheel
	$(PACKAGE)/wheel/bin/python $(PIP_INSTALL) dist/*.whl
	$(call SMOKE,$(PACKAGE)/wheel,$(VERSION))
	$(PYTHON) -m venv $(PACKAGE)/sdist
	$(PACKAGE)/sdist/bin/python $(PIP_INSTALL) "$$(echo dist/*.tar.gz)[all]"
	$(call SMOKE,$(PACKAGE)/sdist,$(VERSION))

version:
	@echo $(VERSION)

# Runs that are killed and damaged (docs/robustness.md); with
# CHAOS="--only=kills and signals" and the like less.
chaos: $(STAMP)
	$(BIN)/python -m tools.chaos $(CHAOS)

# Thousands of damaged files (docs/robustness.md);
# as FUZZ="--minutes=2 --seed=1" more or fewer of them.
fuzz: $(STAMP)
	$(BIN)/python -m tools.fuzz $(FUZZ)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy rather than pyright, as it is a Python package, pinned with the others, that needs no Node.
types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages; the tests run the examples on them.
docs: $(STAMP)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env \
	  --doctree-dir build/doctrees docs build/site

# The site beside those of other versions: in PAGES/SITE_VERSION, with a menu that leads to all.
PAGES ?= build/pages
SITE_VERSION ?= dev
SITE_ADDRESS ?= https://fsjax.github.io/fsjax

site:
	FSJAX_SITE_ADDRESS=$(SITE_ADDRESS) FSJAX_SITE_VERSION=$(SITE_VERSION) $(MAKE) docs
	$(BIN)/python -m tools.site_versions build/site $(PAGES) $(SITE_VERSION) $(SITE_ADDRESS)

benchmark: $(STAMP)
	$(BIN)/python -m experiments.benchmark

clean:
	rm -rf $(VENV) $(OLDEST) $(NEWEST) build dist *.egg-info
