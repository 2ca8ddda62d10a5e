"""The demo's data: TPC-DS-derived tables at scale factor 1, generated once into the cache."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import spark_home

# Facts come in parts, so that the maps that read them are several and of a size.
FACTS = {"store_sales": 8, "catalog_sales": 8, "web_sales": 4, "store_returns": 4, "inventory": 4}
DIMENSIONS = ["date_dim", "item", "store", "customer", "customer_address", "warehouse"]
SCALE = 1


def ensure(tool):
    place = spark_home.cache_root() / "tpcds" / f"sf{SCALE}"
    if place.is_dir():
        return place
    print(f"generating TPC-DS-derived data, scale factor {SCALE}, into {place} ...", flush=True)
    started = time.monotonic()
    place.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".sf{SCALE}.", dir=place.parent))
    try:
        for parts in sorted(set(FACTS.values())):
            generate(
                tool, part, [t for t, p in FACTS.items() if p == parts], ["--parts", str(parts)]
            )
        generate(tool, part, DIMENSIONS, [])
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"generated in {time.monotonic() - started:.0f} s", flush=True)
    return place


def generate(tool, place, tables, options):
    done = subprocess.run(
        [
            tool,
            "tpcds",
            "parquet",
            "--scale-factor",
            str(SCALE),
            "--quiet",
            "--output-dir",
            str(place),
            "--tables",
            ",".join(tables),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"demo: tpcgen-cli: exit code {done.returncode}\n{done.stdout[-2000:]}")
