"""Results of the benchmarks: records of single measurements, stored as JSON, and the one writer of
their tables.

A record is a dictionary: what was measured (`workload`, `side`, `block` ...) and its figures, under
the names that the tables show. One with `failed` says why there is no figure.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[2]
# All results are here as JSON, which `--report` reads.
TARGET = ROOT / "target" / "bench"
# With more of other work than this, figures check the harness and measure nothing.
OTHERS_BEAR = 0.05
STOCK = "stock Spark"
SUM = "**sum**"
NAMES = {
    "netty": "Netty",
    "stock": STOCK,
    "stock-service": "stock Spark, its shuffle service",
    "faro-tcp": "Faro tcp",
    "faro-tcp-reader": "Faro tcp, its readers",
    "faro-tcp-service": "Faro tcp, `faro serve`",
    "faro-tcp-replicas": "Faro tcp, `faro serve`, `replicas=1`",
    "faro-tcp-lz4": "Faro tcp, without row blocks",
    "faro-shm": "Faro shm",
    "netty-ctr": "Netty, AES-CTR",
    "netty-gcm": "Netty, AES-GCM",
    "faro-sealed": "Faro tcp, sealed",
    "faro-spark": "Faro, Spark's reader",
    "faro-auto": "Faro",
    "faro-spark-sort": "Faro, Spark's sort",
    "faro-lz4": "Faro, without row blocks",
    "free": "free",
    "comet": "Comet",
    "faro-comet": "Faro behind Comet",
    "celeborn": "Celeborn",
    "celeborn-tuned": "Celeborn, tuned",
    "uniffle": "Uniffle",
}


class Skipped(Exception):
    """This machine cannot measure it; the message gives the reason."""


@dataclass(frozen=True)
class Table:
    title: str
    # The keys of a row.
    by: list[str]
    # Columns: the median of the records, with least and most.
    figures: list[str]
    # Columns: the median alone.
    medians: list[str] = field(default_factory=list)
    # A column with the ratio of a figure to that of the base, of the same other keys.
    ratios: dict[str, str] = field(default_factory=dict)
    # The base: a key and its value, or values, of which the first that is there counts.
    base: tuple = ("side", STOCK)
    # Leaves other records out; `...` stands for any value but None.
    only: dict = field(default_factory=dict)
    # A key whose values become columns, in a table for each figure with a row for the sum.
    across: str = ""

    def takes(self, record: dict) -> bool:
        has_one = any(name in record for name in [*self.figures, *self.medians])
        return has_one and all(
            record.get(key) is not None if value is ... else record.get(key) == value
            for key, value in self.only.items()
        )


@dataclass
class Suite:
    """What `tests/bench/run` does for a name."""

    # One line for --help, and how it is measured.
    what: str
    about: str
    tables: list[Table] | Callable[[list[dict]], list[Table]]
    # Yields records; raises Skipped.
    measure: Callable[[object], Iterable[dict]]
    options: Callable[[object], None] = lambda _: None
    # Lines about all records, such as what a picture needs.
    notes: Callable[[list[dict]], list[str]] = lambda _: []
    # Judges a quick run, which is a test then; the exit code.
    check: Callable[[list[dict]], int] | None = None
    # It measures a jar with Spark.
    needs_jar: bool = False
    # Of Spark; none: the newest.
    version: str = ""
    # Of docs/, where NAME.txt goes.
    folder: str = "benchmarks"
    rounds: int = 5


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Store:
    """The runs of a suite, each with its records; kept after each record, as a signal may come."""

    def __init__(self, name: str, quick: bool):
        self.path = TARGET / f"{'quick-' if quick else ''}{name}.json"
        self.runs = json.loads(self.path.read_text()) if self.path.is_file() else []

    def records(self) -> list[dict]:
        return [record for run in self.runs for record in run["records"]]

    def measure(self, records: Iterable[dict], facts: dict, show: Callable[[dict], None]) -> None:
        started, others = time.monotonic(), machine.OthersWatch()
        run = {**facts, **machine.describe(ROOT), "load": os.getloadavg()[0], "records": []}
        self.runs.append(run)
        try:
            for record in records:
                run["records"].append(record)
                show(record)
                self._keep({**run, "seconds": time.monotonic() - started})
        finally:
            # Children have ended now, whose time is not that of others.
            run.update(seconds=time.monotonic() - started, others=others.share())
            if run["records"]:
                self._keep(run)

    def _keep(self, run: dict) -> None:
        self.runs[-1] = run
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.runs, indent=1))
        part.rename(self.path)


def write(suite: Suite, store: Store, path: Path) -> str:
    """Writes the text of the stored runs; returns it."""
    records = store.records()
    failed = [record for record in records if "failed" in record]
    tables = suite.tables(records) if callable(suite.tables) else suite.tables
    parts = [f"## {suite.what}", suite.about, *map(_facts, store.runs), *suite.notes(records)]
    parts += [text for table in tables if (text := _text(table, records))]
    parts += ["\n".join(f"- **{_named(record)}: {record['failed']}**" for record in failed)]
    text = "\n\n".join(part for part in parts if part)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return text


def _named(record: dict) -> str:
    return ", ".join(str(value) for key, value in record.items() if key != "failed")


def _facts(run: dict) -> str:
    others = run.get("others", 0)
    lines = [
        f"- machine: {run['cpu']}, {run['cores']} cores, {run['memory']}, Linux {run['kernel']}",
        f"- software: JDK {run['jdk']}, Spark {run['spark']}, Faro {run['revision']}",
        f"- measured on {run['date']} by `{run['command']}` in {run['seconds'] / 60:.0f} min",
        f"- load average before: {run['load']:.1f}, meanwhile other work: {others * 100:.0f} %",
    ]
    if others > OTHERS_BEAR:
        lines.append("- **other work ran: a check of the harness, not a measurement**")
    if run["quick"]:
        lines.append("- **a smoke run: few and short rounds**")
    return "\n".join(lines)


def _text(table: Table, records: list[dict]) -> str:
    rows: dict[tuple, list[dict]] = {}
    for record in records:
        if table.takes(record):
            rows.setdefault(tuple(record.get(key, "–") for key in table.by), []).append(record)
    if not rows:
        return ""
    if table.across:
        return "\n\n".join(_across(table, rows, figure) for figure in table.figures)
    place = table.by.index(table.base[0]) if table.base[0] in table.by else None
    body, begun = [], {}
    for keys in rows:
        begun.setdefault(keys[:place], len(begun))
    known = [*NAMES.values()]

    def order(row: tuple) -> tuple:
        """Sides beside each other, in the order of their names' table."""
        side = row[0][place] if place is not None else None
        return begun[row[0][:place]], known.index(side) if side in known else 0

    for keys, found in sorted(rows.items(), key=order):
        cells = [*keys, *(with_spread(samples(found, one)) for one in table.figures)]
        cells += [number(middle(found, one)) for one in table.medians]
        for figure in table.ratios.values():
            value = None
            if place is not None and keys[place] not in table.base[1:]:
                bases = [(*keys[:place], one, *keys[place + 1 :]) for one in table.base[1:]]
                base = next((rows[one] for one in bases if one in rows), [])
                value = ratio(middle(found, figure), middle(base, figure))
            cells.append("–" if value is None else f"{value:.2f}")
        body.append(cells)
    head = [*table.by, *table.figures, *table.medians, *table.ratios]
    return f"### {table.title}\n\n{grid(head, body)}"


