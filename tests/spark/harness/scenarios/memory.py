"""Faults in transport, and memory that does not suffice."""

from .model import ALL, AUTHENTICATE, CANDIDATE, FAULTS, SORTS, TRIED, Scenario

SOON_LATE = {"spark.faro.request.timeout": "500ms"}


def faults(name, plan, counters, conf=None, tier=ALL, finds=""):
    """A scenario with injected faults: the counters show that they happened, and the answers are
    right all the same."""
    return Scenario(
        f"faults-{name}",
        ["groupByKey", "someTinyBlocks", "megabyteBlocks", "sqlJoin"],
        {FAULTS: plan, **(conf or {})},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        must_count=counters,
        tier=tier,
        finds=finds,
        late_is_red=True,
        waits=True,
    )


def executor_shape(name, fabric, cases, conf=None, must_count=(), **more):
    """Executors as users run them: 8 tasks at a time, Faro's defaults except for the fabric."""
    return Scenario(
        f"executor-shape-{name}",
        cases,
        {
            "spark.faro.fabric": fabric,
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "16",
            **(conf or {}),
        },
        faro_only=True,
        cores=8,
        jvm_defaults=True,
        must_count=must_count,
        must_not_count=("fallbacks", "failedBlocks", "requestsFailed", "busyRefusals"),
        **more,
    )


SCENARIOS = [
    faults(
        "all",
        "flip=5,drop=7,swallow=11",
        ("crcErrors", "retries", "timeouts"),
        SOON_LATE,
        finds="a damaged, cut or swallowed answer of another executor that is not asked for again",
    ),
    faults("corrupt", "flip=5", ("crcErrors",), tier=CANDIDATE),
    faults("disconnect", "drop=4", ("retries",), tier=CANDIDATE),
    faults("deadline", "swallow=6", ("timeouts",), SOON_LATE, tier=CANDIDATE),
    faults("dead-endpoint", "die=5", ("fallbackReason",)),
    # Far more is in flight than the arena holds. Nothing may be left to Spark.
    Scenario(
        "small-arena",
        ["megabyteBlocks", "sqlWideJoin", "sqlJoin"],
        {"spark.faro.memory.limit": "64m", "spark.shuffle.compress": "false"},
        faro_only=True,
        finds="tasks that wait for memory of each other, with less than they need together",
        cores=8,
    ),
    # In the clear; the containers' tests are so, with four tasks at a time.
    executor_shape("tcp", "tcp", ["manyOutputs"], tier=CANDIDATE),
    executor_shape("shm", "shm", ["manyOutputs"], tier=CANDIDATE),
    executor_shape(
        "sealed",
        "tcp",
        ["manyOutputs", "sqlLargeJoin"],
        # Spark's writer for few partitions would make 48,000 files, which say nothing of Faro.
        {**AUTHENTICATE, **SORTS, "spark.network.crypto.enabled": "true"},
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        finds="what thousands of map outputs and eight tasks at a time with Faro's defaults break",
        first=("manyOutputs",),
    ),
    # A block that the arena cannot hold is left to Spark; all others are not.
    Scenario(
        "tiny-arena",
        ["hugeBlock", "sqlJoin"],
        {"spark.faro.memory.limit": "32m", "spark.shuffle.compress": "false"},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
    ),
]
