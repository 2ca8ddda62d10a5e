"""The shuffles of the ladder."""

from dataclasses import dataclass

# Spark's default spark.reducer.maxSizeInFlight is 48 MB, and a request is a fifth of it.
REQUEST_BYTES = (48 << 20) // 5
REQUEST_BLOCKS = 1000
CLIENTS = (1, 4, 8, 16)


@dataclass(frozen=True)
class Shape:
    shuffle: int
    name: str
    maps: int
    reducers: int
    block_bytes: int
    blocks_per_request: int

    @property
    def spec(self):
        return (
            f"{self.shuffle}:{self.maps}:{self.reducers}:{self.block_bytes}:"
            f"{self.blocks_per_request}"
        )

    @property
    def total_bytes(self):
        return self.maps * self.reducers * self.block_bytes


def _shape(number, name, maps, reducers, block_bytes, most=REQUEST_BLOCKS):
    per_request = max(1, min(most, REQUEST_BYTES // block_bytes))
    return Shape(number, name, maps, reducers, block_bytes, per_request)


KB, MB = 1 << 10, 1 << 20
# Each shape has enough map outputs to fill a request with blocks of one reduce partition, and about
# 200 MB.
ALL = [
    # A1 of the Spark workloads has 400 x 400 blocks, of which a reduce task asks a peer for 200.
    _shape(0, "A1", 400, 400, 200, most=200),
    _shape(1, "1 KB", 1000, 100, KB),
    _shape(2, "4 KB", 1000, 50, 4 * KB),
    _shape(3, "16 KB", 600, 20, 16 * KB),
    _shape(4, "64 KB", 153, 20, 64 * KB),
    _shape(5, "256 KB", 38, 20, 256 * KB),
    _shape(6, "1 MB", 18, 12, MB),
    _shape(7, "4 MB", 12, 4, 4 * MB),
    _shape(8, "16 MB", 6, 2, 16 * MB),
]
QUICK = [ALL[0], ALL[1], ALL[4], ALL[7]]
