"""Faro's memory is what docs/user/memory.md says: executors in cgroups of a container.

Stock Spark and Faro get the same jobs, one after the other, each side with two executors. What the
kernel counts as resident in an executor's group, page cache excluded, is looked at all the time.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import data
import pytest
import queries
import spark_home
from application import Application, Failed
from harness import cgroup
from harness.conversation import Broken

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark-containers"
VERSIONS = ["4.3.0"]
JOB_LIMIT = 900  # seconds
MIB = 1 << 20
EXECUTORS = 2
# The JVM decides when it collects, so the heap of two runs of one job differs: with 1 GB, stock
# Spark alone took 881 to 1,119 MiB in all for the shuffle; rows of 100 MB differ by three of them.
# Outside of the heap the JVM's own memory differs (code, metaspace, its collector's tables).
NOISE_IN_ALL = {"rows": 320 * MIB}
NOISE_OF_HEAP = 192 * MIB
NOISE = 32 * MIB

# Rows of 100 MB, in small blocks because they compress well. One task of an executor makes them and
# one reads them: a heap of 1 GB has no room for more in stock Spark.
ROWS = 6
PARTITIONS_OF_ROWS = 2
JOBS = {
    "coalesce": "SELECT count(*), sum(id), sum(length(s)) FROM (SELECT /*+ COALESCE(1) */ * FROM "
    "(SELECT /*+ REPARTITION({partitions}, id) */ id, string(id) s FROM range(0, 2000000, 1, 8)))",
    "rows": "SELECT count(*), sum(length(s)), max(substr(s, -3)) FROM (SELECT "
    f"/*+ REPARTITION({PARTITIONS_OF_ROWS}, id) */ id, repeat(string(id % 10), 104857600) s "
    f"FROM range(0, {ROWS}, 1, 2))",
    # Both sides have their partitions, so the join shuffles nothing once more. Spark does not
    # coalesce partitions whose number a hint gives.
    "shuffle": "SELECT count(*), sum(a.v), sum(b.v) FROM "
    "(SELECT /*+ REPARTITION({maps}, k) */ * FROM (SELECT id k, id % 7 v FROM "
    "range(0, 4000000, 1, {maps}))) a JOIN "
    "(SELECT /*+ REPARTITION({maps}, k) */ * FROM (SELECT id * 2 k, id % 5 v FROM "
    "range(0, 4000000, 1, {maps}))) b ON a.k = b.k",
    # Far more rows than tasks have memory for, by a string and a long.
    "sort": "SELECT count(*), sum(n * (k % 7)), max(s) FROM (SELECT k, s, row_number() OVER "
    "(PARTITION BY g ORDER BY s, k) n FROM (SELECT xxhash64(id) k, id % 64 g, "
    "sha2(string(id), 256) s FROM range(0, 3000000, 1, 16)))",
}
FIGURES = ["pool.highWaterBytes", "memory.tasksHighWaterBytes", "memory.totalHighWaterBytes"]
# Of docs/user/memory.md: what each task may take, whatever the length of its rows.
TASK_BYTES = 2 * MIB
SHORT = ("coalesce", "rows", "shuffle")


class Shape(NamedTuple):
    """Executors, and what is asked of them."""

    name: str
    # At a time.
    tasks: int
    # `spark.executor.memory` in MiB.
    heap: int
    jobs: tuple[str, ...]
    # `spark.executor.memoryOverhead` in MiB; 0: Spark's default.
    overhead: int = 0
    # Faro must have sorted.
    sorts: bool = False

    def container_mib(self):
        return self.heap + (self.overhead or max(self.heap // 10, 384))


# Spark's default executor.
SHORT_FORM = [Shape("4", 4, 1024, SHORT)]
# In q72 the kernel killed stock Spark's executors with the default overhead: with 4 tasks and a
# heap of 2 GB, with 16 tasks and heaps of 2 GB and of 4 GB.
LONG_FORM = [
    Shape("4", 4, 2048, (*SHORT, "q64")),
    Shape("4-large", 4, 2048, ("q72",), overhead=1024),
    Shape("16", 16, 2048, (*SHORT, "q64")),
    Shape("16-large", 16, 4096, ("q72",), overhead=1024),
    # Containers of 1 GB.
    Shape("4-sort", 4, 640, ("sort", "shuffle"), sorts=True),
    Shape("16-sort", 16, 640, ("sort", "shuffle"), sorts=True),
]
# Of the join: maps, and partitions (at least 200).
SIZES = {False: 100, True: 2000}
# Of the job with one task that reads all partitions. A reader that kept what it has read took
# 159 KiB for each: 312 MiB in the short form, far more than the noise.
READ_BY_ONE = {False: 2000, True: 4000}


def pytest_generate_tests(metafunc):
    options = metafunc.config.option
    cases = [
        (version, shape, name)
        for version in options.versions or VERSIONS
        for shape in (LONG_FORM if options.all else SHORT_FORM)
        for name in [*shape.jobs, "formula"]
    ]
    metafunc.parametrize(
        ("version", "shape", "name"), cases, ids=[f"{v}-{s.name}-{n}" for v, s, n in cases]
    )


class Side:
    """One application, its executors in groups of their own."""

    def __init__(self, files, name, version, shape, options, place, logs):
        self.name = name
        limit = shape.container_mib() * MIB
        self.groups = cgroup.Groups(files, f"{name}-{shape.name}", place / name, limit)
        spark = spark_home.versions_named([version])[0]
        tables = data.ensure(options.scale or "1") if options.all else place / "no-tables"
        if not options.all:
            tables.mkdir(exist_ok=True)
        conf = {
            "spark.executorEnv.JAVA_HOME": str(self.groups.java_home),
            # Each join of the queries shuffles; all else is Spark's default.
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.faro.fallback": "never",
            **dict(pair.split("=", 1) for pair in options.conf),
        }
        if shape.overhead:
            conf["spark.executor.memoryOverhead"] = f"{shape.overhead}m"
        if name == "faro":
            conf.setdefault("spark.faro.fabric", "tcp")
        self.application = Application(
            *(name, spark, spark_home.ensure(spark), place, tables),
            options.jar.resolve() if name == "faro" else None,
            logs,
            conf,
            memory=shape.heap,
            cores=shape.tasks,
        )
        self.gone = ""

    def run(self, text, output):
        """What the executors did, and the most that one of them had resident so far."""
        return self.ask(self.application.run, text, output, JOB_LIMIT), self.groups.max_bytes()

    def ask(self, question, *given):
        """Its answer; after one that never came, an application is asked nothing more."""
        if self.gone:
            raise Broken(self.gone)
        try:
            return question(*given)
        except Broken as error:
            self.gone = str(error)
            raise

    def stop(self):
        """Idempotent."""
        self.gone = self.gone or "stopped"
        application, self.application = self.application, None
        try:
            if application:
                application.stop()
        finally:
            self.groups.remove()


class Sides:
    """Stock Spark's and Faro's applications of one version and shape."""

    def __init__(self, options, version, shape, files):
        self.options = options
        self.shape = shape
        self.place = Path(tempfile.mkdtemp(prefix="faro-containers-"))
        self.logs = LOGS / f"{version}-{shape.name}"
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)
        # Of Faro's executors together, since the first job.
        self.counted = Counter()
        self.sides = []
        try:
            for name in ("stock", "faro"):
                self.sides.append(Side(files, name, version, shape, options, self.place, self.logs))
            # Each job says so where one does not start.
            with contextlib.suppress(Broken):
                for side in self.sides:
                    side.ask(side.application.await_ready)
        except BaseException:
            self.stop()
            raise

    def ask(self, name):
        """By side: what it did, and the most that was resident in an executor."""
        text = self.place / f"{name}.sql"
        if name in JOBS:
            long = self.options.all
            text.write_text(JOBS[name].format(maps=SIZES[long], partitions=READ_BY_ONE[long]))
        else:
            text.write_text(queries.without_limit((queries.ensure() / f"{name}.sql").read_text()))
        answers = {}
        done = {}
        for side in self.sides:
            output = self.place / f"{side.name}.tsv"
            done[side.name] = side.run(text, output)
            answers[side.name] = sorted(output.read_text().splitlines())
        self.counted.update(done["faro"][0].counters)
        return done, answers

    def killed(self):
        return [f"{side.name}'s {group}" for side in self.sides for group in side.groups.killed()]

    def stop(self):
        for side in self.sides:
            side.stop()
        shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture(scope="session")
def sides_of(pytestconfig):
    """The applications of one parameter at a time, started when the first test asks for them."""
    files, why = cgroup.found()
    held = {}

    def of(version, shape):
        if not files:
            pytest.skip(why)
        if (version, shape) not in held:
            for old in held.values():
                old.stop()
            held.clear()
            held[version, shape] = Sides(pytestconfig.option, version, shape, files)
        return held[version, shape]

    yield of
    for last in held.values():
        last.stop()


def test_containers(sides_of, version, shape, name, record_property):
    """No executor is killed, and Faro's resident memory is within stock's plus the limit."""
    sides = sides_of(version, shape)
    try:
        problem, said = formula(sides) if name == "formula" else compare(sides, name)
    except (Failed, Broken) as error:
        problem, said = f"{error}; killed: {', '.join(sides.killed()) or 'none'}", ""
    record_property("detail", said)
    if problem:
        pytest.fail(f"{problem}; {said}", pytrace=False)


def compare(sides, name):
    done, answers = sides.ask(name)
    stock, faro = (done[side][1] for side in ("stock", "faro"))
    limit = limit_of(sides)
    said = (
        f"resident, and outside of the heap: stock {stock.all / MIB:.0f} and "
        f"{stock.outside_heap / MIB:.0f} MiB, Faro {faro.all / MIB:.0f} and "
        f"{faro.outside_heap / MIB:.0f} MiB, limit {limit / MIB:.0f} MiB; "
        f"stock {done['stock'][0].seconds:.1f} s, Faro {done['faro'][0].seconds:.1f} s; "
        f"{done['faro'][0].counted('remoteBytes') / 1e6:.0f} MB remote; "
        f"{done['faro'][0].counted('sorts'):.0f} partitions sorted, "
        f"{done['faro'][0].counted('sparkSorts.memory'):.0f} left to Spark"
    )
    if killed := sides.killed():
        return f"killed: {', '.join(killed)}", said
    if answers["stock"] != answers["faro"] and name in JOBS:
        return "the answers differ", said
    if not done["faro"][0].counted("remoteBytes"):
        return "nothing came through Faro", said
    is_off = "spark.faro.sort=false" in sides.options.conf
    if sides.shape.sorts and not is_off and not done["faro"][0].counted("sorts"):
        return "nothing was sorted by Faro", said
    if not (stock.outside_heap and faro.outside_heap):
        return "the heap was not looked at", said
    heaps = {heap for side in sides.sides for heap in side.groups.heaps()}
    if heaps != {sides.shape.heap}:
        return f"heaps of {heaps} MiB, not all of {sides.shape.heap}", said
    if faro.outside_heap > stock.outside_heap + limit + NOISE:
        more = (faro.outside_heap - stock.outside_heap) / MIB
        return f"{more:.0f} MiB more than stock outside of the heap", said
    if faro.all > stock.all + limit + NOISE_IN_ALL.get(name, NOISE_OF_HEAP):
        return f"{(faro.all - stock.all) / MIB:.0f} MiB more than stock", said
    return "", said


def limit_of(sides):
    """`spark.faro.memory.limit` as the executors chose it: nothing sets it here."""
    for log in (sides.sides[1].application.home / "work").glob("app-*/*/stderr"):
        said = log.read_text(errors="replace")
        if ready := re.search(r"Faro ready: .* memory\.limit=(\d+)", said):
            return int(ready[1])
    raise Broken("no executor's log says `Faro ready: ... memory.limit=`")


def formula(sides):
    """What Faro's executors counted over all jobs is within the formula of docs/user/memory.md."""
    if killed := sides.killed():
        return f"killed: {', '.join(killed)}", ""
    limit = limit_of(sides)
    most = {name: sides.counted[name] / EXECUTORS for name in FIGURES}
    said = ", ".join(f"{name} {value / MIB:.1f} MiB" for name, value in most.items())
    said += f", the mean of {EXECUTORS} executors"
    in_tasks = sides.shape.tasks * TASK_BYTES
    bounds = zip(FIGURES, [limit, in_tasks, 1.5 * limit + in_tasks])
    beyond = [name for name, bound in bounds if most[name] > bound]
    if not all(most.values()):
        return "a figure is 0", said
    return f"beyond the formula: {', '.join(beyond)}" if beyond else "", said
