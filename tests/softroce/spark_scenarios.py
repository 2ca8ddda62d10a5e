"""Spark jobs over RDMA between two hosts: what is set up, what breaks, what is counted."""

from dataclasses import dataclass, field

# Starts as a user that may not lock memory beyond its limit, nor open what is not its own.
UNPRIVILEGED = "setpriv --reuid=65534 --clear-groups --inh-caps=-all --bounding-set=-all"


@dataclass
class Scenario:
    name: str
    cases: list
    conf: dict = field(default_factory=dict)
    guest: list = field(default_factory=list)
    hook: str = ""
    # A process of the guest is one of the host's with a mapping for each of its pages that lies
    # apart; files that are pinned as a whole need more than a host allows.
    mappings: int = 0
    prepare: str = ""
    run_as: str = ""
    only_verbs: bool = False  # every remote byte came over RDMA, and nothing fell back
    says: str = ""  # executors must have logged this, each at most `often` times
    often: int = 1
    counts: tuple = ()  # counters that must not be 0, over all executors
    quick: bool = False
    # Needs a jar with the modes for comparison.
    research: bool = False
    # Faro behind Comet, on the Spark that there is a Comet for.
    comet: bool = False


NEVER = {"spark.faro.fabric": "verbs", "spark.faro.fallback": "never"}
AUTO = {"spark.faro.fabric": "auto", "spark.faro.fallback": "auto"}
# Map outputs on a disk whose page cache can be asked what it has (overlayfs cannot), and a memory
# limit for all executors together that they do not fit beside the heaps.
CAGE = r"""
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/cage && echo 1300M >/sys/fs/cgroup/cage/memory.max
mkdir /spill
cat >/usr/local/bin/caged <<'END'
#!/bin/sh
echo $$ >/sys/fs/cgroup/cage/cgroup.procs
# Each host has mounts of its own.
disk=/var/tmp/disk-$SPARK_LOCAL_IP
truncate -s 2G "$disk" && mkfs.ext4 -q "$disk" && mount -o loop,noatime "$disk" /spill || exit 1
export SPARK_LOCAL_DIRS=/spill
exec "$@"
END
chmod +x /usr/local/bin/caged
"""
PLAIN = ["groupByKey", "someTinyBlocks"]
LONGER = ["someTinyBlocks", "groupByKey", "reduceByKey", "cogroup"]

SCENARIOS = [
    Scenario(
        "verbs",
        PLAIN,
        NEVER,
        only_verbs=True,
        quick=True,
        says="verbs fabric: rxe[12] port 1, GID 1 10.77.0",
    ),
    Scenario("auto", PLAIN, AUTO, only_verbs=True),
    # tests/spark has the shape of a real executor (2,000 outputs, 8 tasks at once): too slow here.
    # Without locality, which would put a reducer on the host of its 2 MiB block.
    Scenario(
        "outputs",
        ["someOutputs"],
        {**NEVER, "spark.shuffle.reduceLocality.enabled": "false"},
        only_verbs=True,
    ),
    Scenario("loss-1", PLAIN, NEVER, guest=["--loss", "1%"], only_verbs=True),
    Scenario("loss-5", PLAIN, NEVER, guest=["--loss", "5%"], only_verbs=True),
    Scenario(
        "memlock",
        ["groupByKey"],
        AUTO,
        guest=["--memlock", "64K"],
        run_as=UNPRIVILEGED,
        says=r"may lock 65536 bytes of memory, the arena needs \d+; raise",
    ),
    Scenario(
        "no-permission",
        ["groupByKey"],
        AUTO,
        prepare="chmod 600 /dev/infiniband/uverbs*",
        run_as=UNPRIVILEGED,
        says="no permission for /dev/infiniband/uverbs",
    ),
    Scenario("one-has-none", ["groupByKey"], AUTO, prepare="link h2 rdma-delete"),
    Scenario(
        "device-deleted",
        LONGER,
        AUTO,
        hook="link h2 rdma-delete &",
        says="WARN.*the RDMA device is lost: ",
    ),
    Scenario("link-down", LONGER, AUTO, hook="link h2 down; sleep 10; link h2 up"),
    Scenario(
        "gid-changed",
        LONGER,
        AUTO,
        hook="at h2 ip addr add 10.77.0.102/24 dev eth0; at h2 ip addr del 10.77.0.2/24 dev "
        "eth0; at h2 ip addr add 10.77.0.2/24 dev eth0",
    ),
    Scenario(
        "optimistic",
        ["megabyteBlocks", "hugeBlock"],
        {**NEVER, "spark.faro.regions": "optimistic"},
        only_verbs=True,
        counts=("region.prefetched", "region.prefetchHits", "remoteReads"),
    ),
    *(
        Scenario(
            f"regions-{mode}",
            ["largeShuffle", "megabyteBlocks"],
            {**rules, "spark.faro.regions": mode},
            only_verbs=rules is NEVER,
            counts=() if mode == "unpinned" else ("remoteReads",),
            mappings=1 << 20,
            research=mode != "unpinned",
            hook="for p in $(pgrep -f CoarseGrainedExecutorBackend); do "
            "grep VmHWM /proc/$p/status; done",
        )
        # rxe copies wrong bytes out of a region that it pages on demand (decision 009): its owner
        # writes them.
        for mode, rules in (("unpinned", NEVER), ("pinned", NEVER), ("odp", AUTO))
    ),
    Scenario(
        "pressure",
        ["largeShuffle", "largeShuffle"],
        {**NEVER, "spark.executor.memory": "400m"},
        prepare=CAGE,
        run_as="caged",
        hook="cd /sys/fs/cgroup/cage; head memory.current memory.events; grep -E '^(anon|file) ' "
        "memory.stat",
        only_verbs=True,
        counts=("region.majorFaults",),
    ),
    Scenario("killed", ["killInReduce", "groupByKey"], AUTO),
    Scenario(
        "comet",
        ["cometNative", "cometColumnar", "remoteThroughFaro"],
        NEVER,
        only_verbs=True,
        comet=True,
    ),
]
