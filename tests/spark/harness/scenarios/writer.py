"""Faro's writer: files, figures, little memory, disks that fail."""

from .model import CANDIDATE, OTHER_WRITERS, SCRATCH, SORTS, SPARK_WRITERS, TRIED, Scenario

SCENARIOS = [
    # Faro's writer: its files, its figures, and what tasks that are ended leave behind.
    Scenario(
        "writer",
        ["writerFiles", "corruptDiagnosed", "writerMetrics", "rowChecksums", "writerKilled"],
        {
            **SORTS,
            "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
            "spark.task.maxFailures": "8",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    Scenario(
        "writer-kills",
        ["writerKilledOften"],
        {"spark.task.maxFailures": "8", "spark.unsafe.exceptionOnMemoryLeak": "true"},
        tier=CANDIDATE,
        must_count=("rowWriters",),
    ),
    # One task's output is ten times its memory; four tasks at a time share it with sorts and an
    # aggregation. Of 2,500 partitions not each has a buffer then.
    Scenario(
        "writer-little-memory",
        ["writerSpills", "writerBeside", "writerFiles"],
        {
            **SORTS,
            "spark.executor.memory": "512m",
            "spark.memory.fraction": "0.1",
            "spark.shuffle.checksum.enabled": "false",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        cores=4,
        must_count=("rowWriters", "sparkWriters.partitions"),
        must_not_count=OTHER_WRITERS,
    ),
    # Two executors whose memory, 60 MiB each, is full of cached blocks. Without compression the
    # rows are far more than that.
    Scenario(
        "writer-cached",
        ["writerKeepsCached"],
        {
            "spark.executor.memory": "512m",
            "spark.memory.fraction": "0.3",
            "spark.shuffle.compress": "false",
        },
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    # With little memory, outside the heap; and spills after so many rows, checksums included. Then
    # no room on the disk, and one of two local directories becomes a file.
    Scenario(
        "writer-off-heap",
        ["writerFiles", "corruptDiagnosed", "writerSpills", "diskFull", "directoryGone"],
        {
            **SORTS,
            "spark.local.dir": f"{SCRATCH}/a,{SCRATCH}/b",
            "spark.stage.maxConsecutiveAttempts": "100",
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": "16m",
            "spark.shuffle.spill.numElementsForceSpillThreshold": "20000",
            "spark.shuffle.checksum.algorithm": "CRC32C",
            "spark.task.maxFailures": "1000",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        finds="spills, checksums, memory off the heap, a full disk and a lost one gone wrong",
        fallback="auto",
        faro=TRIED,
        must_count=("rowWriters", "sparkWriters.partitions"),
        must_not_count=OTHER_WRITERS,
    ),
    # The same two with memory on the heap.
    Scenario(
        "writer-disk",
        ["diskFull", "directoryGone"],
        {
            **SORTS,
            "spark.local.dir": f"{SCRATCH}/a,{SCRATCH}/b",
            "spark.task.maxFailures": "1000",
            "spark.stage.maxConsecutiveAttempts": "100",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        fallback="auto",
        faro=TRIED,
        tier=CANDIDATE,
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
]