def _across(table: Table, rows: dict[tuple, list[dict]], figure: str) -> str:
    """A table of one figure, whose columns are the values of a key, with ratios to the first."""
    columns = list(dict.fromkeys(record[table.across] for of in rows.values() for record in of))
    columns.sort(key=lambda column: column != table.base[1])
    cells: dict[tuple, dict] = {}
    for keys, found in rows.items():
        for column in columns:
            measured = samples([r for r in found if r[table.across] == column], figure)
            cells.setdefault(keys, {})[column] = measured
    # The n-th runs of all rows are one run of the sum.
    whole = {
        column: [sum(values) for values in zip(*(of[column] for of in cells.values()))]
        for column in columns
    }
    body = []
    for keys, of in [*cells.items(), ((SUM, *("" for _ in table.by[1:])), whole)]:
        middles = [statistics.median(of[column]) if of[column] else None for column in columns]
        shares = [ratio(one, middles[0]) for one in middles[1:]]
        row = [*keys, *(with_spread(of[column]) for column in columns)]
        row += ["–" if share is None else f"{share:.2f}" for share in shares]
        first = [[r for r in rows.get(keys, []) if r[table.across] == columns[0]]]
        if keys not in rows:
            first = [[r for r in found if r[table.across] == columns[0]] for found in rows.values()]
        for name in table.medians:
            row.append(number(sum(middle(found, name) or 0 for found in first)))
        body.append(row)
    head = [*table.by, *columns, *(f"{column} / stock" for column in columns[1:]), *table.medians]
    title = f"{table.title}, by" if table.title else "By"
    return f"### {title} {table.by[0]}: {figure}\n\n{grid(head, body)}"


