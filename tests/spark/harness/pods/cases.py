"""The applications of tests/spark/test_pods.py: which pods, which jobs, what must have happened."""

from __future__ import annotations

from harness.scenarios import DECLINED, Scenario

from .application import BROKEN_JAR, FARO_JAR, MUSL, Case
from .network import address
from .pod import BARE, HARD

JOBS = ["groupByKey", "sqlJoin"]
# Of Faro's own, at WARN or ERROR.
COMPLAINTS = r"(WARN|ERROR) (Faro|Endpoint|native)"
NAMES = ("executor-0.pods", "executor-1.pods")


def hosts_of(own):
    """What a pod takes the names for: of its own it sees the first link, of others the second."""
    lines = [
        f"{address(0 if executor == own else 1, executor)} {name}"
        for executor, name in enumerate(NAMES)
    ]
    return {"/etc/hosts": "\n".join(["127.0.0.1 localhost", *lines, ""])}


def named(own):
    return HARD.with_(host=NAMES[own], bind="0.0.0.0", texts=hosts_of(own))


CASES = [
    # All restrictions at once, and in the other pod neither /sys nor /dev/shm.
    Case(
        Scenario("hard", [*JOBS, "someOutputs"], must_count=("remoteBlocks.tcp",)),
        [HARD, BARE],
        never_says=(COMPLAINTS,),
        short=True,
    ),
    # Nowhere can a library be mapped; and a Java that runs on musl.
    Case(
        Scenario(
            "no-library",
            JOBS,
            faro=DECLINED,
            fallback="auto",
            declined_because="Faro could not start, Spark's own fetch delivers all blocks",
        ),
        [
            HARD.with_(local_noexec=True),
            HARD.with_(environment={"LD_PRELOAD": MUSL}, replace={FARO_JAR: BROKEN_JAR}),
        ],
        says={
            0: ("cannot be extracted and loaded: /tmp is probably mounted noexec .*faro.tmpdir",),
            1: (r"this Java runs on musl \(.*ld-musl-.*needs glibc",),
        },
        short=True,
        musl=True,
    ),
    # Two pods of one node with `hostNetwork` share memory, across their process-id namespaces.
    Case(
        Scenario("host-network", [*JOBS, "megabyteBlocks"], must_count=("remoteBlocks.shm",)),
        [HARD, BARE.with_(network_of="0")],
        never_says=(COMPLAINTS,),
    ),
    # A host's name is another address for its peers than for itself, and only that one is reached.
    Case(
        Scenario("two-links", JOBS, must_count=("remoteBlocks.tcp",)),
        [named(0), named(1)],
        links=2,
        cut=(0, 1),
        never_says=(COMPLAINTS,),
    ),
]
