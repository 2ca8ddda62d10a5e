"""Other shuffles beside Faro, measured in the same run: their part of docs/benchmarks.md."""

from measure import spread
from measure.spread import ratio

from . import spark_section
from .figures import NAMES, machine, number, table, with_spread

FIGURES = (
    ("job_s", "job s"),
    ("cpu_s", "executors' CPU s"),
    ("all_cpu_s", "everybody's CPU s"),
)
WHAT = {
    "stock": "Spark's own sort shuffle",
    "faro-auto": "`spark.shuffle.manager=io.faro.spark.FaroShuffleManager`",
    "comet": "Apache DataFusion Comet 0.12 with its own shuffle manager",
    "faro-comet": "the same, and `io.faro.spark.FaroPlugin` in `spark.plugins`",
    "celeborn": "a Celeborn master and a worker on this host; map outputs survive their executors",
    "celeborn-tuned": (
        "the same with 1,024 pushes in flight instead of 32: with 32 the client sleeps 50 ms when "
        "they are used up, which rules its times on one host"
    ),
    "uniffle": "a Uniffle coordinator and a server; map outputs survive their executors",
}
AIM = "faro-comet"


def write(results):
    workloads = dict(sorted(results["workloads"].items()))
    broken = results["broken"]
    return "\n\n".join(
        [
            "## Beside other shuffles",
            (
                "The Spark workloads as above, on the Spark that Comet is for. *Everybody's CPU* "
                "is that of the executors, the driver and the side's daemons; *loopback* is what "
                "the device `lo` carried in a run, requests and acknowledgements included, and "
                "nothing that travelled in shared memory. `spark.faro.fallback=never`. Comet "
                "executes only what it knows: rows that Spark makes (`range`) reach its exchange "
                "as rows. *Settings* is how many `--conf` a user needs besides the jar."
            ),
            machine(results["machine"], results["command"], results["seconds"], results["quick"]),
            table(
                ["side", "what it is", "settings", "here"],
                [
                    [NAMES[side], WHAT[side], settings, "measured" if there else "not here"]
                    for side, settings, there in results["settings"]
                ],
            ),
            "![Beside other shuffles](benchmarks/peers.svg)",
            table(
                [
                    "workload",
                    "side",
                    *[label for _, label in FIGURES],
                    "loopback MB",
                    "job / stock",
                ],
                rows(workloads),
            ),
            "### Aim: Faro behind Comet is not slower than Comet alone",
            aim(workloads),
            "### Did the bytes go through Faro",
            spark_section.proof(workloads, broken),
            "### Where another side is faster than Faro",
            better(workloads, broken),
            (
                "Celeborn and Uniffle keep map outputs in servers of their own: an executor that "
                "is lost or given back takes no output with it. Faro, like stock Spark, computes "
                "such outputs again, unless an external shuffle service or decommissioning has "
                "saved them. That, not speed on one host, is what they are for."
            ),
        ]
    )


def stock_of(workload, side):
    """Of the same heat."""
    return workload.get("stock-2" if workload[side].get("heat") == 2 else "stock", {})


def _median(measured, key):
    figure = spread.of(measured.get("rounds", []), key)
    return figure[0] if figure else None


def rows(workloads):
    out = []
    for name, workload in workloads.items():
        for side, measured in workload.items():
            job = ratio(_median(measured, "job_s"), _median(stock_of(workload, side), "job_s"))
            out.append(
                [
                    name,
                    NAMES[side],
                    *[with_spread(spread.of(measured["rounds"], key)) for key, _ in FIGURES],
                    number((_median(measured, "loopback_bytes") or 0) / 1e6),
                    "–" if job is None else f"{job:.2f}",
                ]
            )
    return out


def aim(workloads):
    out = []
    for name, workload in workloads.items():
        ours, alone = (
            spread.of(workload.get(s, {}).get("rounds", []), "job_s") for s in (AIM, "comet")
        )
        if ours and alone:
            # Beyond noise: the medians differ, and so do the spreads.
            slower = ours[0] > alone[0] and ours[1] > alone[2]
            out.append(
                [
                    name,
                    with_spread(ours),
                    with_spread(alone),
                    f"{ours[0] / alone[0]:.2f}",
                    "**no**" if slower else "yes" if ours[0] <= alone[0] else "yes, within noise",
                ]
            )
    return table(["workload", "behind Comet, job s", "Comet alone", "ratio", "met"], out)


def better(workloads, broken):
    said = []
    for name, workload in workloads.items():
        ours = _median(workload.get("faro-auto", {}), "job_s")
        for side in workload:
            theirs = _median(workload[side], "job_s")
            if ours and theirs and theirs < ours and not side.startswith("stock"):
                said.append(
                    f"- {name}: {NAMES[side]} takes {number(theirs)} s, Faro alone {number(ours)} s"
                )
    said += [f"- **{NAMES[side]} did not finish: {why}**" for side, why in broken.items()]
    return "\n".join(said) or "- No side is faster than Faro alone in a median."
