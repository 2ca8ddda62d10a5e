"""Measures the same Spark job with map outputs unpinned, pinned and paged on demand."""

import re
import subprocess

from measure import spread
from report.figures import table, with_spread

from parts import guest

NAME = "modes"
TITLE = "Unpinned, pinned, on-demand paging: one Spark job"
ABOUT = (
    "Two executors on two hosts of a guest run a shuffle of 576 MB (48 blocks of 12 MB) and "
    "one of 96 MB, half of each remote, all over RDMA (`tests/softroce/spark regions-MODE`). "
    "`spark.faro.regions` is unpinned, pinned and odp in turn. The columns:\n\n"
    "- *job*: the wall time of the first shuffle, measured by the driver\n"
    "- *registering*: the time that both executors spent in `ibv_reg_mr`\n"
    "- *registered*: the most bytes that were registered at once\n"
    "- *RSS*: the largest resident set of an executor's process, with the JVM and pages of "
    "mapped files\n\n"
    "Figures are medians of the rounds, with the lowest and highest in parentheses. *odp* "
    "needs a device with on-demand paging (rxe from Linux 6.15). If a READ begins within a "
    "page of such a region, rxe copies wrong bytes. The checksum refused the first such "
    "bytes, and the owner wrote all others. The job time of *odp* is therefore that of "
    "*unpinned* plus some waste."
)
MODES = ["unpinned", "pinned", "odp"]
COLUMNS = ["job, s", "registering, ms", "registered, MB", "RSS, MB"]


def measure(root, _target, options):
    logs = root / "target" / "test-logs" / "softroce" / "spark"
    cells = []
    for at in range(1 if options.quick else min(options.rounds, 3)):
        for mode in MODES:
            done = subprocess.run(
                [root / "tests" / "softroce" / "spark", f"regions-{mode}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode == guest.SKIPPED:
                reasons = re.findall(r"^softroce: skipped: (.*)$", done.stdout, re.M)
                raise guest.Skipped((reasons or ["no guest with an RDMA device"])[-1])
            if done.returncode:
                # A mode that fails is published, too.
                cells.append({"mode": mode, "round": at, "failed": why(done.stdout)})
                continue
            cells.append({"mode": mode, "round": at, **figures(logs / f"regions-{mode}")})
    return cells


def why(output):
    found = re.findall(r"^FAILED \S.*? - (?:Failed: )?(.{1,200})", output, re.M)
    return found[0] if found else "no reason was given"


def figures(logs):
    out = (logs / "driver.out").read_text()

    def largest_and_sum(name):
        values = [
            float(v)
            for v in re.findall(rf"^COUNTERS .*?[{{ ]{re.escape(name)}=([\d.E]+)", out, re.M)
        ]
        return max(values), sum(values)

    resident = re.findall(r"VmHWM:\s+(\d+) kB", (logs / "hook.log").read_text())
    return {
        "job, s": int(re.search(r"^CASE largeShuffle OK (\d+)", out, re.M).group(1)) / 1000,
        "registering, ms": largest_and_sum("pool.registrationNanos")[1] / 1e6,
        "registered, MB": largest_and_sum("pool.registeredHighWaterBytes")[0] / 1e6,
        "RSS, MB": max(map(int, resident)) / 1024,
    }


def section(cells):
    good = [cell for cell in cells if "failed" not in cell]
    failed = {cell["mode"]: cell["failed"] for cell in cells if "failed" in cell}
    there = [mode for mode in MODES if any(cell["mode"] == mode for cell in good)]

    def of(mode, column):
        return spread.of([c for c in good if c["mode"] == mode], column)

    def ratio(column):
        return of("pinned", column)[0] / of("unpinned", column)[0]

    rows = [[mode, *(with_spread(of(mode, column)) for column in COLUMNS)] for mode in there]
    text = [table(["regions", *COLUMNS], rows)]
    text += [f"**{mode} failed**: {reason}" for mode, reason in failed.items()]
    if {"unpinned", "pinned"} <= set(there):
        saved = 1 - 1 / ratio("registered, MB")
        job = 1 / ratio("job, s")
        verdicts = [
            (
                f"registering {ratio('registering, ms'):.1f}x shorter than pinned (aim 50x: "
                f"{'met' if ratio('registering, ms') >= 50 else '**missed**'})"
            ),
            (
                f"registered bytes {-saved:.0%} (aim -95 %: "
                f"{'met' if saved >= 0.95 else '**missed**'})"
            ),
            f"job {job:.2f}x as long (aim: not longer: {'met' if job <= 1.02 else '**missed**'})",
        ]
        text.append("Unpinned: " + "; ".join(verdicts) + ".")
    return "\n\n".join(text)
