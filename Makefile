# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo

.PHONY: help venv demo test lint shape bench soak experiments model docs clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "signspot needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 3; }
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(DEMO_READY)

# The demo needs nothing optional but what makes it faster.
$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[openvino]'
	@touch $@

venv: $(DEMO_READY) ## set up .venv, without running anything

demo: $(DEMO_READY) ## find signs in a generated video; writes demo/
	$(BIN)/signspot demo demo

test: lint ## every check of a change, under 10 minutes on 2 cores
	$(BIN)/python -m pytest -n 2 -m 'not soak'

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

shape: $(READY) ## how many rooms the package has, and how they hang together
	$(BIN)/python tools/shape.py

soak: $(READY) ## the long suites
	$(BIN)/python -m pytest -n 2 -m soak --timeout 3600 --hypothesis-profile explore

bench: $(READY) ## timings, one script per speed claim
	@for script in $(wildcard benchmarks/bench_*.py); do $(BIN)/python $$script || exit 1; done

experiments: $(READY) ## the paper's tables
	@for script in $(wildcard experiments/*/run.py); do $(BIN)/python $$script || exit 1; done

model: $(READY) ## train the next landmark model; leaves it in build/landmark-model
	$(BIN)/python experiments/landmark_model/train.py build/landmark-model

docs: $(READY) ## regenerate the generated pages of docs/
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/results.py

clean: ## remove what make made
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .hypothesis
