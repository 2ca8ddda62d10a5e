"""The phases of all tests by tier, each with what it may take: the one table of `tests/run`.

  test       `make test`: every distinct way through Faro, at most 15 minutes on two cores
  all        `make test-all`: what `make test` leaves out and a night has time for
  candidate  `make test-release-candidate`: what takes hours, before a release

A budget is in seconds of the whole machine: a phase that has one of two processors for a minute
takes 30. The budgets of a tier add up to what it may take (`make check`); a phase over its budget
is shown and does not fail.
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple

Counts = list[int]


def cargo_counts(log: str) -> Counts:
    """Sums the closing lines of the test programs."""
    rows = re.findall(r"^test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", log, re.M)
    return [sum(int(row[i]) for row in rows) for i in range(3)]


def surefire_counts(log: str) -> Counts:
    """Sums the lines of the test classes; the modules' closing lines repeat them."""
    rows = re.findall(
        r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+), Time", log
    )
    total, failures, errors, skipped = [sum(int(row[i]) for row in rows) for i in range(4)]
    return [total - failures - errors - skipped, failures + errors, skipped]


def closing_counts(log: str) -> Counts:
    rows = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", log, re.M)
    return [int(n or 0) for n in rows[-1]] if rows else [0, 0, 0]


def seed_counts(log: str) -> Counts:
    """The closing line of the simulation."""
    rows = re.findall(r"^(\d+) seeds passed and (\d+) failed in", log, re.M)
    return [int(n) for n in (*rows[-1], 0)] if rows else [0, 0, 0]


def no_counts(_: str) -> Counts:
    """Of what only has to end well: one test."""
    return [1, 0, 0]


# Halves of a processor that a phase has from its beginning to its end; PARTS: each of its parts
# takes processors from the queue, and has a guard of its own.
PARTS, ONE, ALL = 0, 2, 4


class Phase(NamedTuple):
    name: str
    # Words, of which none has a space.
    command: str
    # Passed, failed and skipped tests, from all that it printed.
    count: Callable[[str], Counts]
    budget: int
    needs: int
    # Whether its output is shown as it comes; otherwise only where it failed.
    show: bool = False
    # Fetches or builds what others need: it comes first, and is no test.
    is_setup: bool = False
    # Minutes without a line that end it.
    silence: int = 5


def setup(name: str, command: str, needs: int = ALL) -> Phase:
    return Phase(name, command, no_counts, 0, needs, is_setup=True, silence=30)


def parts(name: str, command: str, count: Callable[[str], Counts], budget: int) -> Phase:
    """Of parts that each have a guard: all together may be silent while these take their time."""
    return Phase(name, command, count, budget, PARTS, show=count is closing_counts, silence=90)


def whole(name: str, command: str, budget: int, needs: int, silence: int = 20) -> Phase:
    """A suite that shows its tests, and has its processors all the time."""
    return Phase(name, command, closing_counts, budget, needs, show=True, silence=silence)


