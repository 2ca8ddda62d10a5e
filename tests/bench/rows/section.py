"""Writes the section of docs/benchmarks on row blocks."""

from report.figures import machine, table

# The maximum ratios of row blocks' bytes and processor time to the codec's, for every set.
MOST_BYTES = 1.02
MOST_CPU = 1.05
NAMES = {"Lz4": "lz4", "Zstd": "zstd"}
HEAD = [
    *("set of rows", "codec", "bytes / codec's", "compress, ns a row: codec", "row blocks"),
    *("decompress, ns a row: codec", "row blocks", "CPU of both / codec's"),
]


def cpu(one):
    return (one["pack_ns"] + one["unpack_ns"]) / (one["encode_ns"] + one["decode_ns"])


def loses(one):
    return one["packed_share"] > MOST_BYTES or cpu(one) > MOST_CPU


def write(results):
    sets = results["sets"]
    lost = [
        f"- **{one['set']}, {NAMES[one['codec']]}: {one['packed_share']:.2f} of the bytes, "
        f"{cpu(one):.2f} of the CPU**"
        for one in sets
        if loses(one)
    ]
    return "\n\n".join(
        [
            "## Row blocks, by kind of rows",
            (
                "200,000 rows of each set in blocks of 32 KiB, compressed by the codec alone and "
                "with row blocks as the writer makes them, the blocks that fall back included, and "
                "decompressed to batches. One thread; its processor time, the least of some runs. "
                "The sets are generated (`native/rows/benches/sets`); the format was tuned on the "
                "first nine at most."
            ),
            machine(results["machine"], results["command"], results["seconds"], False),
            table(HEAD, [_row(one) for one in sets]),
            (
                f"### Row blocks: sets with more than {MOST_BYTES} of the codec's bytes or "
                f"{MOST_CPU} of its CPU"
            ),
            "\n".join(lost) or "None.",
        ]
    )


def _row(one):
    times = [one[key] for key in ("encode_ns", "pack_ns", "decode_ns", "unpack_ns")]
    shares = [f"{one['packed_share']:.2f}", *(f"{time:.1f}" for time in times), f"{cpu(one):.2f}"]
    return [one["set"], NAMES[one["codec"]], *shares]
