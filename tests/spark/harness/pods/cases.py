"""The applications of tests/spark/test_pods.py: which pods, which jobs, what must have happened."""

from __future__ import annotations

from harness.scenarios import ANY, Scenario

from .application import Case
from .pod import BARE, HARD

JOBS = ["groupByKey", "sqlJoin"]

# Of Faro's own, at WARN or ERROR.
COMPLAINS = r"(WARN|ERROR) (Faro|Endpoint|native)"

CASES = [
    Case(
        "hard",
        Scenario("hard", [*JOBS, "someOutputs"], must_count=("remoteBlocks.tcp",)),
        [HARD, BARE],
        never_says=(COMPLAINS,),
        short=True,
    ),
    Case("stock", Scenario("stock", JOBS, faro=ANY), [HARD, BARE], stock=True),
]
