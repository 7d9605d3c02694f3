# One command each. `make` alone lists them.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
TIERS := tests/unit tests/integration tests/end_to_end tests/crash

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv, see to Java, fetch Delta's jar (quick the second time)
	@scripts/setup.sh

.PHONY: demo
demo: setup ## copy a live shop database into a lake and compare them (ARGS=--help for more)
	@$(PYTHON) -m demo $(ARGS)

.PHONY: check
check: setup ## style, types and import direction
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

.PHONY: test
test: check ## everything: the checks, then the tests, cheapest first
	@for tier in $(TIERS); do \
	    find $$tier -name 'test_*.py' | grep -q . || continue; \
	    echo "== $$tier"; \
	    $(PYTHON) -m pytest -q $$tier || exit 1; \
	done

.PHONY: bench
bench: bench-log ## all benchmarks

.PHONY: bench-log
bench-log: setup ## the log alone: append, fsync, read
	$(PYTHON) -m benchmarks.log

.PHONY: clean
clean: ## remove what setup, demo and tests made here
	rm -rf .venv .demo build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
