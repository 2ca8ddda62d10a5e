# Faro's commands. Everything slow (Spark itself, test data, tools) is kept in
# $FARO_CACHE (default ~/.cache/faro) and made again when it is missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
# Where rustup puts cargo; a login shell may not have been started since.
export PATH := $(PATH):$(HOME)/.cargo/bin

JAR := dist/faro-spark.jar
# For tests: this machine's library only, with what injects faults and what serves comparison.
TEST_JAR := target/tests/faro-spark.jar
# With the native library of this machine only.
DEMO_JAR := target/demo/faro-spark.jar
SOURCES := Cargo.toml Cargo.lock pom.xml $(shell find native jvm shuffle-plugin \
	\( -name target -o -name tests -o -name test \) -prune -o -type f -print 2>/dev/null)

# Their names: where only a file is gone, nothing is newer than a jar that still has it.
NAMES := target/sources
ifneq ($(sort $(SOURCES)),$(file <$(NAMES)))
$(shell mkdir -p target)
$(file >$(NAMES),$(sort $(SOURCES)))
endif

# When this command began; tests/run counts from here what is fetched and built.
export FARO_BEGAN := $(shell date +%s)

.PHONY: help try setup setup-tests jar check check-reproducible test test-all test-release-candidate test-rdma release-files test-tpcds test-containers test-cluster demo bench release test-release simulate test-yarn test-kubernetes test-pods test-java clean

help:
	@echo 'make setup   what a build needs: as root installs it, otherwise prints the command'
	@echo 'make setup-tests   the same for the tests and benchmarks'
	@echo 'make jar     $(JAR), the one jar that Spark needs; beside it bills of materials and the command faro'
	@echo 'make release dist/release: a Maven repository, a wheel, the command faro, images, a chart, and how to publish them (docs/release.md)'
	@echo 'make try     one small job on two executors: which way its bytes took, and what to look at (a minute)'
	@echo 'make demo    stock Spark and Faro side by side: two queries, a repartition, a sort, a join (5 minutes)'
	@echo 'make test    every distinct way through Faro: native, RDMA in a guest, Java, Spark end to end (15 to 20 minutes)'
	@echo 'make test-all       what make test leaves out: all scenarios, Spark versions and seeds (an hour)'
	@echo 'make test-release-candidate   what takes hours: all TPC-DS, YARN, Kubernetes, Java versions (5 hours, as root)'
	@echo 'make test-rdma      all tests that need RDMA devices, in a guest; builds its kernel once (15 minutes)'
	@echo 'make test-release   uses what make release made: spark-submit --packages, pip, the command faro (5 minutes)'
	@echo 'make test-tpcds     all TPC-DS queries, Faro against stock Spark, on two versions (90 minutes)'
	@echo 'make test-containers  executors in cgroups of a default container size, with 4 and 16 tasks, as root'
	@echo 'make simulate  endpoints over a network, a clock and faults that a seed decides: 10,000 seeds (SEEDS=, FROM=, SEED=, PROFILE=)'
	@echo 'make test-pods  executors in namespaces with the restrictions of a pod, as root (3 minutes)'
	@echo 'make test-java   each Spark on the other versions of Java that it runs on, 8 to 25 (20 minutes)'
	@echo 'make test-cluster   the compose cluster of docker/, on TCP and in a guest with RDMA (as root)'
	@echo 'make test-yarn      Spark on YARN: two nodes on loopback with the shuffle service, two Spark versions'
	@echo 'make test-kubernetes  Spark on Kubernetes, a cluster on this machine (as root, 22 minutes; builds it once, 25 more)'
	@echo 'make check   formatting, lints, module graphs, licences of the dependencies'
	@echo 'make check-reproducible   builds the release twice, at different places, and compares the bytes'
	@echo 'make bench   measures against stock Spark, into docs/benchmarks.md; SUITE=NAME others, which tests/bench/run --help names'
	@echo 'make clean   removes what was built; $${FARO_CACHE:-~/.cache/faro} stays'

setup:
	@tests/setup/system build

setup-tests:
	@tests/setup/system test

jar: setup $(JAR)

# The order-only set-up comes first and makes nothing out of date.
$(JAR): $(SOURCES) $(NAMES) tests/setup/build-jar tests/setup/build-native tests/setup/commands.py tests/setup/licences.py tests/setup/sbom.py | setup
	@tests/setup/build-jar $@ --command

$(TEST_JAR): $(SOURCES) $(NAMES) tests/setup/build-jar tests/setup/build-native tests/setup/native_build.py tests/setup/jar-contents tests/setup/commands.py tests/setup/licences.py tests/setup/sbom.py | setup
	@tests/setup/build-jar $@ --tests

$(DEMO_JAR): $(SOURCES) $(NAMES) tests/setup/build-jar tests/setup/build-native tests/setup/commands.py tests/setup/licences.py tests/setup/sbom.py | setup
	@FARO_JAR_ARCHS="" tests/setup/build-jar $@ --beside Spark 'tests/demo/run --fetch spark' \
	  --beside 'TPC-DS-derived data' 'tests/demo/run --fetch data'

# A release counts on full runs of what it is made of, and on cases that are mended.
release: jar
	@tests/setup/last_runs.py
	tests/setup/quarantine.py
	tests/setup/system release
	tests/release/build

# The same files, before those runs.
release-files: jar
	@tests/setup/system release
	tests/release/build

check: setup
	@tests/setup/check

check-reproducible: setup
	@tests/setup/check-reproducible

test: setup-tests $(TEST_JAR)
	@tests/run

test-all: setup-tests $(TEST_JAR) jar
	@tests/setup/system witness
	tests/run --tier all

test-release-candidate: setup-tests $(TEST_JAR) jar release-files
	@tests/run --tier candidate

test-rdma: setup-tests $(TEST_JAR)
	@tests/softroce/suite --tier every

test-release: setup-tests release-files
	@tests/release/run

test-tpcds: setup-tests jar
	@tests/spark/tpcds --all

test-containers: setup-tests jar
	@tests/spark/containers --all

test-pods: setup-tests jar
	@tests/spark/pods --all

# JDKs of Debian's unstable suite, in the cache: tests/setup/java.
test-java: setup-tests jar
	@tests/spark/java

test-cluster: setup-tests jar
	@tests/cluster/run

# SEED=N runs one seed and prints each step. PROFILE=NAME: that kind of run only.
simulate: setup
	@cargo run --release --locked --quiet -p faro-simulation --bin simulate -- \
	  $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),10000) --from $(or $(FROM),0)) \
	  $(if $(PROFILE),--profile $(PROFILE)) $(if $(JOBS),--jobs $(JOBS))
test-yarn: setup-tests jar
	@tests/yarn/run --all

test-kubernetes: setup-tests jar
	@tests/kubernetes/run

try: $(DEMO_JAR)
	@tests/demo/try --jar $(DEMO_JAR)

demo: $(DEMO_JAR)
	@tests/demo/run --jar $(DEMO_JAR)

# Suites that measure without the jar.
NATIVE_SUITES := softroce memory% exchange load rows advise training
bench: setup-tests $(if $(filter-out $(NATIVE_SUITES),$(or $(SUITE),spark)),jar)
	@tests/bench/run $(SUITE)

clean:
	@rm -rf target dist jvm/target shuffle-plugin/target
