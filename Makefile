# The few commands a contributor needs. `make check test` before every push.
# What they need from the machine, .ci/install-packages says and, for root, installs.

CARGO ?= cargo
.PHONY: help build check test servers test-rust test-python oracle values routes kills torture mess late demo bench fuzz

help:
	@echo "make check   format, lints, house rules, licences"
	@echo "make test    servers, then all tests (Rust, then Python)"
	@echo "make oracle  ORACLE_FILES (100000) random files, howdah against COPY; from ORACLE_SEED (0) on"
	@echo "make values  HOWDAH_BINARY_VALUES (1000000) random values of each type, written by howdah, read by the server"
	@echo "make routes  HOWDAH_ROUTED_ROWS (1000000) random keys of each type, routed to leaf partitions by howdah and by the server"
	@echo "make kills   at least HOWDAH_KILLS (300) loads ended by faults and run again; HOWDAH_KILLS_SEED repeats a run"
	@echo "make torture the night shift: HOWDAH_TORTURE_SECONDS (1200), at least HOWDAH_TORTURE_FAULTS (300); HOWDAH_TORTURE_SEED repeats"
	@echo "make mess    HOWDAH_MESS_FILES (20000) clean tables made messy, from HOWDAH_MESS_SEED (0) on; 98 % must come back"
	@echo "make late    at least HOWDAH_LATE_TABLES (1000) tables made from a sample, with late surprises"
	@echo "make demo    build, load real data into an embedded server, run a query"
	@echo "make bench   the measurements of bench/"
	@echo "make fuzz    every fuzz target for FUZZ_SECONDS (60) seconds"

build:
	$(CARGO) build --release --bin howdah

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) xtask tidy
	$(CARGO) xtask generate --check
	$(CARGO) xtask supply
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; \
		else echo "ADVISORIES NOT CHECKED: cargo-deny is not here (cargo install --locked cargo-deny)"; fi
	@if command -v shellcheck >/dev/null; then shellcheck .ci/*; else echo "shellcheck: not here, skipped"; fi

test: test-rust test-python
	@echo "all tests passed"

servers:
	$(CARGO) xtask servers

# Every binary runs even when one fails, so that one run tells everything. `--tests` is all that has tests: the documentation
# has none, and the examples, which measure, are built by `check`. Most tests wait for a server or a clock more than they
# compute: three at a time keep two cores busy.
test-rust: servers
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-3} $(CARGO) test --workspace --tests --no-fail-fast

test-python:
	.ci/test-python
	python3 -m unittest discover --quiet -s bench -t bench

# Nightly. Measured on two busy cores: 600 to 1,400 files a minute, so one to three hours. A failure names its seed.
oracle: servers
	HOWDAH_ORACLE_FILES=$(or $(ORACLE_FILES),100000) HOWDAH_ORACLE_SEED=$(or $(ORACLE_SEED),0) \
		$(CARGO) test -p howdah-engine --test it oracle -- --nocapture --test-threads=3

# Nightly. Values as csv, text and binary, on every server: about two hours on two busy cores (make test's ten thousand
# of each: under a minute on idle ones). HOWDAH_BINARY_SEED (0) tries others. A failure shows the value. Types of extensions
# that no server has fail it (make test goes on without them): HOWDAH_EVERY_TYPE=0 lets them go.
values: servers
	HOWDAH_EVERY_TYPE=$${HOWDAH_EVERY_TYPE:-1} HOWDAH_BINARY_VALUES=$${HOWDAH_BINARY_VALUES:-1000000} $(CARGO) test -p howdah-transcode --test it binary

# Nightly. Random keys, in which leaf partition the client puts them and in which the server, on every server.
routes: servers
	HOWDAH_ROUTED_ROWS=$${HOWDAH_ROUTED_ROWS:-1000000} $(CARGO) test -p howdah-engine --test it the_leaf_that_the_server

# At least so many loads ended by faults, each run again until done.
kills: servers
	HOWDAH_KILLS=$${HOWDAH_KILLS:-300} $(CARGO) test -p howdah-cli --test it kills

# Random loads struck by faults, run again to the end, compared with a model. make test has 40 faults of it.
torture: servers
	HOWDAH_TORTURE_SECONDS=$${HOWDAH_TORTURE_SECONDS:-1200} HOWDAH_TORTURE_FAULTS=$${HOWDAH_TORTURE_FAULTS:-300} \
		$(CARGO) test -p howdah-cli --test it night_shift

# Nightly: under a minute for 20,000 files. A file that does not come back is named by its seed.
mess:
	HOWDAH_MESS_FILES=$${HOWDAH_MESS_FILES:-20000} $(CARGO) test -p howdah-transcode --test it mess -- --nocapture

# At least so many random tables made from a sample, each with late surprises, against the same table seen whole.
late: servers
	HOWDAH_LATE_TABLES=$${HOWDAH_LATE_TABLES:-1000} $(CARGO) test -p howdah-cli --test it late

demo: build
	demo/run

bench: build
	bench/run.py

fuzz:
	.ci/fuzz
