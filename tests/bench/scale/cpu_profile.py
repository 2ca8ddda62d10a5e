"""Finds out with perf where the executors' CPU goes in queries at scale factor 10."""

from __future__ import annotations

import json
import time
from collections.abc import Container
from pathlib import Path

import parts
import suite
from measure import machine, samples, workloads
from report import cpu_section
from report.figures import machine as of_machine

ROOT = Path(__file__).resolve().parents[3]
# A query once before it is sampled: what is looked for is the work, not its compilation.
WARM_UPS, ROUNDS = 1, 1
FILE = "profile.json"


def measure(place: parts.Place, names: list[str], sides: list[str]) -> None:
    """Stores the samples by query and side in place.target, beside those of other queries."""
    facts = {**machine.describe(place.home.name, ROOT), "revision": parts.product_revision()}
    started, others = time.monotonic(), machine.OthersWatch()
    group = workloads.tpcds_group(names, place.queries, place.tables)
    found, _ = samples.measure(
        *(place.home, place.faro_jar, place.target, sides, [group], WARM_UPS, ROUNDS, place.say),
        scratch=place.target,
    )
    now = {
        "machine": {**facts, "others": others.share()},
        "seconds": time.monotonic() - started,
        "command": suite.command("scale"),
        "quick": place.divisor != 1,
        "tables": place.tables.name,
        "queries": found,
    }
    runs = [*without(stored(place.target), found), now]
    (place.target / FILE).write_text(json.dumps({"runs": runs}, indent=1))


def without(runs: list[dict], names: Container[str]) -> list[dict]:
    """Returns the runs without the queries that are measured again."""
    for run in runs:
        run["queries"] = {n: sides for n, sides in run["queries"].items() if n not in names}
    return [run for run in runs if run["queries"]]


def stored(target: Path) -> list[dict]:
    """Returns the runs, each with the queries that no later one has."""
    path = target / FILE
    return json.loads(path.read_text())["runs"] if path.is_file() else []


def write(runs: list[dict]) -> str:
    tables = ", ".join(dict.fromkeys(run["tables"] for run in runs))
    text = [
        "## Where a query's CPU goes",
        (
            f"TPC-DS ({tables}), one side after the other, with `perf` on both "
            "executors while a query runs for the second time; otherwise as in the "
            "section on scale factor 10. The newest call of a stack that is known decides "
            "(`tests/bench/measure/samples.py`); what Java's compiler inlined counts for its "
            "caller. What Faro can still take away is in the first four lines; what it cannot is "
            "in the others."
        ),
    ]
    for run in runs:
        text.append(of_machine(run["machine"], run["command"], run["seconds"], run["quick"]))
        for name, sides in sorted(run["queries"].items()):
            text += [f"### {name}", cpu_section.table_of(sides)]
    every = {name: sides for run in runs for name, sides in run["queries"].items()}
    free = cpu_section.without_shuffle(every, "faro-tcp")
    text += ["### Queries without the shuffle", cpu_section.WITHOUT_SHUFFLE, free]
    return "\n\n".join(text)
