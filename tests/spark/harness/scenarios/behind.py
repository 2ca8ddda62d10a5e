"""FaroPlugin behind another shuffle manager: Spark's own, Comet's, and those that it declines."""

from .model import (
    ANY,
    AQE,
    BRIEF,
    CANDIDATE,
    COMET,
    COMET_MANAGER,
    COMET_OLD_VERSION,
    COMET_VERSION,
    DECLINED,
    FEW,
    MOST,
    Scenario,
)

SCENARIOS = [
    # FaroPlugin behind Spark's own manager: every kind of shuffle, and executors that are killed.
    Scenario(
        "behind-sort",
        [
            *FEW,
            "sqlOrder",
            "megabyteBlocks",
            *AQE,
            "remoteThroughFaro",
            "switchJobs",
            # Then there is one executor until another one takes its place.
            "killBetweenStages",
        ],
        {"spark.task.maxFailures": "8"},
        faro_only=True,
        behind="sort",
        finds="what breaks where Faro is a plug-in behind Spark's own shuffle manager",
        first=(
            *("groupByKey", "sqlJoin", "aqeSkewed", "remoteThroughFaro", "switchJobs"),
            "killBetweenStages",
        ),
        must_not_count=("rowReaders", "rowWriters"),
    ),
    # Its bytes may be anywhere, as far as Faro knows.
    Scenario(
        "behind-other-files",
        ["groupByKey"],
        faro=DECLINED,
        fallback="auto",
        faro_only=True,
        depths=(MOST,),
        version="3.5.9",
        behind="io.faro.e2e.OtherManager",
        declined_because="io.faro.e2e.OtherManager keeps its map outputs in another way",
    ),
    Scenario(
        "behind-other-client",
        ["groupByKey"],
        {"spark.plugins": "io.faro.e2e.OtherClient"},
        faro=DECLINED,
        fallback="auto",
        faro_only=True,
        behind="sort",
        declined_because="not Spark's but a io.faro.e2e.OtherClient.*another plug-in",
    ),
    Scenario(
        "behind-optimistic",
        FEW,
        {"spark.faro.regions": "optimistic"},
        faro=DECLINED,
        fallback="auto",
        faro_only=True,
        behind="sort",
        tier=CANDIDATE,
        declined_because="spark.faro.regions=optimistic behind another shuffle manager",
    ),
    Scenario(
        "behind-bad-values",
        ["badConfig"],
        faro=ANY,
        faro_only=True,
        depths=(MOST,),
        version="3.5.9",
        behind="sort",
        bad_values=[
            ("spark.faro.port", "70000", "65535"),
            ("spark.shuffle.manager", "io.faro.e2e.OtherManager", "another way"),
        ],
    ),
    # Apache DataFusion Comet: its own exchanges, native and of rows, and the cases of Spark's that
    # it takes over.
    *(
        Scenario(
            name,
            [
                *("cometNative", "cometColumnar", "cometOfRows", "sqlJoin", "aqeSkewed"),
                *("groupByKey", "remoteThroughFaro", "cometKilled"),
            ],
            {**COMET, "spark.faro.fabric": "tcp", "spark.task.maxFailures": "8"},
            faro_only=True,
            depths=(BRIEF, MOST),
            version=version,
            behind=COMET_MANAGER,
            comet=True,
            must_count=("remoteBlocks.tcp",),
        )
        for name, version in (("comet", COMET_VERSION), ("comet-spark3", COMET_OLD_VERSION))
    ),
    Scenario(
        "comet-shm",
        ["cometNative", "remoteThroughFaro"],
        {**COMET, "spark.faro.fabric": "shm"},
        faro_only=True,
        depths=(BRIEF,),
        version=COMET_VERSION,
        behind=COMET_MANAGER,
        comet=True,
        tier=CANDIDATE,
        must_count=("remoteBlocks.shm",),
    ),
]
