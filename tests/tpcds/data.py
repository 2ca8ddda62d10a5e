"""TPC-DS-derived tables in Parquet, each generated into the cache when it is first wanted."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import spark_home

TOOLS = Path(__file__).resolve().parents[1] / "setup" / "tools"
# Asked for in parts, so that the maps that read them are several and of a size. The generator
# splits what it counts a million rows of.
PARTS = {"store_sales": 8, "catalog_sales": 8, "web_sales": 4, "store_returns": 4, "inventory": 4}
ALL = [
    *PARTS,
    *("catalog_returns", "web_returns", "call_center", "catalog_page", "customer"),
    *("customer_address", "customer_demographics", "date_dim", "household_demographics"),
    *("income_band", "item", "promotion", "reason", "ship_mode", "store", "time_dim"),
    *("warehouse", "web_page", "web_site"),
]


def ensure(scale="1", tables=ALL):
    """The folder that has at least these tables, each a file or a folder of files."""
    place = spark_home.cache_root() / "tpcds" / f"sf{scale}"
    missing = [table for table in tables if not _path(place, table).exists()]
    if not missing:
        return place
    print(
        f"generating {len(missing)} TPC-DS-derived tables, scale factor {scale}, into {place} ...",
        flush=True,
    )
    started = time.monotonic()
    place.mkdir(parents=True, exist_ok=True)
    tool = subprocess.run(
        [TOOLS, "tpcgen-cli"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    # Generated beside its final place and renamed, so that a table that exists is complete.
    part = Path(tempfile.mkdtemp(prefix=f".sf{scale}.", dir=place.parent))
    try:
        for parts in sorted({PARTS.get(table, 1) for table in missing}):
            chosen = [table for table in missing if PARTS.get(table, 1) == parts]
            _generate(tool, scale, part, chosen, parts)
        for table in missing:
            _move(_path(part, table), _path(place, table))
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"generated in {time.monotonic() - started:.0f} s", flush=True)
    return place


def _path(place, table):
    return place / table if table in PARTS else place / f"{table}.parquet"


def _move(made, wanted):
    try:
        made.rename(wanted)
    except OSError:
        # Another process was first; its table is as good as this one.
        if not wanted.exists():
            raise


def _generate(tool, scale, place, tables, parts):
    command = [tool, "tpcds", "parquet", "--quiet", "--scale-factor", scale]
    command += ["--output-dir", str(place), "--tables", ",".join(tables)]
    spark_home.run(command + (["--parts", str(parts)] if parts > 1 else []))
