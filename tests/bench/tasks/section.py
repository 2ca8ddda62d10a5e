"""Writes the section of docs/benchmarks on many tiny tasks."""

from measure import spread
from report.figures import NAMES, machine, number, table, with_spread

SIDES = ["stock", "faro-auto"]
# The name, the number of tasks of the workload's main stage, and its text.
WHAT = {
    "M600": (600, "600 map tasks with 100 rows each, 8 reduce tasks"),
    "M600x200": (800, "600 map tasks with 100 rows each, 200 reduce tasks"),
    "M3000": (3_000, "3,000 map tasks with 100 rows each, 8 reduce tasks"),
    "R3000": (3_000, "8 map tasks, 3,000 reduce tasks with 100 rows of 8 blocks each"),
}
HEAD = [
    *("workload", "side", "job s", "executors' CPU s", "with the driver's"),
    *("job vs stock", "CPU vs stock", "job, ms more for each task"),
]


def write(results):
    parts = [
        "## Many tiny tasks",
        (
            "What a task's writer and reader cost before and after its rows. Two executors of one "
            "core, settings as of the Spark workloads. Each side is a running application, and the "
            f"applications take turns, after {results['warm_ups']} runs each to warm up. Figures "
            f"are medians of {results['rounds']} runs, with the lowest and highest in parentheses. "
            "The last column is the difference of the medians by the number of tasks."
        ),
        machine(results["machine"], results["command"], results["seconds"], False),
        "\n".join(f"- {name}: {WHAT[name][1]}" for name in results["workloads"]),
        table(HEAD, _rows(results["workloads"])),
    ]
    if any(results["first"].values()):
        parts += [
            (
                f"The first job of an application, a {next(iter(results['workloads']))}, in "
                f"{results['starts']} applications of each side in turn: with the endpoint's start "
                "and classes that nothing has compiled yet."
            ),
            table(
                ["side", "job s", "executors' CPU s"],
                [
                    [NAMES[side], *(with_spread(spread.of(runs, k)) for k in ("job_s", "cpu_s"))]
                    for side, runs in results["first"].items()
                ],
            ),
        ]
    return "\n\n".join(parts)


def _rows(workloads):
    rows = []
    for name, sides in workloads.items():
        stock = _medians(sides["stock"]["rounds"]) if "stock" in sides else None
        for side, measured in sides.items():
            rounds = measured["rounds"]
            keys = ("job_s", "cpu_s", "all_cpu_s")
            cells = [with_spread(spread.of(rounds, key)) for key in keys]
            rows.append([name, NAMES[side], *cells, *_against(stock, _medians(rounds), side, name)])
    return rows


def _medians(rounds):
    return {key: spread.median([r[key] for r in rounds]) for key in ("job_s", "cpu_s")}


def _against(stock, own, side, name):
    if side == "stock" or not stock or not stock["job_s"] or not own["job_s"]:
        return ["–", "–", "–"]
    more = 1e3 * (own["job_s"] - stock["job_s"]) / WHAT[name][0]
    ratios = [f"{own[key] / stock[key]:.2f}" for key in ("job_s", "cpu_s")]
    return [*ratios, f"{'-' if more < 0 else ''}{number(abs(more))}"]
