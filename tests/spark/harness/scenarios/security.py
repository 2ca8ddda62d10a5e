"""Authentication, encryption, and settings that Faro declines.

The scenario `killed` has Spark's secret within a host, `exchange-grouped` required security.
"""

from .model import (
    ANY,
    AUTHENTICATE,
    DECLINED,
    FAULTS,
    FEW,
    FEWEST,
    FULL,
    KEY_STORE,
    KEY_STORE_PASSWORD,
    MOST,
    OTHER_DISK,
    SECRETS,
    Scenario,
)

SCENARIOS = [
    # Sealed on its way, and with encryption of files.
    Scenario(
        "network-crypto",
        [*FEW, "megabyteBlocks"],
        {
            **AUTHENTICATE,
            "spark.network.crypto.enabled": "true",
            "spark.io.encryption.enabled": "true",
            "spark.faro.fabric": "tcp",
        },
        depths=(MOST, FULL),
        few=FEWEST,
        finds="blocks that are sent unsealed, and sealed files that Faro cannot read",
        first=("groupByKey", "sqlJoin", "megabyteBlocks"),
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    # Sealed with the secrets of the cards, which travel in Spark's TLS.
    Scenario(
        "ssl-rpc",
        FEW,
        {
            "spark.ssl.rpc.enabled": "true",
            "spark.ssl.rpc.protocol": "TLSv1.3",
            "spark.ssl.rpc.keyStore": KEY_STORE,
            "spark.ssl.rpc.keyStorePassword": KEY_STORE_PASSWORD,
            "spark.ssl.rpc.keyPassword": KEY_STORE_PASSWORD,
            "spark.ssl.rpc.trustStore": KEY_STORE,
            "spark.ssl.rpc.trustStorePassword": KEY_STORE_PASSWORD,
            "spark.faro.fabric": "tcp",
        },
        depths=(MOST, FULL),
        few=FEWEST,
        first_spark=4,
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    # Each executor's only fabric soon fails for good. Spark's own fetch would have the rest, in the
    # clear; fallback=auto allows that, and `required` does not.
    Scenario(
        "security-required-fails",
        ["notInTheClear"],
        {
            "spark.faro.security": "required",
            "spark.faro.fabric": "tcp",
            "spark.stage.maxConsecutiveAttempts": "1",
            FAULTS: "die=1",
        },
        faro=ANY,
        fallback="auto",
        faro_only=True,
        must_count=("sealedChannel", "failedBlocks"),
        must_not_count=("fallbacks",),
        no_log_has=SECRETS,
    ),
    Scenario(
        "declined",
        ["groupByKey", "sqlJoin"],
        OTHER_DISK,
        faro=DECLINED,
        fallback="auto",
        declined_because="spark.shuffle.sort.io.plugin.class",
    ),
]
