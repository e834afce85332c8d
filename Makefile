# All set-up happens here: a fresh clone needs Python 3.11+, pip and make, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_VENV ?= .venv-bench

.PHONY: demo test test-slow test-long soak lint docs bench clean

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "vqelites needs Python 3.11 or newer; set PYTHON=python3.12, say."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

demo: $(READY)  ## VQ-Elites on the embedded planar arm; pictures and a report in demo/
	$(BIN)/python -m vqelites.demo --out demo

TESTS = $(BIN)/python -m pytest -n 2 $(addprefix --minutes ,$(MINUTES))

test: $(READY)  ## the fast tests
	$(TESTS) -m "not slow and not long and not soak"
	$(TESTS) -m "not slow and not long and not soak" --shipped

test-slow: $(READY)  ## the slow ones; MINUTES=12 skips what is not begun by then, twice
	$(TESTS) -m "slow and not long and not soak"
	$(TESTS) -m "slow and not long and not soak" --shipped

test-long: $(READY)  ## those that train for minutes; run by hand
	$(TESTS) -m "long and not soak"
	$(TESTS) -m "long and not soak" --shipped

soak: $(READY)  ## faults and kills by the thousand, and workers kept busy; run by hand
	$(BIN)/python -m pytest -s -m soak
	$(BIN)/python -m pytest -s -m soak --shipped
	$(BIN)/python benchmarks/evaluation.py

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(BENCH_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	@touch $@

bench: $(BENCH_VENV)/.ready  ## side by side with peers, on a CPU in under 10 minutes
	$(BENCH_VENV)/bin/python -W ignore benchmarks/archive.py
	$(BENCH_VENV)/bin/python -W ignore benchmarks/peers.py

clean:
	rm -rf $(VENV) $(BENCH_VENV) demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
