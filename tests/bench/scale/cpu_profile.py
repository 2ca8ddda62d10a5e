"""Finds out with perf where the executors' CPU goes in queries at scale factor 10."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import parts
from measure import machine, samples, workloads
from report import cpu_section
from report.figures import machine as of_machine

ROOT = Path(__file__).resolve().parents[3]
# A query once before it is sampled: what is looked for is the work, not its compilation.
WARM_UPS, ROUNDS = 1, 1
FILE = "profile.json"


def measure(place: parts.Place, names: list[str], sides: list[str]) -> None:
    """Stores the samples by query and side in place.target."""
    facts = {**machine.describe(place.home.name, ROOT), "revision": parts.product_revision()}
    started, others = time.monotonic(), machine.OthersWatch()
    group = workloads.tpcds_group(names, place.queries, place.tables)
    found, _ = samples.measure(
        *(place.home, place.faro_jar, place.target, sides, [group], WARM_UPS, ROUNDS, place.say),
        scratch=place.target,
    )
    results = {
        "machine": {**facts, "others": others.share()},
        "seconds": time.monotonic() - started,
        "command": " ".join(["tests/bench/scale/run", *sys.argv[1:]]),
        "quick": place.divisor != 1,
        "tables": place.tables.name,
        "queries": found,
    }
    (place.target / FILE).write_text(json.dumps(results, indent=1))


def stored(target: Path) -> dict | None:
    path = target / FILE
    return json.loads(path.read_text()) if path.is_file() else None


def write(results: dict) -> str:
    text = [
        "## Where a query's CPU goes",
        (
            f"TPC-DS ({results['tables']}), one side after the other, with `perf` on both "
            "executors while a query runs for the second time; otherwise as in the "
            "section on scale factor 10. The newest call of a stack that is known decides "
            "(`tests/bench/measure/samples.py`); what Java's compiler inlined counts for its "
            "caller. What Faro can still take away is in the first four lines; what it cannot is "
            "in the others."
        ),
        of_machine(results["machine"], results["command"], results["seconds"], results["quick"]),
    ]
    for name, sides in sorted(results["queries"].items()):
        text += [f"### {name}", cpu_section.table_of(sides)]
    return "\n\n".join(text)
