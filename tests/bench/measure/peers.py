"""Compares other shuffles with Faro: all sides read the same Parquet tables, and must give the same
answers.

A heat is a set of sides that take turns; a lot is the work of one set of their applications.
Results are stored workload by workload, so that a run that was ended can be resumed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import answers
import data
import queries
import spark_home

from . import machine, places, workloads
from . import sides as known

# There are several heats, because one with all sides does not fit in this machine's memory. Stock
# Spark and Faro are in each.
HEATS = [
    ["stock", "faro-auto", "comet", "faro-comet"],
    ["stock", "faro-auto", "celeborn", "celeborn-tuned", "uniffle"],
]
TABLE_JOBS = ["NARROW", "SORT", "JOIN"]
# Sales with their returns, which shuffle 0.4 GB at this scale, and semi-joins, which shuffle less.
QUERIES = ["q93", "q16"]
WORKLOADS = [*TABLE_JOBS, *QUERIES]
QUICK = ["NARROW", "SORT", "q93"]
SCALE, QUICK_SCALE = "10", "0.1"
QUICK_DIVISOR = 100
# The version of the tables' shape; another version makes other tables.
TABLES = "1"
# Users run it so; the other benchmarks switch adaptive execution off.
CONF = {"spark.sql.adaptive.enabled": "true"}


@dataclass
class Lot:
    heat: int
    sides: list[str]
    names: list[str]


def lots(sides_of_heats: dict[int, list[str]], names: list[str], done) -> list[Lot]:
    """Returns the lots. The jobs of all heats come first; the queries, which take longer, come
    last."""
    found = []
    for kind in (TABLE_JOBS, QUERIES):
        for heat, sides in sides_of_heats.items():
            left = [name for name in kind if name in names and not done(heat, name)]
            if left and sides:
                found.append(Lot(heat, sides, left))
    return found


class Stored:
    """One JSON file for each heat, with the results of each workload and what they were measured
    with."""

    def __init__(self, target: Path, heat: int, quick: bool):
        self.path = target / f"{'quick-' if quick else ''}peers-heat-{heat}.json"

    def read(self) -> dict:
        return json.loads(self.path.read_text()) if self.path.is_file() else {}

    def add(self, facts: dict, name: str, result: dict, broken: dict) -> None:
        content = {"workloads": {}, **self.read()}
        content["workloads"][name] = {"sides": result, "broken": broken, **facts}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(content, indent=1))
        part.rename(self.path)

    def ended(self, names: list[str], seconds: float, others: float) -> None:
        """Stores beside the workloads their lot's time, and the share that other processes used."""
        content = self.read()
        for name in names:
            if name in content.get("workloads", {}):
                content["workloads"][name].update(seconds=seconds, others=others, lot=names)
        self.path.write_text(json.dumps(content, indent=1))


