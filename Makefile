# Needs Python 3.11+, make and a package index. PYTHON names the interpreter, if not python3.

BIN := .venv/bin
UV := 0.13.9
LOCK := lock-tool/bin/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --quiet --upgrade
export PYTHON

.PHONY: help setup serve setup-dev model check test contract page lighthouse bench bench-storage bench-settings bench-scheduling bench-context bench-retrieval chaos chaos-live chaos-quotas chaos-replicas chaos-kill chaos-workers chaos-ingestion fuzz-policy eval-policy train-policy load lock clean
.NOTPARALLEL:

help:
	@echo "make setup   .venv with everything that serving needs"
	@echo "make serve   the server, on 127.0.0.1:8000 and 127.0.0.1:8001"
	@echo "make test    format, lint, types, layers, tests"
	@echo "make contract   every engine against one contract, the slow ones too"
	@echo "make page    the chat page and the operations pages in a browser (Debian: apt install chromium)"
	@echo "make lighthouse   their points for accessibility and best practices, at least 95 (PAGES=\"http://...\")"
	@echo "make bench   throughput and latency against the bare engine"
	@echo "make bench-scheduling   who waits for whom, predicted times, and the simulator, on the real model"
	@echo "make bench-context   long conversations: within the window, accounted for, and cached, on the real model"
	@echo "make bench-retrieval   how much of what answers a question is found in files (DATA=folder)"
	@echo "make bench-settings   what each setting of the OpenVINO engine does to its speed"
	@echo "make bench-storage   the database with 100,000 conversations (DATABASE=sqlite|postgres)"
	@echo "make chaos   the simulated server under attack (SEEDS=50 MINUTES=10)"
	@echo "make chaos-live   the real server under load and attack (SECONDS=180)"
	@echo "make chaos-quotas   far more requests than a plan allows, and a killed server (DATABASE=sqlite|postgres)"
	@echo "make chaos-replicas   one of two replicas behind a server killed under load"
	@echo "make chaos-kill   the real server killed and started under load (KILLS=100 DATABASE=sqlite|postgres)"
	@echo "make chaos-workers   the real server killed while it makes titles, summaries and memories (KILLS=100 DATABASE=sqlite|postgres)"
	@echo "make chaos-ingestion   the real server killed while it reads files (KILLS=100 DATABASE=sqlite|postgres)"
	@echo "make fuzz-policy   disguised phrases against the output window (STREAMS=20000 SEED=1)"
	@echo "make eval-policy    the classifier cross-validated on public sets (DATA=folder)"
	@echo "make train-policy   its weights anew, the same to the byte (DATA=folder)"
	@echo "make load    people and programs against a running server (HOST=... USERS=16 SHAPE=viral KEYS=file)"
	@echo "make lock    both lock files anew"
	@echo "make clean   everything that can be made again, but no model"

setup:
	@scripts/setup runtime

serve: setup
	@exec $(BIN)/antiphon serve

setup-dev:
	@scripts/setup dev

model: setup
	@$(BIN)/antiphon models pull

# How many processes. All tests of the real model share one, so more than two of them help little.
WORKERS ?= 2

# flake8-async is slow, and has nothing to say of a file without any of these words.
check: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	grep -rlE 'async|trio|BaseException|ExceptionGroup' --include='*.py' antiphon | \
		xargs -n 20 -P $(WORKERS) $(BIN)/flake8-async --enable=ASYNC
	$(BIN)/mypy
	$(BIN)/lint-imports

# pytest is last: its summary is the last line.
test: check model
	$(BIN)/pytest -n $(WORKERS)

contract: setup-dev model
	$(BIN)/pytest -m "heavy or not heavy" tests/contract

page: setup-dev model
	$(BIN)/pytest -m "heavy or not heavy" tests/web

PAGES ?=
lighthouse: setup-dev
	$(BIN)/python scripts/web-lighthouse $(PAGES)

bench: setup-dev model
	$(BIN)/python -m bench
	$(BIN)/python -m bench.actors
	$(BIN)/python -m bench.scheduling

bench-settings: setup-dev model
	$(BIN)/python -m bench.sweep
	$(BIN)/python -m bench.threads

bench-scheduling: setup-dev model
	$(BIN)/python -m bench.lanes
	$(BIN)/python -m bench.prediction
	$(BIN)/python -m bench.fidelity
	$(BIN)/python -m bench.million

bench-retrieval: setup-dev
	$(BIN)/python -m bench.retrieval "$(DATA)" --conversations

bench-context: setup-dev model
	$(BIN)/python -m bench.context
	$(BIN)/python -m bench.memory_recall
	$(BIN)/python -m bench.workers
	$(BIN)/python -m bench.ingestion

DATABASE ?= sqlite
bench-storage: setup-dev
	$(BIN)/python -m bench.storage --database $(DATABASE) --conversations 100000

SEEDS ?= 50
MINUTES ?= 10
chaos: setup-dev
	$(BIN)/python -m chaos --seeds $(SEEDS) --minutes $(MINUTES)

SECONDS ?= 180
chaos-live: setup-dev model
	$(BIN)/python -m chaos.live --seconds $(SECONDS)

chaos-quotas: setup-dev model
	$(BIN)/python -m chaos.quotas --database $(DATABASE)

chaos-replicas: setup-dev model
	$(BIN)/python -m chaos.replicas

KILLS ?= 100
chaos-kill: setup-dev model
	$(BIN)/python -m chaos.restart --kills $(KILLS) --database $(DATABASE)

chaos-workers: setup-dev model
	$(BIN)/python -m chaos.workers --kills $(KILLS) --database $(DATABASE)

chaos-ingestion: setup-dev model
	$(BIN)/python -m chaos.ingestion --kills $(KILLS) --database $(DATABASE)

STREAMS ?= 20000
SEED ?= 1
fuzz-policy: setup-dev
	$(BIN)/python -m chaos.disguises --streams $(STREAMS) --seed $(SEED)

DATA ?= data
eval-policy: setup-dev
	$(BIN)/python -m training.measure --data $(DATA)

train-policy: setup-dev
	$(BIN)/python -m training.policy --data $(DATA)

HOST ?= http://127.0.0.1:8000
USERS ?= 16
SHAPE ?= steady
LENGTH ?= $(if $(filter viral,$(SHAPE)),120s,60s)
KEYS ?=
load: setup-dev
	$(BIN)/locust -f load/locustfile.py --headless -u $(USERS) -r 4 -t $(LENGTH) --host $(HOST) \
		--shape $(SHAPE) $(if $(KEYS),--keys $(KEYS))

lock:
	$${PYTHON:-python3} -m venv build/lock-tool
	build/lock-tool/bin/python -m pip install --quiet uv==$(UV)
	build/$(LOCK) --group build -o requirements.lock pyproject.toml
	build/$(LOCK) --group build --group dev -c requirements.lock -o requirements-dev.lock \
		pyproject.toml

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache .coverage bench-results
	find antiphon bench load tests -name __pycache__ -exec rm -rf {} +
