# Every target prepares .venv by itself; `make help` lists them.
PYTHON ?= python3
SECONDS ?= 60
SOAK_SECONDS ?= 600
LONG_SECONDS ?= 600
PLAIN := tests/store/test_sqlite_conformance.py tests/postgres/test_conformance.py
QUICK := tests/core tests/engine tests/worker tests/app tests/store tests/examples
# Tests wait about as long as they compute.
WORKERS ?= 4
STORE ?= both
SEED ?=
PY := .venv/bin/python
# Bytecode is kept, whatever the shell says: a test run starts a thousand interpreters.
export PYTHONDONTWRITEBYTECODE =
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-remote demo-dashboard test test-quick test-browser test-long check bench bench-against bench-waits bench-quick soak crash chaos power-loss certificate docs site verify lock clean
# Parts of test and of check, which run two at a time; what each says comes in one piece.
CHECKS := check-types check-types-of-tests check-rules check-lint
TOGETHER := $(MAKE) --no-print-directory -j 2 --output-sync
.PHONY: $(CHECKS) test-some test-plain test-tools

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## prepare .venv (a fraction of a second when nothing changed)
	@scripts/setup

demo: setup ## workers, a kill -9 halfway, and the books; about ten seconds
	@scripts/demo

demo-remote: setup ## remote workers over a broker, one killed, a late report, and the books; 20 seconds
	@$(PY) -m demo.remote

demo-dashboard: setup ## the dashboard over a lively store, until Ctrl-C; BIND=127.0.0.1:8000
	@$(PY) -m demo.dashboard

test-quick: setup ## check, and core, engine, app, store and examples without a server; 90 s
	@$(TOGETHER) $(CHECKS) test-some

test: setup ## what CI runs: check, then all tests but the long ones; about twelve minutes
	@$(TOGETHER) $(CHECKS) test-tools
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal --share --ignore=tests/tidy --ignore=tests/browser
	@$(TOGETHER) test-browser test-plain

test-some: setup
	@$(PY) -m pytest -n 2 --dist worksteal -q --quick $(QUICK)

test-plain: setup
	@TALLYSTICK_PLAIN=1 $(PY) -m pytest -q -n 2 --dist worksteal $(PLAIN)

test-tools: setup
	@scripts/azurite

test-browser: setup ## the dashboard in chromium, which it installs; pictures are in build/browser; a minute
	@scripts/browser
	@CI=1 $(PY) -m pytest -q tests/browser

test-long: setup ## what takes an hour: sweeps, chaos, power loss, the whole model, a soak
	-@scripts/prometheus
	-@scripts/deployment
	-@scripts/image
	@$(PY) -m pytest -n 2 --share -m long --timeout=3600
	@$(PY) -m tests.model
	@$(MAKE) --no-print-directory crash SECONDS=$(LONG_SECONDS)
	@$(MAKE) --no-print-directory chaos SECONDS=$(LONG_SECONDS)
	@$(MAKE) --no-print-directory power-loss SECONDS=$(LONG_SECONDS)
	@$(MAKE) --no-print-directory soak SOAK_SECONDS=$(LONG_SECONDS)

check: setup ## format, lint, types, layers and house rules; no other tests
	@$(TOGETHER) $(CHECKS)

check-types: setup
	@$(PY) -m mypy

check-types-of-tests: setup
	@$(PY) -m mypy --config-file tests/mypy.ini

check-rules: setup
	@$(PY) -m pytest -q tests/tidy

check-lint: setup
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m ruff check --quiet .
	@.venv/bin/lint-imports --no-logo

bench: setup ## benchmarks against peers and against the limits
	@$(PY) -m bench

bench-against: setup ## this tree against the revision REV, ours only; WITH="--quick --only kernel --rounds 3"
	@test -n "$(REV)" || { echo 'say which: make bench-against REV=82afe54 [WITH="--quick"]' >&2; exit 2; }
	@scripts/at_revision "$(REV)" "$(CURDIR)/$(PY)" -m bench.against $(WITH)

bench-waits: setup ## what waiting costs, this tree against the revision REV; WITH="--rounds 3"
	@test -n "$(REV)" || { echo 'say which: make bench-waits REV=82afe54 [WITH="--rounds 3"]' >&2; exit 2; }
	@scripts/at_revision "$(REV)" "$(CURDIR)/$(PY)" -m bench.waits $(WITH)

bench-quick: setup ## the same in small, under three minutes
	@$(PY) -m bench --quick

soak: setup ## jobs of 1-10 KB on PostgreSQL for SOAK_SECONDS=600: do the rates hold?
	@$(PY) -m bench.soak --seconds $(SOAK_SECONDS)

crash: setup ## kill workers at every crash point for SECONDS=60, on STORE=sqlite, postgres or both
	@$(PY) -m tests.crash.sweep --seconds $(SECONDS) --store $(STORE)

chaos: setup ## mixed work in several processes under faults for SECONDS=60, on STORE=, again with SEED=
	@scripts/chaos_tools
	@$(PY) -m tests.chaos --seconds $(SECONDS) --store $(STORE) --seed "$(SEED)"

power-loss: setup ## cut the power on paper after any write for SECONDS=60, again with SEED=
	@$(PY) -m tests.power_loss --seconds $(SECONDS) --seed "$(SEED)"

certificate: setup ## run the conformance suite on all three stores and print what each keeps; three minutes
	@$(PY) -m pytest -q -n 2 --dist worksteal -p tallystick.testing.conformance.certificate $(PLAIN) tests/azure/test_conformance.py

docs: setup ## write the pages that are generated from code
	@$(PY) scripts/docs.py
	@$(PY) scripts/plots.py

site: setup ## build the documentation site into build/site/html
	@$(PY) scripts/build_site.py

verify: setup ## fail when a generated page is stale
	@$(PY) scripts/docs.py --check

lock: setup ## compile requirements.in (UPGRADE=1 takes newer versions)
	@scripts/lock

clean: ## remove .venv, tools and caches
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