NATIVE = "tests/setup/cargo-tests"
SPARK = "tests/spark/run"
GUESTS = "tests/softroce/suite"
# The jar that users have; all other phases use the one of tests.
RELEASED = "--jar dist/faro-spark.jar"
SCRIPTS = "tests/setup/run-tests scripts tests/setup tests/tpcds"
PYTHON = "tests/setup/run-tests"
# A build of its own, with the primitives that native/sync takes from loom; what it depends on is
# optimized less, as its tests run for seconds.
LOOM = (
    "env RUSTFLAGS=--cfg=loom CARGO_PROFILE_QUICK_OPT_LEVEL=1 cargo test --locked --profile quick "
    "--target-dir target/loom -p faro-pool -p faro-region --test loom"
)
SIMULATE = "cargo run --release --locked -p faro-simulation --bin simulate --"
TEST = [
    setup("fetch", "tests/setup/spark_home.py 3.5.9 4.3.0", ONE),
    setup("build", "tests/setup/native_build.py"),
    parts("spark", f"{SPARK} --tier test", closing_counts, 330),
    parts("native", NATIVE, cargo_counts, 150),
    # In two guests of a kernel that has RDMA devices; without such a kernel one line says so.
    parts("guests", f"{GUESTS} --tier test", closing_counts, 90),
    # Spark over RDMA: one application.
    parts("rdma", f"{GUESTS} --tier test spark", closing_counts, 40),
    Phase("java", "mvn -B -fae test", surefire_counts, 75, ONE),
    # The checks of `make check` that are programs of this repository.
    Phase("scripts", SCRIPTS, closing_counts, 30, ONE),
    # Teams of processes without a JVM.
    Phase("python", f"{PYTHON} python tests/python/test_collective.py", closing_counts, 15, ONE),
    # Every interleaving of the arena's free lists and waiters and of the regions' versions.
    Phase("loom", LOOM, cargo_counts, 45, ONE, silence=20),
]
ALL_ELSE = [
    setup("fetch", "tests/setup/spark_home.py", ONE),
    setup("build", "tests/setup/native_build.py"),
    parts("spark", f"{SPARK} --tier all", closing_counts, 1400),
    # With the exact library that a release has.
    parts(
        "released",
        f"{SPARK} --versions 3.5.9 4.3.0 --scenarios smoke {RELEASED}",
        closing_counts,
        60,
    ),
    # The jar of the release before, with this tree's daemon.
    parts("older", "tests/spark/older", closing_counts, 60),
    parts("native", f"{NATIVE} --tier all", cargo_counts, 200),
    parts("guests", f"{GUESTS} --tier all", closing_counts, 250),
    # What `make jar` has built, and a release: its layout, bills of materials, licences, the chart.
    whole("artifacts", "tests/setup/run-tests artifacts tests/release", 30, ONE),
    # The crate `ibverbs` and Faro's own layer see the same device.
    parts("witness", "tests/rdma/run", closing_counts, 60),
    # 10,000 seeds. It says every 500 seeds that it gets on.
    Phase("simulation", f"{SIMULATE} --all", seed_counts, 900, ALL, show=True, silence=20),
    # Ten TPC-DS queries, stock Spark and Faro in turn.
    whole("tpcds", f"tests/spark/tpcds {RELEASED}", 180, ALL),
    # Executors in cgroups of a default container's size.
    whole("containers", f"tests/spark/containers {RELEASED}", 240, ALL),
    whole("yarn", "tests/yarn/run", 120, ONE),
    # Executors with the restrictions of a pod.
    whole("pods", "tests/spark/pods", 120, ONE),
    # PyTorch's processes under torchrun; without a PyTorch to fetch one line says so.
    Phase("torch", f"{PYTHON} torch tests/python/test_torch.py", closing_counts, 60, ONE),
    # The example of the collectives, in barrier stages of one Spark version.
    Phase("sgd", "docs/examples/sgd/run --quick", closing_counts, 60, ONE, silence=20),
    whole("ui", "tests/spark/ui", 60, ONE),
    # The compose cluster of docker/, on TCP.
    whole("cluster", "tests/cluster/run tcp", 300, ONE),
]
CANDIDATE = [
    setup("fetch", "tests/setup/spark_home.py", ONE),
    setup("build", "tests/setup/native_build.py"),
    parts("spark", f"{SPARK} --tier candidate", closing_counts, 900),
    parts("rdma", f"{GUESTS} --tier candidate", closing_counts, 900),
    whole("tpcds", f"tests/spark/tpcds --all {RELEASED}", 5400, ALL, silence=30),
    whole("containers", f"tests/spark/containers --all {RELEASED}", 1200, ALL, silence=30),
    whole("pods", "tests/spark/pods --all", 300, ALL, silence=30),
    whole("yarn", "tests/yarn/run --all", 1200, ALL, silence=30),
    whole("cluster", "tests/cluster/run", 900, ALL, silence=30),
    whole("kubernetes", "tests/kubernetes/run", 2900, ALL, silence=60),
    whole("java-versions", "tests/spark/java", 1200, ALL, silence=30),
    whole("release", "tests/release/run", 300, ALL, silence=30),
    Phase("reproducible", "tests/setup/check-reproducible", no_counts, 900, ALL, silence=60),
]
TIERS = {"test": TEST, "all": ALL_ELSE, "candidate": CANDIDATE}
# Minutes of each tier on two cores, once its set-up is done.
LIMITS = {"test": 15, "all": 75, "candidate": 300}