def tables(home: Path, faro_jar: Path, target: Path, quick: bool, say) -> Path:
    """Returns the tables, which stock Spark makes once in the cache."""
    divisor = QUICK_DIVISOR if quick else 1
    place = spark_home.cache_root() / "peers" / f"tables-{TABLES}-{divisor}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    say(f"making the tables in {place} ...")
    scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
    logs = target / "spark-logs" / "tables"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    try:
        stock = known.all_sides(faro_jar)["stock"]
        jar = workloads.compiled(home, target)
        writer = workloads.Application("stock", stock, {}, home, scratch / "app", jar, logs)
        try:
            writer.await_ready(f"write {scratch / 'made'} {divisor}")
        finally:
            writer.stop()
        (scratch / "made").rename(place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place


def group(made: Path, names: list[str], quick: bool) -> workloads.Group:
    texts = queries.ensure()
    commands = {n: f"read {n}" if n in TABLE_JOBS else f"query {texts / n}.sql" for n in names}
    folders = [made]
    if any(name in QUERIES for name in names):
        folders.append(data.ensure(QUICK_SCALE if quick else SCALE))
    for folder in folders:
        places.warm(folder)
    prepare = " ".join(["tables", *map(str, folders)])
    return workloads.Group(commands, CONF, prepare=prepare, reads_all=False)


class Answers:
    """Compares a side's answers with stock Spark's before a workload is measured, which also warms
    the side up. Stores the results after it."""

    def __init__(self, place: Path, commands: dict[str, str], stored: Stored, facts: dict, say):
        self.place, self.commands = place, commands
        self.stored, self.facts, self.say = stored, facts, say
        self.same: dict[str, bool | str] = {}

    def before(self, name: str, applications: list, broken: dict) -> None:
        files = {}
        for application in applications:
            file = self.place / f"{name}.{application.side}"
            command = f"{self.commands[name].replace('read ', 'digest ')} {file}"

            def one(app=application, asked=command):
                app.run(asked)
                app.clean()

            side = application.side
            if side not in broken and workloads.guard(broken, side, one):
                files[side] = file
        stock = files.pop("stock", None)
        self.same = {side: _difference(stock, files[side]) for side in files if stock}
        self.say(f"{name} answers: {self.same}")

    def after(self, name: str, result: dict, broken: dict) -> None:
        for side, same in self.same.items():
            result[side]["answer"] = same
        self.stored.add(self.facts, name, result, dict(broken))


def _difference(stock: Path, ours: Path) -> bool | str:
    return answers.difference(stock, ours, may_be_empty=True) or True


@dataclass
class Run:
    home: Path
    faro_jar: Path
    target: Path
    root: Path
    quick: bool
    command: str
    say: Callable[[str], None]

    def measure(
        self,
        heats: list[int],
        names: list[str],
        no_faro: bool,
        resume: bool,
        warm_ups: int,
        rounds: int,
    ) -> None:
        every = known.all_sides(self.faro_jar)
        here = {}
        for number in heats:
            sides = [s for s in HEATS[number - 1] if not every[s].needs_home or every[s].home]
            # Without a service, the second heat would measure nothing new.
            if number == 1 or any(every[side].needs_home for side in sides):
                here[number] = [s for s in sides if not (no_faro and every[s].faro)]
        made = tables(self.home, self.faro_jar, self.target, self.quick, self.say)

        def done(heat: int, name: str) -> bool:
            there = Stored(self.target, heat, self.quick).read().get("workloads", {})
            return resume and name in there

        for lot in lots(here, names, done):
            self._lot(lot, made, warm_ups, rounds)

    def _lot(self, lot: Lot, made: Path, warm_ups: int, rounds: int) -> None:
        facts = {
            "machine": machine.describe(self.home.name, self.root),
            "command": self.command,
            "warm_ups": warm_ups,
            "rounds": rounds,
            "quick": self.quick,
        }
        store = Stored(self.target, lot.heat, self.quick)
        asked = group(made, lot.names, self.quick)
        started, others = time.monotonic(), machine.OthersWatch()
        with tempfile.TemporaryDirectory(prefix="peers-", dir=self.target) as place:
            # Shuffle files are on the disk of the tree, not on tmpfs.
            workloads.measure(
                *(self.home, self.faro_jar, self.target, lot.sides, [asked]),
                *(warm_ups, rounds, self.say),
                scratch=place,
                around=Answers(Path(place), asked.commands, store, facts, self.say),
            )
        store.ended(lot.names, time.monotonic() - started, others.share())


def stored(faro_jar: Path, target: Path, quick: bool) -> dict:
    """Returns the stored results of all heats, whenever they were measured."""
    every = known.all_sides(faro_jar)
    heats = {n: Stored(target, n, quick).read() for n in range(1, len(HEATS) + 1)}
    measured = {
        side
        for heat in heats.values()
        for one in heat.get("workloads", {}).values()
        for side, runs in one["sides"].items()
        if runs["rounds"]
    }
    asked = dict.fromkeys(side for heat in HEATS for side in heat)
    broken = {
        f"{side}, {name}": why
        for heat in heats.values()
        for name, one in heat.get("workloads", {}).items()
        for side, why in one["broken"].items()
    }
    settings = [(side, every[side].settings, side in measured) for side in asked]
    return {"heats": heats, "settings": settings, "broken": broken}
