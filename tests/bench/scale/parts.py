"""Measures one lot: a few queries or workloads by each side in turn, in new applications."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import answers
from measure import links, machine, places, workloads
from measure import sides as known_sides
from measure.workloads import Application

ROOT = Path(__file__).resolve().parents[3]
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
]
QUERIES = [name for lot in LOTS for name in lot]
LARGEST_LOT = max(map(len, LOTS))
# The number of warm-up runs and of measured runs in one application.
SHORT, LONG = (2, 3), (0, 1)
WORKLOADS = {
    "A1": SHORT,
    "B2": SHORT,
    "S": SHORT,
    "B1": SHORT,
    "J": SHORT,
    "TERA": LONG,
    "X2000": LONG,
}
# A new application first runs a query that is not measured and a repartition, so that Faro's
# endpoint has started and much of Spark and of Faro is compiled.
WARM_UP_QUERY = "q3"
WARM_UP_RUN = "run B2 4"
LIMIT_SECONDS = 460


class Ended(BaseException):
    """A signal ended the run while an application was asked."""


PLAIN, ONE_HOST = "plain", "one-host"


@dataclass
class Kind:
    """A kind of cluster."""

    name: str
    conf: dict = field(default_factory=dict)
    gigabits: float = 0


def kind_named(name: str) -> Kind:
    if name == PLAIN:
        return Kind(name)
    if name == ONE_HOST:
        return Kind(name, {"spark.shuffle.readHostLocalDisk": "true"})
    return Kind(name, gigabits=float(name.removeprefix("link-")))


@dataclass
class Place:
    """The folders and files of a run."""

    home: Path
    faro_jar: Path
    target: Path
    tables: Path
    queries: Path
    divisor: int
    say: callable


def lots_of(names: list[str]) -> list[list[str]]:
    """Returns the names in lots. B1 has its own settings, and J changes those of its session."""
    apart = [[name] for name in names if name in ("B1", "J", "TERA", "X2000")]
    short = [name for name in names if name in WORKLOADS and [name] not in apart]
    queries = [name for name in names if name not in WORKLOADS]
    lots = [queries]
    if len(queries) + len(short) <= LARGEST_LOT:
        lots, short = [[*queries, *short]], []
    elif len(queries) > LARGEST_LOT:
        lots = [[name for name in lot if name in queries] for lot in LOTS]
        lots.append([name for name in queries if name not in QUERIES])
    return [lot for lot in (*lots, short, *apart) if lot]


def measure(place: Place, kind: Kind, heat: int, names: list[str], order: list[str]) -> dict:
    facts = {**machine.describe(place.home.name, ROOT), "revision": product_revision()}
    started, others = time.monotonic(), machine.OthersWatch()
    runs: dict = {name: {} for name in names}
    broken: dict = {}
    events = {}
    logs = place.target / "spark-logs" / f"{kind.name}-{heat}-{names[0]}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    jar = workloads.compiled(place.home, place.target)
    places.warm(place.tables)
    with links.linked(kind.gigabits) as (link, speed):
        for side in order:
            log = place.target / "events" / f"{kind.name}-{heat}-{names[0]}-{side}"
            shutil.rmtree(log, ignore_errors=True)
            log.mkdir(parents=True)
            events[side] = str(log.relative_to(place.target))
            one = Lot(place, kind, heat, names, side, runs, broken, link)
            # The scratch folder is on the disk of the tree, not on tmpfs.
            scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=place.target))
            try:
                one.run(scratch, log, jar, logs)
            except RuntimeError as error:
                broken[side] = str(error)
                place.say(f"{side} did not finish: {error}")
            except Ended as error:
                # The results so far are kept.
                broken[side] = str(error)
                place.say(f"{side} did not finish: {error}")
                break
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    compare_answers(place, kind, heat, names, order, runs, broken)
    return {
        "machine": {**facts, "others": others.share()},
        "seconds": time.monotonic() - started,
        "order": order,
        "divisor": place.divisor,
        "tables": place.tables.name,
        "link_gigabits": speed,
        "runs": runs,
        "broken": broken,
        "events": events,
    }


def product_revision() -> str:
    """Returns the last commit that changed the jar's content; changes of the benchmark itself do
    not count."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--"]
    command += ["native", ":!native/cli", ":!native/*/fuzz/**", ":!native/*/tests/**"]
    command += ["jvm", "shuffle-plugin", "Cargo.lock", "pom.xml"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@dataclass
class Lot:
    """The runs of a lot by one side."""

    place: Place
    kind: Kind
    heat: int
    names: list[str]
    side: str
    runs: dict
    broken: dict
    link: links.Links | None

    def run(self, scratch: Path, log: Path, jar: Path, logs: Path) -> None:
        side = known_sides.all_sides(self.place.faro_jar)[self.side]
        conf = {
            # These are Spark's defaults; the other benchmarks have their own settings.
            "spark.sql.adaptive.enabled": "true",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": log.as_uri(),
            **self.kind.conf,
        }
        if self.names == ["B1"]:
            conf["spark.shuffle.compress"] = "false"
        application = Application(
            *(self.side, side, conf, self.place.home, scratch / self.side, jar, logs, self.link)
        )
        try:
            started = time.monotonic()
            application.await_ready(f"tables {self.place.tables}")
            ready = time.monotonic()
            application.run(f"query {self.place.queries / WARM_UP_QUERY}.sql", LIMIT_SECONDS)
            application.run(WARM_UP_RUN)
            application.clean()
            self.place.say(
                f"{self.side}: ready in {ready - started:.0f} s, warm in "
                f"{time.monotonic() - ready:.0f} s more"
            )
            for name in self.names:
                self._one(application, name)
        finally:
            application.stop()

    def _one(self, application: Application, name: str) -> None:
        command = f"run {name} {self.place.divisor}"
        if name not in WORKLOADS:
            output = answer_path(self.place, self.kind, self.heat, name, self.side)
            output.parent.mkdir(parents=True, exist_ok=True)
            command = f"query {self.place.queries / name}.sql {output}"
        warm_ups, rounds = WORKLOADS.get(name, LONG)
        measured, before = [], {}
        for number in range(warm_ups + rounds):
            if number == warm_ups:
                before = application.counters()
            carried = self.link.carried() if self.link else 0
            figures = application.run(command, LIMIT_SECONDS)
            figures["link_bytes"] = self.link.carried() - carried if self.link else None
            if number >= warm_ups:
                measured.append(figures)
            if number + 1 < warm_ups + rounds:
                application.clean()
        faro = {k: v - before.get(k, 0) for k, v in application.counters().items()}
        application.clean()
        one = {"rounds": measured, "faro": faro}
        wrong = application.faro and workloads.not_through_faro(one, False)
        if wrong:
            self.broken[self.side] = f"{name}: {wrong}"
        self.runs[name][self.side] = one
        last = measured[-1]
        self.place.say(
            f"{self.kind.name} heat {self.heat} {name} {self.side}: {last['job_s']:.1f} s, CPU "
            f"{last['cpu_s']:.1f} s, wait {last['fetch_wait_s']:.1f} s, "
            f"{last['written_bytes'] / 1e6:.0f} MB"
        )


def answer_path(place: Place, kind: Kind, heat: int, name: str, side: str) -> Path:
    return place.target / "answers" / f"{kind.name}-{heat}" / f"{name}.{side}"


def compare_answers(place, kind, heat, names, order, runs, broken) -> None:
    """Stores whether each side's answer was stock Spark's: True, or the difference."""
    for name in names:
        theirs = answer_path(place, kind, heat, name, "stock")
        if name in WORKLOADS or "stock" not in runs[name]:
            continue
        for side in order:
            if side != "stock" and side in runs[name]:
                ours = answer_path(place, kind, heat, name, side)
                wrong = answers.difference(theirs, ours, may_be_empty=True)
                runs[name][side]["answer"] = wrong or True
                if wrong:
                    broken[side] = f"{name}: another answer than stock Spark's: {wrong}"