def samples(records: list[dict], figure: str) -> list:
    """All values of a figure, of which a record may have several."""
    found = [record[figure] for record in records if record.get(figure) is not None]
    return [one for value in found for one in (value if isinstance(value, list) else [value])]


def middle(records: list[dict], figure: str):
    found = samples(records, figure)
    if found and isinstance(found[0], str):
        return found[0]
    return statistics.median(found) if found else None


def ratio(a, b):
    return a / b if a is not None and b else None


def number(value) -> str:
    """A figure with three significant digits and without exponents; text as it is."""
    if value is None or isinstance(value, (str, list)):
        return str(value or "–")
    if math.isinf(value):
        return "never"
    if value == int(value) and value < 1000:
        return str(int(value))
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return (
        f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
        if abs(value) >= 0.1
        else f"{value:.3f}"
    )


def with_spread(values: list) -> str:
    if not values or isinstance(values[0], str):
        return values[0] if values else "–"
    least, most = min(values), max(values)
    shown = number(statistics.median(values))
    return shown if least == most else f"{shown} ({number(least)}–{number(most)})"


def grid(head: list, rows: list[list]) -> str:
    # Columns of words are aligned left.
    align = [
        "---:" if any(str(row[i])[:1] in "0123456789+-–" for row in rows) else "---"
        for i in range(len(head))
    ]
    heads = [re.sub(r"_([nµ]s)$", r", \1", re.sub("_us$", "_µs", name)) for name in head]
    heads = [name.replace("_", " ") for name in heads]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [heads, align, *rows])


def size(count: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def built(
    package: str, name: str, kind: str = "bench", release: bool = True, features: str = ""
) -> Path:
    """Builds a program of a crate and returns its path as Cargo reports it."""
    words = ["cargo", "build", "--locked", "-p", package, f"--{kind}", name]
    words += ["--features", features] if features else []
    words += ["--release"] if release else []
    done = subprocess.run(
        [*words, "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise RuntimeError(f"cargo could not build the {kind} {name} of {package}, see above")


def figures(command: list, **options) -> list[dict]:
    """Runs a program and returns the JSON lines that it prints."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        **options,
    )
    if done.returncode == 77:
        raise Skipped("no guest is possible here, see above")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        raise RuntimeError(f"'{command[0]}' ended with {done.returncode}, {len(found)} figures")
    return found


def in_guest(hosts: int, command: list, timeout: float, **options) -> list[dict]:
    """The same in a guest with RDMA devices; `options` are those of tests/softroce/run."""
    words = [ROOT / "tests" / "softroce" / "run", "--hosts", hosts, "--timeout", int(timeout)]
    for name, value in options.items():
        words += [f"--{name}", value]
    return figures([*words, "--", *command])
