"""Faro against stock Spark at scale: TPC-DS at scale factor 10, large shuffles, slow links."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import applications
import data
import links
import queries
from applications import Group
from results import NAMES, ROOT, STOCK, TARGET, Store, Suite, Table, middle, say
from sides import COMET_SPARK

from suites.spark import ADAPTIVE, HOW, MAIN, across, replace_rounds

# The queries are of all kinds: year totals of three channels that are joined six times (q4),
# frequent items and best customers (q23a), 18 tables joined (q64), a roll-up with a window over all
# of it (q67), sales without returns by three outer joins (q78), semi-joins of one fact table with
# itself (q95, q16), an intersection of three channels (q14a), inventory by weeks (q72), sales with
# their returns (q93, q50), and a join of wide rows by customer (q24a). q50, q72, q16 and q95
# shuffle little: they show what Faro cannot change. All lots take about the same time.
LOTS = [
    ["q4", "q72", "q93", "q16"],
    ["q23a", "q24a", "q50", "q95"],
    ["q64", "q67", "q78", "q14a"],
    # They have settings of their own, or change those of their session.
    *(["A1", "B2", "S"], ["B1"], ["J"], ["TERA"], ["X2000"]),
]
LARGE = ["TERA", "X2000"]
# A new application first runs a query that is not measured and a repartition, so that Faro's
# endpoint has started and much of Spark and of Faro is compiled.
WARM_UP_QUERY, WARM_UP_RUN = "q3", "run B2 4"
ONE_HOST = "one host"
EVENTS = TARGET / "events"
LOTS = (
    "tables in Parquet that are in the page cache; two executors of one core and a heap of 1 GB on "
    "one host, `spark.local.dir` on a disk, otherwise Spark's defaults. "
    "`spark.shuffle.readHostLocalDisk=false` stands for two hosts. Each side takes a lot of a few "
    "queries in a new application that first answers a small query and does a repartition, and "
    "then each query once; in every other heat the sides have the opposite order. Answers were "
    "compared with stock Spark's."
)
TPCDS = f"TPC-DS at scale factor 10, {LOTS}"
ABOUT = f"{TPCDS} TERA sorts 10 GB and spills, X2000 has 2,000 x 2,000 blocks."


def is_query(name):
    return name.startswith("q")


def options(names, sides, linked, scale="10"):
    def add(parser):
        parser.add_argument("--scale", default=scale, help=f"factor of the tables ({scale})")
        parser.add_argument("--workloads", nargs="+", default=names, help=f"({' '.join(names)})")
        parser.add_argument("--sides", nargs="+", default=sides, help=f"({' '.join(sides)})")
        parser.add_argument(
            "--links", nargs="+", default=["1", "10", "25", ONE_HOST] if linked else [""],
            help="Gbit/s of links between network namespaces, as root, or `one host`",
        )  # fmt: skip
        parser.add_argument("--resume", action="store_true", help="with --add: what is missing")

    return add


def measure(chosen):
    """A lot of a side at a time: all of them do not fit into the memory of a small machine."""
    names = ["q93", "q95"] if chosen.quick else chosen.workloads
    # Workloads make their own rows; tables only warm the JVM up then.
    scale = "0.1" if chosen.quick else chosen.scale if any(map(is_query, names)) else "1"
    texts, tables = queries.ensure(), data.ensure(scale)
    applications.warm(tables)
    lots = [[name for name in lot if name in names] for lot in LOTS]
    lots.append([name for name in names if not any(name in lot for lot in LOTS)])
    for link in chosen.links:
        try:
            with links.linked(0 if link in ("", ONE_HOST) else float(link)) as (made, speed):
                for heat in range(1, chosen.rounds + 1):
                    for lot in filter(None, lots):
                        yield from one_lot(chosen, lot, heat, link, made, speed, texts, tables)
        except links.Unavailable as why:
            say(f"SKIPPED {link} Gbit/s: {why}")


def one_lot(chosen, lot, heat, link, made, speed, texts, tables):
    called = link if link in ("", ONE_HOST) else f"{link} Gbit/s"
    more = {"link": called or "no limit", "heat": heat}
    if speed:
        more["one connection, Gbit/s"] = speed
    answers = TARGET / "answers" / f"{called or 'plain'}-{heat}-{lot[0]}"
    shutil.rmtree(answers, ignore_errors=True)
    divisor = 100 if chosen.quick else 1
    group = None
    for side in applications.chosen(chosen, chosen.sides[:: 1 if heat % 2 else -1]):
        key = {"heat": heat, "link": more["link"], "side": NAMES[side]}
        done = [r["workload"] for r in chosen.stored if key.items() <= r.items() and "job s" in r]
        names = [name for name in lot if not (chosen.resume and name in done)]
        if not names:
            continue
        events = EVENTS / f"{called or 'plain'}-{heat}-{lot[0]}-{side}"
        shutil.rmtree(events, ignore_errors=True)
        events.mkdir(parents=True)
        conf = {
            **ADAPTIVE,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.shuffle.readHostLocalDisk": str(link == ONE_HOST).lower(),
        }
        if lot == ["B1"]:
            conf["spark.shuffle.compress"] = "false"
        prepare = [f"tables {tables}", f"query {texts / WARM_UP_QUERY}.sql", WARM_UP_RUN, "clean"]
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=TARGET) as scratch:
            for short in (False, True):
                # Short jobs run after warm-ups, three times.
                some = [n for n in names if short == (not is_query(n) and n not in LARGE)]
                commands = {
                    n: f"query {texts / n}.sql" if is_query(n) else f"run {n} {divisor}"
                    for n in some
                }
                keeps = answers if some and is_query(some[0]) else None
                group = Group(commands, conf, prepare, False, keeps, Path(scratch), made)
                once = replace_rounds(chosen, 3 if short else 1)
                if some:
                    with applications.started(once, group, [side]) as sides:
                        yield from applications.measured(
                            sides, group, 2 * short, once.rounds, **more
                        )
    if answers.is_dir():
        yield from applications.compared(Group({}, answers=answers))


def advise(_chosen):
    """What `faro advise` expects from stock Spark's event logs, beside what was saved."""
    words = ["cargo", "build", "--release", "--locked", "-p", "faro-cli"]
    subprocess.run(words, cwd=ROOT, check=True)
    stored = [r for r in Store("scale", False).records() if r["link"] == "no limit"]
    found = {}
    for log in sorted(EVENTS.glob("plain-*-stock")):
        program = [ROOT / "target" / "release" / "faro", "advise", "--json", log]
        said = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False).stdout
        for one in json.loads(said)["applications"]:
            for job in one["groups"]:
                found.setdefault(job["name"], []).append((job["gain"], one["measured"]))
    whole = []
    for name, gains in found.items():
        times = {
            side: middle([r for r in stored if (r["workload"], r["side"]) == (name, side)], "job s")
            for side in (STOCK, "Faro", "Faro tcp")
        }
        stock, faro = times[STOCK], times["Faro"] or times["Faro tcp"]
        if not stock or not faro:
            continue
        low, expected, high = (
            middle([gain for gain, _ in gains], key) for key in ("low", "expected", "high")
        )
        whole.append([stock, faro, low * stock, expected * stock, high * stock])
        yield expectation(name, whole[-1], gains[0][1])
    if whole:
        yield expectation("**all**", [sum(column) for column in zip(*whole)], "")


