"""Writes the tables of `scale --profile`: where the executors' CPU goes."""

from measure import samples, spread

from .figures import NAMES, number, table

WHAT = {
    samples.CODEC: "compressing, decompressing, hashes of blocks",
    samples.WRITE: "the rest of writing the shuffle",
    samples.READ: "the rest of reading it, with its deserialisation",
    samples.TRANSPORT: "threads of the transport",
    samples.QUERY: "the query: operators, generated code, iterators between them",
    samples.SPARK: "the rest of Spark: tasks, RPC, blocks",
    samples.JVM: "the JVM's compilers and collectors",
}
WITHOUT_SHUFFLE = (
    "Faro's CPU as a part of stock Spark's, both without the JVM's compilers and collectors; then "
    "what would be left of Faro's if its shuffle cost nothing but the codec, and nothing at all. "
    "These are estimates of one run, not bounds."
)
OF_A_SHUFFLE = (samples.CODEC, samples.WRITE, samples.READ, samples.TRANSPORT)


def seconds(measured):
    """Returns CPU seconds by part."""
    counts = measured["samples"]
    whole = spread.median([run["cpu_s"] for run in measured["runs"]])
    total = sum(counts.values())
    return {part: whole * counts.get(part, 0) / total for part in samples.PARTS}


def table_of(sides):
    """Returns the CPU seconds of a workload by part and side."""
    spent = {side: seconds(measured) for side, measured in sides.items()}
    rows = [[WHAT[part], *(number(of[part]) for of in spent.values())] for part in samples.PARTS]
    rows.append(["**all**", *(number(sum(of.values())) for of in spent.values())])
    return table(["CPU s of both executors", *(NAMES[side] for side in sides)], rows)


def without_shuffle(workloads, side="faro-auto"):
    """Returns Faro's CPU by workload as a part of stock Spark's, and what a free shuffle left."""
    rows = []
    for name, sides in sorted(workloads.items()):
        if not {"stock", side} <= set(sides):
            continue
        stock, ours = seconds(sides["stock"]), seconds(sides[side])
        whole = sum(stock.values()) - stock[samples.JVM]
        all_ours = sum(ours.values()) - ours[samples.JVM]
        left = all_ours - sum(ours[part] for part in OF_A_SHUFFLE)
        cells = [all_ours, left + ours[samples.CODEC], left]
        rows.append([name, *(f"{cell / whole:.2f}" for cell in cells)])
    return table(["workload", "Faro / stock", "only the codec", "no shuffle"], rows)
