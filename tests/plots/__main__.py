"""See tests/plots/draw, which starts this with the Python that has matplotlib."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import benchmarks, load, scaling

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/plots/draw", description="Draws the plots again.")
    parser.add_argument("what", nargs="?", choices=["scaling", "load", "benchmarks"], help="(all)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the documents are")
    options = parser.parse_args()
    if options.what in (None, "scaling"):
        folder = options.docs / "design" / "scaling"
        scaling.draw(json.loads((folder / "results.json").read_text()), folder)
    if options.what in (None, "load"):
        folder = options.docs / "design" / "scaling"
        load.draw((folder / "load.txt").read_text(), folder / "load.svg")
    if options.what in (None, "benchmarks"):
        folder = options.docs / "benchmarks"
        stored = [path.read_text() for path in sorted(folder.glob("*.txt"))]
        benchmarks.draw("\n".join(stored), folder)


if __name__ == "__main__":
    main()
