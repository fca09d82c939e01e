# Everything a contributor runs. `make` prints this list.

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help run test test-outages check fmt schema guard bench bench-growth bench-peers bench-report bench-scale bench-pages bench-workflows clean

help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUN_STAMP) ## Start the example on a SQLite file: needs nothing but python3
	$(BIN)/mainspring dev examples/hello.py $(ARGS)

# Two processes for each core: most tests wait for a database, a process or a lease.
test: $(DEV_STAMP) ## Run every test on SQLite and PostgreSQL (ARGS='-k claim' passes through)
	@tests/support/install-chromium || echo "the tests of the dashboard will be skipped"
	$(BIN)/pytest -n $$(( $$($(BIN)/python -c 'import os; print(os.cpu_count())') * 2 )) --dist worksteal $(ARGS)

test-outages: $(DEV_STAMP) ## Stop PostgreSQL under running handlers for 10 s, 1 min and 5 min, seven minutes
	MAINSPRING_TEST_LONG_OUTAGES=1 $(BIN)/pytest -n 3 tests/e2e/test_outage.py -k long_outage $(ARGS)

check: $(DEV_STAMP) ## Format, lint, types, imports and dependencies, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

fmt: $(DEV_STAMP) ## Format, and fix what can be fixed
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

schema: $(DEV_STAMP) ## Rewrite the schema snapshots from the migrations
	$(BIN)/python -m tests.support.schema --write

bench: $(DEV_STAMP) ## Measure ours on both stores, a quarter of an hour (ARGS='--only drain pickup')
	$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(DEV_STAMP) ## Measure ours beside the others, almost two hours (ARGS='--peers pgqueuer --workloads drain')
	$(BIN)/python -m benchmarks.beside $(ARGS)

bench-report: $(DEV_STAMP) ## Make docs/benchmarks.md of the results
	$(BIN)/python -m benchmarks.report $(ARGS)

bench-growth: $(DEV_STAMP) ## Draw cost per job as backlog, history, schedules, workers and time grow, hours (ARGS='--small')
	$(BIN)/python -m benchmarks.growth $(ARGS)

bench-scale: $(DEV_STAMP) ## Fill a PostgreSQL with schedules, simulate a day of 100M, write docs/scale.md (ARGS='--schedules 10000000')
	$(BIN)/python -m benchmarks.scale $(ARGS)

guard: $(DEV_STAMP) ## Count what a job costs, beside what was recorded (ARGS=--write records it)
	$(BIN)/python -m benchmarks.guard $(ARGS)

bench-pages: $(DEV_STAMP) ## Time what stands behind every page over a full PostgreSQL (ARGS='--scale 0.1')
	$(BIN)/python -m benchmarks.pages $(ARGS)

bench-workflows: $(DEV_STAMP) ## Measure workflows beside DBOS and Celery, an hour (ARGS='--ours --wide 1000')
	$(BIN)/python -m benchmarks.workflows $(ARGS)

clean: ## Remove the environment and what tools left behind
	rm -rf $(VENV) .bench dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Installed again only when what is to be installed has changed.
$(RUN_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[postgres,server]' -c constraints.txt
	@touch $@

$(DEV_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	@touch $@ $(RUN_STAMP)
