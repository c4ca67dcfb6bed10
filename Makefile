# `make demo` and `make test` each work alone on a fresh machine: set-up makes what is missing.
PYTHON ?= python3
VENV := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup setup-collector setup-tests setup-lake setup-s3 test-lake demo demo-load test test-long test-soak quick lint bench bench-compare compare bank reconcile chaos soak live mutation conformance docs pictures plots test-operate wheel deb clean lock lock-jars

help:
	@echo "make demo    a change stream in a real broker becomes tables, compared row by row"
	@echo "             LAKE=s3: into an object store behind a REST catalog"
	@echo "             SINK=postgres or mariadb: into a database of this machine's"
	@echo "             SOURCE=mariadb, postgres or mysql: binlogd replicate alone, its parts killed"
	@echo "make demo-load  tables loaded beside changes and a kill -9, verified, repaired (MariaDB)"
	@echo "make test    the tests that every change must pass; 10 minutes on 2 cores"
	@echo "make test-long  the others: 10,000 seeds, deaths, deadlines, comparisons; 20 minutes"
	@echo "make test-soak  by hand: MySQL 9, 10,000 simulated loads, alerts for real; an hour or two"
	@echo "make test-lake  the sink's tests on REST + S3, Hive + HDFS, PostgreSQL; local and a cluster"
	@echo "make quick   the tests that need neither JVM nor Spark's packages; a minute or two"
	@echo "make lint    ruff, mypy, import-linter"
	@echo "make bench   what each stage costs, and the flow on a real broker; var/bench.json"
	@echo "make bench-compare  the same beside what an earlier make bench saved"
	@echo "make compare  beside what people would run instead; 1 hour on 2 cores; var/compare.json"
	@echo "             ONLY=databases: into PostgreSQL and MariaDB (apt-get install both servers)"
	@echo "             ONLY=load: first loads from MariaDB, beside Debezium and Spark's JDBC read"
	@echo "             ONLY=replicate: from one command to equal tables, under changes"
	@echo "             ONLY=topics: Avro with a registry, a topic a table; keys over partitions"
	@echo "make chaos   a daemon under load, killed and starved at every step; var/chaos.json"
	@echo "make bank    a bank's cuts amid kills: the sum is right in each; KILLS=50 CUTS=500"
	@echo "make reconcile  source, log and target counted amid kills; ROWS=10000000 KILLS=50"
	@echo "make soak    twenty minutes of random faults under load: equal and flat; var/soak.json"
	@echo "make live    real databases, Debezium, random statements: every table equal, or told"
	@echo "             READERS=canal,maxwell SINKS=postgres,mariadb OPERATOR=1: with others"
	@echo "make mutation  one safety rule taken out at a time: a test must fail for each"
	@echo "make conformance  other projects' sample messages: how many cases pass, by format"
	@echo "make test-operate  what operators see and do: the page in Chromium, alerts, packages"
	@echo "make docs    the docs as a site, var/site; a broken link fails"
	@echo "make pictures  the pictures in docs/pictures, as tests see the page and a verification"
	@echo "make plots   the plots in docs/figures, from docs/figures/figures.json;"
	@echo "             COMPARED=var/compare.json: of your own comparison, into var/plots"
	@echo "make wheel   binlogd as packages for pip or pipx, var/dist: with Spark, and without"
	@echo "make deb     Debian packages, 391 MB and 35 MB, var/dist"
	@echo "make setup   what binlogd needs: .venv and var/jars (PYTHON=... names another Python);"
	@echo "             EXTRAS=\"s3 postgresql\" also what such a lake needs"
	@echo "make clean   remove what the above made; other files in var/ stay"

# EXTRAS="s3 postgresql" also fetches jars that only some catalogs need (jars/extras); check-config
# says which.
EXTRAS ?=
setup:
	@setup/setup.sh "$(PYTHON)" "" "$(EXTRAS)"

setup-tests:
	@setup/setup.sh "$(PYTHON)" tests "$(EXTRAS)"

setup-lake: setup-tests
	@setup/servers.sh

# What object stores take: S3's jars for Spark, and the servers of `python -m demo.servers`.
setup-s3:
	@setup/setup.sh "$(PYTHON)" tests "s3 $(EXTRAS)"
	@$(VENV)/python -m demo.servers.jars fetch rest

setup-collector:
	@setup/setup.sh "$(PYTHON)" "" "collector mariadb postgresql $(EXTRAS)"

