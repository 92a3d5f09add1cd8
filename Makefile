# `make help` lists the targets. Every step is incremental: a second run starts within seconds.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
DEMO ?= examples/toy_example.py
ARGS ?=
export VENV

python := $(VENV)/bin/python
deps := $(VENV)/.deps
installed := $(VENV)/.installed
pytest := $(python) -m pytest
clang_format := $(VENV)/bin/clang-format
c_files = $(wildcard native/*.c native/*.h)
cpp_files = $(wildcard native/*.cpp native/*.hpp native/*/*.cpp native/*/*.h)

.PHONY: help venv build openreg demo test test-quick test-py312 test-py313 test-py314 test-torch test-native test-asan \
	test-asan-openreg wheel-check nightly lint format bench bench-baseline bench-counters bench-quick performance docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9 -]+:.*## / { printf "  make %-34s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=... the interpreter for a new $(VENV) (3.11 preferred); ARGS=... more arguments for pytest"

$(deps): requirements-dev.txt
	@[ -x $(python) ] || { found=$$(scripts/find-python 3.11 3.12 3.13 3.14); "$$found" -m venv $(VENV); }
	$(python) -m pip install -qq -r requirements-dev.txt
	@touch $@

# The tree itself, editable: `import minidynamo` and the command `minidynamo` work from everywhere.
$(installed): $(deps) setup.cfg pyproject.toml
	MINIDYNAMO_BUILD_CXX=off $(python) -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

venv: $(deps) ## the environment .venv with the pinned dependencies

build: $(installed) ## the native extensions, in place
	@$(python) setup.py -q build_ext --inplace

openreg: $(installed) ## the simulated accelerator, in place (fails without torch or a C++ compiler), and its tour
	MINIDYNAMO_BUILD_CXX=required $(python) setup.py -q build_ext --inplace
	$(python) -m minidynamo.openreg

demo: build ## the demonstration program
	$(python) $(DEMO)

test: build ## every test but the nightly ones
	$(pytest) -m "not nightly" $(ARGS)

test-quick: build ## the quick tests, in two processes: under two minutes
	COLUMNS=120 $(pytest) -n 2 --dist loadfile -m "not slow and not nightly" $(ARGS)

test-py312 test-py313 test-py314: test-py3%: ## the quick tests on that Python, .venv-3.12 and so on
	@scripts/test-python 3.$*

test-torch: ## the quick tests on every other Python whose environment has torch (WITH_TORCH=1 installs it)
	@scripts/test-torch $(ARGS)

test-native: ## the torch-free tests on every Python that can be had
	@scripts/test-native

test-asan: $(deps) ## the native tests under address and undefined-behaviour sanitizers
	@scripts/test-asan $(ARGS)

test-asan-openreg: $(deps) ## the accelerator's tests under the same sanitizers (minutes)
	@scripts/test-asan openreg $(ARGS)

wheel-check: $(deps) ## sdist and wheels, installed into a clean environment that runs the demo
	@scripts/check-wheel $(DEMO)

nightly: build test-torch test-native test-asan test-asan-openreg wheel-check ## everything, with the tests that take minutes
	$(pytest) $(ARGS)

lint: $(deps) ## ruff, mypy, clang-format
	$(python) -m ruff check --output-format concise .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(clang_format) --dry-run -Werror $(c_files)
	$(clang_format) --dry-run -Werror --style=file:.clang-format-cpp $(cpp_files)

format: $(deps) ## rewrite the sources in the project's format
	$(python) -m ruff check --fix .
	$(python) -m ruff format .
	$(clang_format) -i $(c_files)
	$(clang_format) -i --style=file:.clang-format-cpp $(cpp_files)

bench-quick: build ## a short benchmark run: under five minutes
	$(python) -m benchmarks --quick $(ARGS)

bench-counters: build ## exact counters of the quick workloads against benchmarks/baseline.json
	$(python) -m benchmarks micro models train python scaling --quick --counters --vs benchmarks/baseline.json $(ARGS)

bench-baseline: build ## writes benchmarks/baseline.json anew
	$(python) -m benchmarks micro models train python scaling --quick --counters --plain --portable benchmarks/baseline.json

bench: build ## the whole benchmark run: under forty minutes
	$(python) -m benchmarks $(ARGS)

performance: build ## the whole benchmark run, written to docs/performance.md with its plots, and to build/bench as JSON and Markdown
	$(python) -m benchmarks -o build/bench/run.json --md build/bench/run.md --page docs/performance.md $(ARGS)

docs: build ## the pages of docs/codes, from the rows of minidynamo/reasons.py
	$(python) -m minidynamo explain --write docs/codes

clean: ## everything that was built, and the caches; environments stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis minidynamo/*.so minidynamo/openreg/*.so
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