def expectation(name, seconds, constants):
    stock, faro, low, expected, high = seconds
    saved = stock - faro
    place = "inside" if low <= saved <= high else "below" if saved < low else "above"
    return {
        "job": name,
        "stock s": stock,
        "Faro s": faro,
        "saved": f"{saved / stock:.0%}".replace("%", " %"),
        "expected": f"{expected / stock:.0%}".replace("%", " %"),
        "error": f"{100 * (expected - saved) / stock:+.0f}",
        "range": place,
        "constants": constants,
    }


QUERIES = [name for lot in LOTS[:3] for name in lot]
# Of all queries they sort for the largest part of their time.
SORTING = ["q93", "q50", "q78", "q67"]
FIGURES = ["job s", "executors' CPU s", "fetch wait s"]
LINKED = Table(
    "By kind of link",
    ["link", "workload", "side"],
    FIGURES,
    ["MB written", "MB over the links", "one connection, Gbit/s"],
    {"job / stock": "job s", "CPU / stock": "executors' CPU s"},
)


def tables(records):
    queries_of_all = across("Scale factor 10", records)
    figures = {"figures": FIGURES, "medians": ["MB written", "MB spilled", "remote MB"]}
    return [queries_of_all, replace(MAIN, title="Large shuffles", only={"query": None}, **figures)]


SUITES = {
    "scale": Suite(
        "Scale factor 10",
        ABOUT,
        tables,
        measure,
        options([*QUERIES, *LARGE], ["stock", "faro-tcp", "faro-auto"], False),
        needs_jar=True,
        rounds=2,
    ),
    "sort": Suite(
        "Sorts of merge joins and windows",
        f"TPC-DS at scale factor 3, {LOTS} The second side has `spark.faro.sort=false`.",
        lambda records: [across("Scale factor 3", records)],
        measure,
        options(SORTING, ["stock", "faro-spark-sort", "faro-auto"], False, scale="3"),
        needs_jar=True,
        rounds=2,
    ),
    "comet": Suite(
        "Behind Comet",
        f"TPC-DS at scale factor 3, {LOTS} The Spark is what the newest Comet is for. *Faro behind "
        "Comet* has `io.faro.spark.FaroPlugin` in `spark.plugins`, and Comet's operators and "
        "shuffle format; both Comets have 6 GB outside the heap, which the others have not.",
        lambda records: [across("Scale factor 3", records)],
        measure,
        options(QUERIES, ["stock", "faro-auto", "comet", "faro-comet"], False, scale="3"),
        needs_jar=True,
        rounds=1,
        version=COMET_SPARK,
    ),
    "links": Suite(
        "By kind of link",
        f"{ABOUT} Each executor is in a network namespace of its own, on links that the kernel "
        "limits in both directions with a queue of 20 ms; both share the two cores, which also do "
        "the work of the network. *One host* has Spark's default of reading each other's files. "
        f"B2 is the repartition of 24 million narrow rows. {HOW}",
        [LINKED],
        measure,
        options(["q4", "q64", "q78", "B2"], ["stock", "faro-tcp"], True),
        needs_jar=True,
        rounds=1,
    ),
    "advise": Suite(
        "`faro advise` against what was measured",
        "The event logs of stock Spark's runs of the suite `scale` were given to `faro advise`. "
        "*Expected* and *saved* are parts of the job's time; the error is expected less saved, in "
        "points.",
        [
            Table(
                "By job",
                ["job"],
                ["stock s", "Faro s"],
                ["saved", "expected", "error", "range"],
            )
        ],
        advise,
        notes=lambda records: [f"- constants: {records[0]['constants']}"],
    ),
}
