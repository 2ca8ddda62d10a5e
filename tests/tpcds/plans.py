"""Compares the physical plans that two runs of one query ended with, as PlanText.java writes them.

Equal must be what adaptive execution decides by sizes of rows and by counts: the joins, broadcasts,
exchanges that are used twice. The plans' nodes are compared, and not where they stand: of two equal
subqueries or exchanges, the one that is asked for first is computed and the other takes its result,
and which one that is differs from run to run.

So does the side of a join that is broadcast, where both sides are small enough: it is the side
whose stage ends first; the other side is then read locally, or not shuffled at all (stock Spark's
plans of two runs differed so in 7 of 12 queries that were asked twice, and of q28, which joins five
single rows by nested loops, four of nine runs built another side). That is a note; without
broadcast joins everything has to be equal. How many partitions a read
joins is one, too: it depends on compressed sizes, and so on the order in which rows came.

Faro's sorts have another name, and stand where Spark's are.
"""

import re
from collections import Counter

BROADCAST_JOINS = ("BroadcastHashJoin", "BroadcastNestedLoopJoin")
# Numbers that Spark counts up in a session: of expressions, plans and subqueries.
NUMBERED = [
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"\b(plan_id|id)=#?\d+"), r"\1"),
    (re.compile(r"\b(scalar-subquery|subquery|dynamicpruning|bloom-filter)-?\d+"), r"\1"),
]
FARO_SORT = (re.compile(r"^(\W*)FaroSort\b"), r"\1Sort")


def parsed(text):
    """The plan's lines without what is numbered anew in each run, and the partitions of its reads
    that join some."""
    lines = text.splitlines()
    reads = [line.split()[1:] for line in lines if line.startswith("reads")]
    plan = [line for line in lines if not line.startswith("reads")]
    for pattern, instead in [*NUMBERED, FARO_SORT]:
        plan = [pattern.sub(instead, line) for line in plan]
    return plan, [int(count) for counts in reads for count in counts]


def difference(left_path, right_path):
    """How the plans differ, or None; and a note on the partitions, or None."""
    (left, left_reads), (right, right_reads) = (
        parsed(path.read_text()) for path in (left_path, right_path)
    )
    note = None if left_reads == right_reads else f"partitions {left_reads} against {right_reads}"
    sides = [Counter(line.lstrip(" ?") for line in lines) for lines in (left, right)]
    changed = changes(*sides)
    if not changed:
        return None, note
    broadcasts = any(line.startswith(BROADCAST_JOINS) for line in sides[0])
    if broadcasts and not changes(*(Counter(without_order(s.elements())) for s in sides)):
        return None, "the other side of a join was first"
    return f"{len(changed)} lines of the plans differ, as {changed[0][:150]}", note


def changes(left, right):
    return [*(f"-{line}" for line in left - right), *(f"+{line}" for line in right - left)]


def without_order(lines):
    """The lines without what depends on which stage ends first: the side of a join that is
    broadcast, by its keys; how the other one is read, and whether it had been shuffled by then."""
    for line in lines:
        if line.startswith(BROADCAST_JOINS):
            yield re.sub(r"\bBuild(Left|Right)\b", "Build", line)
        elif "BroadcastExchange HashedRelation" in line:
            yield line.split("HashedRelation")[0]
        elif not line.startswith(("AQEShuffleRead", "Exchange hashpartitioning")):
            yield line
