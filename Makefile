# One command each. `make` alone lists them.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python

# Tests start hundreds of processes. Where this is set, each of them compiles all our modules again.
unexport PYTHONDONTWRITEBYTECODE

# Runs the tests of one tier and says how long they took. One that failed is run again, alone, only to say whether it is
# a race; the tier has failed either way.
TIER = $(PYTHON) scripts/tier.py $(1)

# What depends most on the server's version: the protocol, the catalog and how values are printed.
ON_AN_OLDER_SERVER := $(addprefix tests/integration/postgres/test_,catalog.py decode.py round_trip.py streaming.py)

# And what depends most on Spark's: the engine, and every row in its tasks.
OLDER_SPARK := .venv-spark41
ON_AN_OLDER_SPARK := $(addprefix tests/integration/engine/test_,engine_promises.py rows_in_tasks.py spark_engine.py)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv, see to Java and Chromium, fetch Delta's jar (quick the second time)
	@scripts/setup.sh

.PHONY: demo
demo: setup ## copy a live shop database into a lake, compare them, and show the console (ARGS=--help for more)
	@$(PYTHON) -m demo $(ARGS)

.PHONY: check
check: setup ## style, types and import direction
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

.PHONY: unit
unit: setup ## the unit tests alone, in seconds
	@$(call TIER,tests/unit -n 2)

.PHONY: test
test: check ## everything that CI runs: the checks, then the tests, cheapest first, without the long ones
	@$(call TIER,tests/unit -n 2)
	@$(PYTHON) -m tests.mysql_servers
	@$(call TIER,tests/integration -m 'not proof and not thorough and not spark' -n 4 --dist worksteal)
	@$(call TIER,tests/browser -m 'not thorough' -n 2 --dist worksteal)
	@$(call TIER,tests/integration -m 'not proof and not thorough and spark' -n 2 --dist worksteal)
	@scripts/venv.sh $(OLDER_SPARK) $(PYTHON) pyspark==4.1.1
	@$(MAKE) --no-print-directory older-spark PYTHON=$(OLDER_SPARK)/bin/python
	@$(call TIER,tests/end_to_end/test_ugly.py tests/end_to_end tests/crash \
	  -m 'not proof and not thorough' -n 3 --dist worksteal)

.PHONY: thorough
thorough: setup ## the long tests that make test leaves out (tests/thorough.txt), and an older Postgres
	@$(call TIER,tests/integration -m 'not proof and thorough and not spark' -n 4 --dist worksteal)
	@$(call TIER,tests/integration -m 'not proof and thorough and spark' -n 2 --dist worksteal)
	@$(call TIER,tests/end_to_end tests/crash -m 'not proof and thorough' -n 3 --dist worksteal)
	@$(call TIER,$(ON_AN_OLDER_SERVER) --postgres 16 -n 4)

.PHONY: older-spark
older-spark: ## the tests that depend most on Spark's version, on PYTHON
	@$(call TIER,$(ON_AN_OLDER_SPARK) -n 2)

# What else is supported, each in an environment of its own: the older Spark, and a newer Python where there is one.
NEWER_PYTHON := $(shell for each in python3.13 "$$HOME"/.pyenv/versions/3.13*/bin/python3.13; do \
  "$$each" -c "" 2>/dev/null && echo "$$each" && break; done)

.PHONY: spark-tier
spark-tier: ## the tests with Spark, on PYTHON
	@$(call TIER,tests/integration -m 'not proof and spark' -n 2 --dist worksteal)

.PHONY: versions
versions: setup ## every test that needs Spark, on pyspark 4.1 and on Python 3.13 where this machine has it
	@scripts/venv.sh $(OLDER_SPARK) $(PYTHON) pyspark==4.1.1
	@$(MAKE) --no-print-directory spark-tier PYTHON=$(OLDER_SPARK)/bin/python
	@[ -z "$(NEWER_PYTHON)" ] || scripts/venv.sh .venv-python313 $(NEWER_PYTHON)
	@[ -z "$(NEWER_PYTHON)" ] || $(MAKE) --no-print-directory spark-tier PYTHON=.venv-python313/bin/python