# LAKE=s3: the tables are behind a REST catalog over an object store, both on this machine.
# SINK=postgres or mariadb: they are in a server of this machine's packages.
# SOURCE=mariadb, postgres or mysql (setup/mysql.sh): a real database, binlogd replicate alone.
demo: $(if $(SOURCE),setup-collector,$(if $(filter s3,$(LAKE)),setup-s3,setup))
	@$(VENV)/python -m $(if $(SOURCE),demo.replicate $(SOURCE),demo) $(if $(LAKE),--lake $(LAKE)) $(if $(SINK),--sink $(SINK))

# Tables that were there before their stream: MariaDB (apt-get install mariadb-server), a load beside
# changes, a kill -9, a verification, a repair.
demo-load:
	@setup/setup.sh "$(PYTHON)" tests "mariadb $(EXTRAS)"
	@$(VENV)/python -m demo.load

# Files of tests are shared out between two processes, each with a broker and a Spark session of
# its own (docs/decisions/0021-two-test-workers.md). WORKERS=0 runs all in one, e.g. to debug.
WORKERS ?= 2
PYTEST := $(VENV)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	-p no:benchmark

# Each test is in one tier: `test`, which every change must pass, or, marked long, `test-long`.
# TESTS="tests/offsets" or TESTS="-m 'not integration'" runs those, of whatever tier.
TESTS ?=
test: setup-tests
	@$(PYTEST) $(or $(TESTS),-m "not long and not lake and not soak")

test-long: setup-tests
	@$(PYTEST) -m "long and not soak"

test-soak: setup-lake
	@$(PYTEST) -m soak

# LAKES="rest-s3 hive-hdfs" names lakes, MASTERS="local cluster" where Spark runs, SUITES="contract
# iceberg" the tests, LAKE_OPTIONS="-x -k reset" what pytest gets.
LAKES ?=
MASTERS ?=
SUITES ?=
LAKE_OPTIONS ?=
test-lake: setup-lake
	@$(VENV)/python -m tests.lake --lakes "$(LAKES)" --masters "$(MASTERS)" --suites "$(SUITES)" \
		-- $(LAKE_OPTIONS)

# Of all tiers: what people see and do who run binlogd.
OPERATE := tests/daemon/admin/page tests/operate tests/deploy/test_prometheus.py tests/install tests/upgrade
test-operate: setup-tests
	@$(PYTEST) $(OPERATE)

docs: setup-tests
	@NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build

wheel: setup
	@$(VENV)/python setup/wheels.py var/dist

# COMPARED=var/compare.json draws what `make compare` has found, into var/plots.
COMPARED ?=
plots: setup-tests
	@$(VENV)/python -m bench.plots $(if $(COMPARED),var/plots "$(COMPARED)")

deb:
	@setup/setup.sh "$(PYTHON)" tests "s3 postgresql mariadb"
	@packaging/deb/build.sh

pictures: setup-tests
	@mkdir -p docs/pictures
	@PICTURES=docs/pictures $(VENV)/python -m pytest -q -p no:benchmark \
		tests/daemon/admin/page/test_in_chromium.py \
		tests/daemon/operations/verify/test_shown_rows.py

# The part of `test` that imports no Spark, for while one works.
QUICK := tests/offsets tests/changes tests/actors
quick: setup-tests
	@$(PYTEST) -m "not integration and not long and not soak" $(QUICK)

lint: setup-tests
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports

# BENCH_MESSAGES=... sets the topic's size, BENCH="bench/test_stages.py" which files; the figures go
# to var/bench.json and, numbered, below var/benchmarks.
BENCH ?= bench
SAVED := --benchmark-storage file://$(CURDIR)/var/benchmarks
bench: setup-tests
	@mkdir -p var
	$(VENV)/python -m pytest $(BENCH) --timeout 1200 --benchmark-json var/bench.json \
		--benchmark-autosave $(SAVED)

# AGAINST=0003 names a saved run; without it the last one is taken.
AGAINST ?=
bench-compare: setup-tests
	$(VENV)/python -m pytest $(BENCH) --timeout 1200 $(SAVED) \
		--benchmark-compare$(if $(AGAINST),=$(AGAINST))

# SCALE=1 are the sizes of docs/performance.md, 0.1 is for an hour on two cores. ONLY="wide many"
# and CONTESTANTS="binlogd expert" name what is run, PEERS=all has Flink fetched (1 GB), too.
# LAKE=s3: the tables are behind a REST catalog over S3, both of this machine. ONLY=databases: into
# PostgreSQL and MariaDB; ONLY=load: first loads from MariaDB; ONLY=topics: Avro with a registry, keys
# over partitions. These are run only where they are named.
SCALE ?= 0.1
LAKE ?=
compare: $(if $(LAKE)$(filter topics wide-avro,$(ONLY)),setup-lake,setup-tests)
	@mkdir -p var
	$(VENV)/python -m bench.compare --scale $(SCALE) --only "$(ONLY)" \
		--contestants "$(CONTESTANTS)" --peers "$(PEERS)" --lake "$(LAKE)"

