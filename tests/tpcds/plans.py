"""Compares the physical plans that two runs of one query ended with, as PlanText.java writes them.

Equal must be what adaptive execution decides by sizes of rows and by counts: the joins and their
sides, broadcasts, exchanges that are used twice, local reads. The plans' nodes are compared, and
not where they stand: of two equal subqueries or exchanges, the one that is asked for first is
computed and the other takes its result, and which one that is differs from run to run. How many
partitions a read joins depends on the compressed sizes, which differ by some bytes from writer to
writer.
"""

import re
from collections import Counter

# Numbers that Spark counts up in a session: of expressions, plans and subqueries.
NUMBERED = [
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"\b(plan_id|id)=#?\d+"), r"\1"),
    (re.compile(r"\b(scalar-subquery|subquery|dynamicpruning|bloom-filter)-?\d+"), r"\1"),
]


def parsed(text):
    """The plan's lines without what is numbered anew in each run, and the partitions of its reads
    that join some."""
    lines = text.splitlines()
    reads = [line.split()[1:] for line in lines if line.startswith("reads")]
    plan = [line for line in lines if not line.startswith("reads")]
    for pattern, instead in NUMBERED:
        plan = [pattern.sub(instead, line) for line in plan]
    return plan, [int(count) for counts in reads for count in counts]


def difference(left_path, right_path):
    """How the plans differ, or None; and a note on the partitions, or None."""
    (left, left_reads), (right, right_reads) = (
        parsed(path.read_text()) for path in (left_path, right_path)
    )
    note = None if left_reads == right_reads else f"partitions {left_reads} against {right_reads}"
    left, right = (Counter(line.lstrip(" ?") for line in lines) for lines in (left, right))
    changed = [*(f"-{line}" for line in left - right), *(f"+{line}" for line in right - left)]
    if not changed:
        return None, note
    return f"{len(changed)} lines of the plans differ, as {changed[0][:150]}", note