.PHONY: proof
proof: versions ## the long sweeps: every Postgres, every crash point, every damaged byte, kills at random moments
	@scripts/postgres.sh 15
	@$(call TIER,tests/integration tests/end_to_end tests/crash -n 2 --dist worksteal --postgres 15)
	@$(call TIER,tests/integration tests/end_to_end tests/crash -n 2 --dist worksteal --postgres 16)
	@$(call TIER,tests/integration tests/end_to_end tests/crash -n 2 --dist worksteal --postgres 18)
	@$(call TIER,tests/proof)
	@HYPOTHESIS_EXAMPLES=50; export HYPOTHESIS_EXAMPLES; $(call TIER,tests/integration tests/crash -m proof)
	@HYPOTHESIS_EXAMPLES=200; export HYPOTHESIS_EXAMPLES; $(call TIER,tests/integration/postgres/test_key_chunks.py)
	@HYPOTHESIS_EXAMPLES=1000; export HYPOTHESIS_EXAMPLES; $(call TIER,tests/unit -n 2)

.PHONY: bench
bench: bench-log bench-capture bench-decode bench-apply bench-live bench-snapshot bench-memory bench-engine bench-tables bench-week bench-incremental bench-server ## all benchmarks; takes an hour (ARGS=--quick: minutes)

# What only benchmarks need. Fetched when a benchmark is first run. One of them without what it
# depends on: only its decoder is used, and its driver would have to be compiled.
.venv/bench-stamp: pyproject.toml requirements.lock | setup
	@echo "setup: installing what only benchmarks need"
	@.venv/bin/pip install --quiet --constraint requirements.lock --editable '.[bench]'
	@.venv/bin/pip install --quiet --no-deps pypgoutput==0.0.3
	@touch $@

.PHONY: bench-log
bench-log: setup ## the log alone: append, fsync, read
	$(PYTHON) -m benchmarks.log $(ARGS)

.PHONY: bench-capture
bench-capture: setup ## from the server's WAL into the log, next to pg_recvlogical and the server's own decoding
	$(PYTHON) -m benchmarks.capture $(ARGS)

.PHONY: bench-decode
bench-decode: .venv/bench-stamp ## from logged bytes to typed columns, next to a decoder that goes row by row
	$(PYTHON) -m benchmarks.decode $(ARGS)

.PHONY: bench-apply
bench-apply: .venv/bench-stamp ## a million changes from the log to the lake, next to Debezium and MERGE
	$(PYTHON) -m benchmarks.apply $(ARGS)

.PHONY: bench-live
bench-live: .venv/bench-stamp ## from a commit to a query that shows it, while sync publishes
	$(PYTHON) -m benchmarks.live $(ARGS)

.PHONY: bench-snapshot
bench-snapshot: .venv/bench-stamp ## the first copy of TPC-H, next to Spark's JDBC reader and COPY
	$(PYTHON) -m benchmarks.snapshot $(ARGS)

.PHONY: bench-tables
bench-tables: setup ## what a table costs that nothing happens to, in lakes of up to 1,000
	$(PYTHON) -m benchmarks.tables $(ARGS)

.PHONY: bench-memory
bench-memory: setup ## memory: one transaction of up to ten million changes published; a sync and a server with nothing to do
	$(PYTHON) -m benchmarks.memory $(ARGS)

.PHONY: bench-engine
bench-engine: setup ## what Spark costs a publish of five small tables, and what a second core gains
	$(PYTHON) -m benchmarks.engine $(ARGS)

.PHONY: bench-week
bench-week: setup ## a week of small commits: files, history, cuts and the cost of a batch stay bounded
	$(PYTHON) -m benchmarks.week $(ARGS)

.PHONY: bench-incremental
bench-incremental: .venv/bench-stamp ## a table copied again under load, next to Debezium's incremental snapshot
	$(PYTHON) -m benchmarks.incremental $(ARGS)

.PHONY: bench-server
bench-server: setup ## a minute of requests to a server of fifty connectors: the one that streams is not held up
	$(PYTHON) -m benchmarks.server $(ARGS)

.PHONY: clean
clean: ## remove what setup, demo and tests made here
	rm -rf .venv .venv-spark41 .venv-python313 .demo build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
