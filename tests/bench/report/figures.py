"""Finds figures in results, and formats them."""

from measure import spread

NAMES = {
    "netty": "Netty",
    "stock": "stock Spark",
    "stock-service": "stock Spark, its shuffle service",
    "stock-2": "stock Spark, second heat",
    "faro-tcp": "Faro tcp",
    "faro-tcp-service": "Faro tcp, `faro serve`",
    "faro-tcp-replicas": "Faro tcp, `faro serve`, `replicas=1`",
    "faro-tcp-lz4": "Faro tcp, without row blocks",
    "faro-shm": "Faro shm",
    "netty-ctr": "Netty, AES-CTR",
    "netty-gcm": "Netty, AES-GCM",
    "faro-sealed": "Faro tcp, sealed",
    "faro-spark": "Faro, Spark's reader",
    "faro-auto": "Faro",
    "faro-auto-2": "Faro, second heat",
    "faro-lz4": "Faro, without row blocks",
    "free": "free",
    "comet": "Comet",
    "faro-comet": "Faro behind Comet",
    "celeborn": "Celeborn",
    "celeborn-tuned": "Celeborn, tuned",
    "uniffle": "Uniffle",
}
TINY, SMALL, LARGE = 1 << 10, 4 << 10, 64 << 10
OTHERS_BEAR = 0.05
# Of a guest, some of whose own processes may be counted.
OTHERS_BEAR_GUEST = 0.2


def number(value):
    """Formats a number with three significant digits and without exponents."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}"
    return (
        f"{value:.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2f}"
        if value >= 0.1
        else f"{value:.3f}"
    )


def with_spread(figure):
    if figure is None:
        return "–"
    middle, least, most = figure
    if least == most:
        return number(middle)
    return f"{number(middle)} ({number(least)}–{number(most)})"


def cell_figure(cell, side, key):
    return spread.of(cell["sides"].get(side, []), key)


def cell_median(cell, side, key):
    figure = cell_figure(cell, side, key)
    return figure[0] if figure else None


def times(value):
    return "–" if value is None else f"{value:.1f}x" if value < 20 else f"{value:.0f}x"


def table(head, rows):
    # Columns whose cells are words are aligned left.
    align = [
        "---:" if any(str(row[i])[:1] in "0123456789+-–" for row in rows) else "---"
        for i in range(len(head))
    ]
    return "\n".join("| " + " | ".join(str(c) for c in row) + " |" for row in [head, align, *rows])


def details(summary, body):
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def machine(facts, command, seconds, quick):
    lines = [
        (
            f"- machine: {facts['cpu']}, {facts['cores']} cores, {facts['memory']}, "
            f"Linux {facts['kernel']}"
        ),
        f"- software: JDK {facts['jdk']}, Spark {facts['spark']}, Faro {facts['revision']}",
        (
            f"- measured on {facts['date']} by `{command}` in {seconds / 60:.0f} min; other "
            f"processes used {facts['others'] * 100:.0f} % of the machine meanwhile"
        ),
    ]
    if facts["others"] > OTHERS_BEAR:
        lines.append(
            "- **other work was running on this machine: the figures are a check of the "
            "harness, not a measurement**"
        )
    if quick:
        lines.append("- **a smoke run: few and short rounds**")
    return "\n".join(lines)


def without_spark(results, guest=""):
    """Says the same of a measurement of native programs, on this machine or in a guest."""
    facts = results["machine"]
    lines = [
        (
            f"- machine: {facts['cpu']}, {facts['cores']} cores, {facts['memory']}, "
            f"Linux {facts['kernel']}{guest}; Faro {facts['revision']}"
        ),
        (
            f"- measured on {facts['date']} by `{results['command']}` in "
            f"{results['seconds'] / 60:.1f} min, {results['rounds']} rounds; load average before: "
            f"{facts['load']:.1f}, other processes used {facts['others'] * 100:.0f} % of the "
            "machine meanwhile"
        ),
    ]
    if facts["others"] > OTHERS_BEAR_GUEST:
        lines.append(
            "- **provisional: other work was running on this machine, and it may have disturbed "
            "one side of a round and not the next**"
        )
    if results["quick"]:
        lines.append("- **a smoke run: few and short rounds**")
    return "\n".join(lines)
