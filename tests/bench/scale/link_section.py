"""Writes the part of docs/benchmarks on hosts with links of a limited rate, and on one host."""

from __future__ import annotations

import combined
import parts
from measure import spread
from report import spark_section
from report.figures import NAMES, machine, number, table, with_spread
from section import ORDER


def write(heats: list, quick: bool) -> str:
    kinds = sorted({heat.kind for heat in heats if heat.kind != parts.PLAIN}, key=_rank)
    facts, seconds = combined.machine_of(heats, kinds)
    text = [
        "## By kind of link",
        (
            "Each executor is in a network namespace of its own, the driver in a third one, "
            "which is the switch. Links are of type veth and limited by the kernel's token "
            "bucket (tbf) in both directions, with a queue of 20 ms. Both hosts share the two"
            " cores, which also do the work of the network, so a link of 25 Gbit/s is hardly "
            "a limit here. *One host* has no namespaces and Spark's default "
            "`spark.shuffle.readHostLocalDisk=true`, so executors read each other's files "
            "without a transport. Otherwise all is as above: scale factor 10, one run each, "
            "after the same warm-up; B2 is the repartition of 24 million narrow rows (the "
            "median of 3 runs)."
        ),
        machine(facts, "tests/bench/run scale --links", seconds, quick),
        _speeds(heats, kinds),
        table(_head(), [row for kind in kinds for row in _rows(heats, kind)]),
        "### Where Faro is worse than stock Spark, by kind of link",
    ]
    for kind in kinds:
        results = combined.of_kind(heats, kind)
        named = {f"{combined.named(kind)}, {name}": sides for name, sides in results.items()}
        text.append(
            spark_section.losses(named, combined.broken(heats, kind), section_figures()).replace(
                "Faro is not", f"{combined.named(kind)}: Faro is not"
            )
        )
    return "\n\n".join(text)


def section_figures() -> tuple:
    return (("job_s", "job s"), ("cpu_s", "executors' CPU s"))


def _rank(kind: str) -> tuple:
    return (0.0, "") if kind == parts.ONE_HOST else (float(kind.removeprefix("link-")), kind)


def _speeds(heats: list, kinds: list[str]) -> str:
    lines = []
    for kind in kinds:
        found = [lot["link_gigabits"] for _, lot in combined.lots(heats, [kind])]
        if found and found[0]:
            most = f"{min(found):.2f}" if min(found) < 10 else f"{min(found):.1f}"
            lines.append(f"- {combined.named(kind)}: one TCP connection got {most} Gbit/s")
    return "\n".join(lines) or "- no link with a limit was measured"


def _head() -> list[str]:
    head = ["link", "workload", "side", "job s", "executors' CPU s", "fetch wait s"]
    return [*head, "MB written", "MB over the links", "job / stock", "CPU / stock"]


def _rows(heats: list, kind: str) -> list:
    rows = []
    for name, sides in combined.of_kind(heats, kind).items():
        for side in [s for s in ORDER if s in sides]:
            rounds = sides[side]["rounds"]
            row = [combined.named(kind), name, NAMES[side]]
            row += [with_spread(spread.of(rounds, k)) for k in ("job_s", "cpu_s", "fetch_wait_s")]
            for key in ("written_bytes", "link_bytes"):
                figure = spread.of(rounds, key)
                row.append(number(figure and figure[0] / 1e6))
            for key in ("job_s", "cpu_s"):
                theirs = spread.of(sides.get("stock", {}).get("rounds", []), key)
                ratio = spread.ratio(spread.of(rounds, key)[0], theirs and theirs[0])
                row.append("–" if side == "stock" or ratio is None else f"{ratio:.2f}")
            rows.append(row)
    return rows