# CHAOS="..." names some of the faults, CHAOS="--times 5" repeats them, CHAOS="--write equality"
# writes the targets the other way; SOAK="--write equality" too.
# LAKE=s3 or LAKE=hdfs: on servers, with those servers' faults too (`make setup-lake` brings them);
# CHAOS="--away 10" has those last for so many seconds instead of a minute.
# SINK=postgres, mysql or mariadb: into a database, with its faults too.
chaos: setup-tests
	@mkdir -p var
	$(VENV)/python -m tests.chaos $(if $(LAKE),--lake $(LAKE)) $(if $(SINK),--sink $(SINK)) $(CHAOS)

# DURATION=... in seconds; SOAK="--seed N" does what an earlier run's seed did.
DURATION ?= 1200
soak: setup-tests
	@mkdir -p var
	$(VENV)/python -m tests.chaos.soak --seconds $(DURATION) $(SOAK)

# Transfers between accounts of ten tables, the daemon killed amid: the sum is right in each cut.
# KILLS=50 CUTS=500 without more.
bank: setup-tests
	KILLS=$(or $(KILLS),50) CUTS=$(or $(CUTS),500) $(VENV)/python -m pytest \
		tests/integration/test_bank.py -m soak -n 0 -q

# An hour of a source over ten tables, the daemon killed amid: source, log and target have the same
# changes in each minute; then one message is missing, and named. ROWS=10000000 KILLS=50 without more.
reconcile: setup-tests
	ROWS=$(or $(ROWS),10000000) KILLS=$(or $(KILLS),50) $(VENV)/python -m pytest \
		tests/integration/test_reconcile.py -m soak -n 0 -q

# DURATION=... in seconds (ten minutes without). SEEDS=30- are those from 30 on, "3,7,10-19" these,
# "regression" the kept ones. SOURCES=mariadb,postgres READERS=debezium,maxwell,canal,collector,
# adopted PARTITIONS=1 WIRE=json,avro,proto,jsonschema SINKS=iceberg,postgres,mariadb,sqlite name
# what runs; OPERATOR=1 gives commands beside the statements, OWN=1 makes targets beforehand.
# LIVE="--collector --faults handover": binlogd's own collector reads, and is killed amid
# transactions. LIVE="--steps 40 --without rename_table" for more.
LIVE_SECONDS := $(if $(filter file,$(origin DURATION)),600,$(DURATION))
live: setup-tests
	@$(VENV)/python -m tests.live --seconds $(LIVE_SECONDS) $(if $(SEEDS),--seeds "$(SEEDS)") \
		$(if $(SOURCES),--sources "$(SOURCES)") $(if $(READERS),--readers "$(READERS)") \
		$(if $(WIRE),--wire "$(WIRE)") $(if $(PARTITIONS),--partitions $(PARTITIONS)) \
		$(if $(SINKS),--sinks "$(SINKS)") $(if $(OPERATOR),--operator) $(if $(OWN),--own) $(LIVE)

# CONFORMANCE_DIR=... names the folder of the samples; where it is missing the status is 2 of make,
# 3 of the command itself.
conformance: setup-tests
	@$(VENV)/python -m tests.conformance

mutation: setup-tests
	$(VENV)/python -m tests.mutation

clean:
	rm -rf .venv var/jars var/jars.ivy var/jars.new var/jars-extras var/lake var/java var/demo var/peers var/compare var/live
	rm -rf *.egg-info
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .benchmarks .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# For maintainers: write the lock files anew (needs uv; the jars need a network).
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet \
	--custom-compile-command "make lock"
lock:
	$(LOCK) --upgrade requirements.in -o requirements.txt
	$(LOCK) -c requirements.txt --no-emit-package pyspark --no-emit-package py4j requirements.in \
		-o requirements-sql.txt
	$(LOCK) --upgrade requirements-tracing.in -o requirements-tracing.txt
	$(LOCK) --upgrade requirements-query.in -o requirements-query.txt
	$(LOCK) --upgrade requirements-tests.in -o requirements-tests.txt
	$(LOCK) --upgrade requirements-build.in -o requirements-build.txt
	$(LOCK) --upgrade requirements-java.in -o requirements-java.txt
	$(LOCK) --upgrade --no-deps requirements-live.in -o requirements-live.txt

lock-jars: setup
	@$(VENV)/python -m actors.runtime.jars lock
	@$(VENV)/python -m demo.servers.jars lock
