"""The suites of Spark jobs whose sides take turns as running applications."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import applications
import data
import queries
import spark_home
from applications import Group
from results import TARGET, Suite, Table, say
from sides import COMET_SPARK

TASKS = ["M600", "M600x200", "M3000", "R3000"]
TABLE_JOBS = ["NARROW", "SORT", "JOIN"]
# Sales with their returns, which shuffle 0.4 GB at this scale, and semi-joins, which shuffle less.
PEER_QUERIES = ["q93", "q16"]
SECURE = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known to all of the bench",
    "spark.network.crypto.enabled": "true",
}
ADAPTIVE = {"spark.sql.adaptive.enabled": "true"}
# The version of the tables' shape; another version makes other tables.
TABLES = "1"
HOW = (
    "Two executors of one core (`local-cluster[2,1,2048]`, heaps of 1 GB, "
    "`spark.shuffle.readHostLocalDisk=false`). Each side is a running application, and the "
    "applications take turns after warm-ups; a figure is the median of the rounds, with the lowest "
    "and highest in parentheses. Faro runs with `spark.faro.fallback=never`, and its counts of "
    "blocks and bytes were compared with Spark's."
)
WORKLOADS = (
    "AQE off, `spark.local.dir` on tmpfs, sink `noop`. A1: `repartition(400)` of 400 partitions, "
    "80,000 remote blocks of about 200 bytes; B1: 24 x 8, uncompressed kilobyte strings, 404 MB "
    "remote; B2: 24 x 8, narrow rows, lz4, 265 MB; J: shuffled hash join of 6 with 3 million rows, "
    "then a count by group, 64 partitions; S: range sort of 4 million rows, 40 x 40."
)
RATIOS = {"job / stock": "job s", "CPU / stock": "executors' CPU s"}
MAIN = Table(
    "By workload",
    ["workload", "side"],
    ["job s", "reduce stage s", "executors' CPU s"],
    ["remote blocks", "remote MB"],
    {**RATIOS, "reduce / stock": "reduce stage s"},
)


def options(sides, names, warm_ups=3):
    """The options of a suite with these sides and workloads."""

    def add(parser):
        parser.add_argument("--sides", nargs="+", default=sides, help=f"({' '.join(sides)})")
        parser.add_argument("--workloads", nargs="+", default=names, help=f"({' '.join(names)})")
        parser.add_argument("--warm-ups", type=int, default=warm_ups, help=f"({warm_ups})")

    return add


def groups(names, divisor, conf=None):
    """The groups of Spark workloads: they differ in compression, which executors start with."""
    of = {name: f"run {name} {divisor}" for name in names}
    plain = {name: of.pop(name) for name in ("B1",) if name in of}
    found = [Group(of, conf or {})]
    found.append(Group(plain, {**(conf or {}), "spark.shuffle.compress": "false"}))
    return [group for group in found if group.commands]


def workloads(conf=None):
    def measure(chosen):
        names, warm_ups = chosen.workloads, chosen.warm_ups
        if chosen.quick:
            names, warm_ups = names[:2], 1
        sides = applications.chosen(chosen, chosen.sides)
        for group in groups(names, 16 if chosen.quick else 1, conf):
            yield from applications.measure(chosen, group, sides, warm_ups)

    return measure


def tpcds(chosen):
    scale, names = ("0.1", ["q93", "q95"]) if chosen.quick else ("1", chosen.workloads)
    texts = queries.ensure()
    group = Group(
        {name: f"query {texts / name}.sql" for name in names},
        ADAPTIVE,
        [f"tables {data.ensure(scale)}"],
        reads_all=False,
    )
    sides = applications.chosen(chosen, chosen.sides)
    yield from applications.measure(chosen, group, sides, 1 if chosen.quick else chosen.warm_ups)


def first_jobs(chosen):
    """`workloads`, then applications that are started for one job each."""
    yield from workloads()(chosen)
    name = chosen.workloads[0]
    group = Group({name: f"run {name} {16 if chosen.quick else 1}"})
    for number in range(1 if chosen.quick else 5):
        for side in chosen.sides[:: 1 if number % 2 else -1]:
            once = replace_rounds(chosen, 1)
            yield from applications.measure(once, group, [side], 0, job="first")


def replace_rounds(chosen, rounds):
    return type(chosen)(**{**vars(chosen), "rounds": rounds})


def peers(chosen):
    """All sides read the same tables and must give the same answers."""
    quick = chosen.quick
    tables = peer_tables(chosen, 100 if quick else 1)
    texts = queries.ensure()
    names = ["NARROW", "SORT", "q93"] if quick else chosen.workloads
    commands = {n: f"read {n}" if n in TABLE_JOBS else f"query {texts / n}.sql" for n in names}
    folders = [tables]
    if set(names) - set(TABLE_JOBS):
        folders.append(data.ensure("0.1" if quick else "10"))
    for folder in folders:
        applications.warm(folder)
    prepare = [" ".join(["tables", *map(str, folders)])]
    sides = applications.chosen(chosen, chosen.sides)
    with tempfile.TemporaryDirectory(prefix="peers-", dir=TARGET) as scratch:
        place = Path(scratch)
        # Shuffle files are on the disk of the tree, not on tmpfs.
        group = Group(commands, ADAPTIVE, prepare, False, place / "answers", place)
        yield from applications.measure(chosen, group, sides, max(1, chosen.warm_ups))


def peer_tables(chosen, divisor):
    """The tables, which stock Spark makes once in the cache."""
    place = spark_home.cache_root() / "peers" / f"tables-{TABLES}-{divisor}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        say(f"making the tables in {place} ...")
        scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
        try:
            group = Group({"tables": ""}, prepare=[f"write {scratch / 'made'} {divisor}"])
            with applications.started(chosen, group, ["stock"]) as sides:
                failed = sides.failures()
            if failed:
                raise RuntimeError(failed[0]["failed"])
            (scratch / "made").rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return place


def across(title, records):
    """The table of queries by side, of those that all sides have answered."""
    sides = {record["side"] for record in records}
    for record in records:
        name = record["workload"]
        whole = name[0] == "q" and {r["side"] for r in records if r["workload"] == name} >= sides
        record["query"] = name if whole else None
    return Table(
        title,
        ["query"],
        ["job s", "executors' CPU s", "MB written"],
        ["remote MB"],
        only={"query": ...},
        across="side",
    )


def picture(name, title):
    return lambda _: [f"![{title}](benchmarks/{name}.svg)"]


ALL = ["A1", "B2", "S", "J", "B1"]
SPARK_SIDES = ["stock", "faro-spark", "faro-auto", "faro-lz4"]
FIRST = replace(MAIN, title="First jobs of applications", only={"job": "first"})
SUITES = {
    "spark": Suite(
        "Spark workloads",
        f"{HOW} {WORKLOADS}",
        [MAIN],
        workloads(),
        options(SPARK_SIDES, ALL),
        picture("spark", "Spark workloads"),
        needs_jar=True,
    ),
    "tpcds": Suite(
        "TPC-DS queries",
        f"Ten heavy queries, scale factor 1, with Spark's defaults otherwise. {HOW}",
        lambda records: [across("", records), replace(MAIN, title="All figures")],
        tpcds,
        options(SPARK_SIDES, queries.HEAVY),
        needs_jar=True,
    ),
    "secure": Suite(
        "Spark workloads with authentication and encryption",
        "`spark.authenticate` and `spark.network.crypto.enabled` on all sides. Between executors "
        f"of one host Faro uses shared memory, whose bytes are not encrypted. {HOW} {WORKLOADS}",
        [MAIN],
        workloads(SECURE),
        options(["stock", "faro-tcp", "faro-auto"], ["A1", "B2", "B1"]),
        needs_jar=True,
    ),
    "tasks": Suite(
        "Many tiny tasks",
        "What a task's writer and reader cost before and after its rows: 600 and 3,000 map tasks "
        "of 100 rows (M600, M600x200 with 200 reduce tasks, M3000), 3,000 reduce tasks (R3000). "
        f"An application's first job pays for the endpoint and for what is not compiled. {HOW}",
        [replace(MAIN, only={"job": None}), FIRST],
        first_jobs,
        options(["stock", "faro-auto"], TASKS, 4),
        needs_jar=True,
        rounds=7,
    ),
    "peers": Suite(
        "Beside other shuffles",
        "All sides read the same Parquet tables with adaptive execution, and their answers were "
        "compared with stock Spark's; TPC-DS at scale factor 10. NARROW: 24 million rows of 20 "
        "bytes, `repartition(200, h)`; SORT: 4 million rows by range into 40 partitions; JOIN: 6 "
        "million rows with 3 million, then a count and a sum by group. *Everybody's CPU* is that "
        "of executors, driver and the side's servers. CELEBORN_HOME and UNIFFLE_HOME name "
        f"installations; without them these sides are left out. Spark {COMET_SPARK} has a Comet. "
        f"{HOW}",
        [
            Table(
                "By workload",
                ["workload", "side"],
                ["job s", "executors' CPU s", "everybody's CPU s"],
                ["loopback MB"],
                {"job / stock": "job s", "CPU / stock": "everybody's CPU s"},
            )
        ],
        peers,
        options(
            ["stock", "faro-auto", "comet", "faro-comet", "celeborn", "celeborn-tuned", "uniffle"],
            [*TABLE_JOBS, *PEER_QUERIES],
        ),
        picture("peers", "Beside other shuffles"),
        needs_jar=True,
        version=COMET_SPARK,
    ),
}
