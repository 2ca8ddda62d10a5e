"""Writes the part of docs/design/scaling.md on the policies over real verbs."""

import statistics

from measure import spread
from report.figures import number, table, with_spread

POLICIES = ("grouped", "rotated", "random")
QUIET_SHARE = 0.2


def write(results):
    return "\n\n".join(
        [
            "## Measured over real verbs",
            (
                "The endpoints are in network namespaces of one user-mode Linux guest, each "
                "with a software RDMA device (rdma_rxe). All links have the same rate in both "
                "directions. The sender's queue keeps every packet; the switch port before "
                "the reader keeps 256 KiB and drops the rest. These devices have no "
                "congestion control, and `spark.faro.verbs.timeout` is 18 (1 s), so that a "
                "packet that is only queued at its sender is not sent again. Every endpoint "
                "reads the same amount from every other one, all at once, and checks it. "
                "*Drops* are the ports'; *retries* are what the devices count when packets "
                "are missing or come twice; both are totals over all exchanges of a set of "
                "processes. An exchange lasts from the first endpoint's start to the last "
                "one's end."
            ),
            facts(results),
            "\n\n".join(one(results, setting) for setting in results["settings"]),
        ]
    )


def facts(results):
    machine = results["machine"]
    lines = [
        (
            f"- machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory']}, "
            f"Linux {machine['kernel']}; guest of 1 processor and 4 GiB"
        ),
        f"- software: Faro {machine['revision']}",
        (
            f"- measured on {machine['date']} by `{results['command']}` in "
            f"{results['seconds'] / 60:.0f} min: {results['rounds']} rounds in which the "
            f"policies take turns, {results['repeat']} exchanges in each after one that makes "
            f"the connections and does not count; slice {results['slice_ms']} ms; "
            f"load average before: {machine['load']:.1f}, other processes used "
            f"{machine['others'] * 100:.0f} % of the machine meanwhile"
        ),
    ]
    if machine["others"] > QUIET_SHARE:
        lines.append("- **provisional: other work was running on this machine**")
    return "\n".join(lines)


def ideal(setting):
    """Returns the seconds that a link needs for an endpoint's bytes, without headers."""
    megabits = int(setting["rate"].removesuffix("mbit"))
    return (setting["endpoints"] - 1) * setting["bytes"] * 8 / (megabits * 1e6)


def one(results, setting):
    cells = [
        cell
        for cell in results["cells"]
        if cell["endpoints"] == setting["endpoints"]
        and cell["rate"] == setting["rate"]
        and cell["delay"] == setting.get("delay")
    ]
    title = (
        f"{setting['endpoints']} endpoints, {setting['rate']}, "
        f"{setting['bytes'] >> 10} KiB for each pair in {setting['maps']} requests"
    )
    if setting.get("delay"):
        title += f", {setting['delay']} on each way"
    rows = []
    base = None
    for policy in POLICIES:
        found = [cell for cell in cells if cell["policy"] == policy]
        if not found:
            continue
        found = [cell for cell in found if cell.get("seconds")]
        if not found:
            rows.append([policy, "no figure", *["–"] * 6])
            continue
        seconds = [second for cell in found for second in cell["seconds"]]
        middle = statistics.median(seconds)
        base = base or middle
        peak = [max(cell[name] for cell in found) for name in ("active", "fan_in", "pairs")]
        rows.append(
            [
                policy,
                f"{number(middle)} ({number(min(seconds))}–{number(max(seconds))})",
                f"{middle / base:.2f}",
                *peak,
                with_spread(spread.of(found, "drops")),
                with_spread(spread.of([{"retries": retries(cell)} for cell in found], "retries")),
            ]
        )
    head = [
        "policy",
        "completion, s: median (least–most)",
        "to grouped",
        "active peers",
        "fan-in",
        "pairs in use",
        "drops",
        "retries",
    ]
    return (
        f"### {title}\n\nThe link needs {number(ideal(setting))} s for the bytes alone.\n\n"
        + table(head, rows)
    )


def retries(cell):
    return cell.get("completer_retry_err", 0) + cell.get("out_of_seq_request", 0)
