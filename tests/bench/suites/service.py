"""What a node service (`faro serve`) costs and saves."""

from __future__ import annotations

import applications
import links
from applications import Group
from results import NAMES, Suite, Table, say

STOCK, STOCK_SERVICE, FARO, SERVICE = "stock", "stock-service", "faro-tcp", "faro-tcp-service"
REPLICAS = "faro-tcp-replicas"
ALLOCATION = {
    # The driver of a standalone cluster counts an executor for 5 s more after it has ended.
    "spark.standalone.executorRemoveDelayOnDisconnection": "0s",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "4",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}
TRACKING = "spark.dynamicAllocation.shuffleTracking.enabled"
KILLED, COPIES = [STOCK, STOCK_SERVICE, SERVICE], [FARO, SERVICE, REPLICAS]
LARGE = {"executors": 4, "memory": 1024}
# By name: the sides; what their jobs do: so many executors of so many are killed, or a tail that
# lets executors go; Gbit/s of links; what the group has of its own.
PARTS = {
    "without faults": ([STOCK, STOCK_SERVICE, FARO, SERVICE], "", 0, {}),
    "1 of 2 executors killed": (KILLED, "1 2", 0, {}),
    "3 of 4 executors killed": ([STOCK, SERVICE], "3 4", 0, LARGE),
    "copies on another host": (COPIES, "", 0, {}),
    "copies over 10 Gbit/s": (COPIES, "", 10, {}),
    "dynamic allocation": (
        [STOCK, FARO, SERVICE],
        "tail",
        0,
        {
            **LARGE,
            "elastic": True,
            "conf": ALLOCATION,
            "of_side": {s: {TRACKING: str(s != SERVICE).lower()} for s in (STOCK, FARO, SERVICE)},
        },
    ),
}


def options(parser):
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))


def measure(chosen):
    divisor = 20 if chosen.quick else 1
    for name in chosen.parts:
        sides, victims, gigabits, more = PARTS[name]
        sides = applications.chosen(chosen, sides)
        try:
            with links.linked(gigabits) as (link, _):
                if victims == "tail":
                    jobs = {"tail": f"tail {divisor}"}
                elif victims:
                    jobs = {"B2": f"killed B2 {divisor} 0 {victims[-1]}"}
                    jobs[f"B2, {name}"] = f"killed B2 {divisor} {victims}"
                else:
                    jobs = {"B2": f"run B2 {divisor}", "A1": f"run A1 {divisor}"}
                group = Group(jobs, link=link, **more)
                with applications.started(chosen, group, sides) as running:
                    if victims:
                        yield from broken_jobs(chosen, running, group, name)
                    else:
                        yield from applications.measured(
                            running, group, 2, chosen.rounds, part=name
                        )
        except links.Unavailable as why:
            say(f"SKIPPED {name}: {why}")


def broken_jobs(chosen, running, group, part):
    """Jobs whose executors do not stay: no process is measured."""
    for number in range(chosen.rounds + 1):
        for workload, command in group.commands.items():
            for one in running.turn():
                with running.guarded(one, part=part, workload=workload):
                    record = one.run(command)
                    if command.startswith("killed"):
                        one.find_executors()
                    one.ask("clean")
                    # The first round warms up.
                    if number:
                        side = NAMES[one.side]
                        yield {"part": part, "workload": workload, "side": side, **record}
            yield from running.failures()


def table(part):
    sides, victims, _, _ = PARTS[part]
    figures = ["job s", "executors' CPU s", "daemons' CPU s"]
    medians = ["remote blocks", "daemons' MB"]
    if victims == "tail":
        figures, medians = ["job s", "executor-seconds"], ["executors at most", "at the end"]
    elif victims:
        figures, medians = ["job s"], ["map tasks"]
    again = ["computed again"] if victims else []
    base = ("side", NAMES[sides[0]])
    ratios = {f"job / {base[1]}": "job s"}
    return Table(part, ["workload", "side"], figures + again, medians, ratios, base, {"part": part})


SUITES = {
    "service": Suite(
        "A node service",
        "`faro serve` on this host, beside Spark's own shuffle service and executors that serve by "
        "themselves. Executors of one core, AQE off, `spark.local.dir` and `--data-dir` on tmpfs, "
        "all blocks over TCP. Each executor has a `faro serve` of its own, as on several hosts; "
        "Spark's service is one for all. B2: 24 x 8 blocks of narrow rows, 265 MB remote; A1: 400 "
        "x 400 blocks. Executors are killed with SIGKILL between the map and the reduce stage; "
        "others take their places and run the same job once, so that neither their start nor a "
        "cold JVM is in the figures. The tail is a job of 64 map tasks of 0.8 s and 8 reduce "
        "tasks, of which one takes 24 s, on 1 to 4 executors that are given back when idle for 2 "
        "s; stock Spark and Faro alone track shuffles.",
        lambda _: [table(part) for part in PARTS],
        measure,
        options,
        needs_jar=True,
        rounds=4,
    )
}
