"""Stores a section of results where the documents find it."""

import re


def put(path, name, text):
    """A section of docs/benchmarks.md is a file beside that page: benchmarks/NAME.txt.
    Any other page has it between two markers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name == "benchmarks.md":
        stored = path.parent / "benchmarks" / f"{name}.txt"
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(f"{text}\n")
        return
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    block = f"{begin}\n{text}\n{end}"
    before = path.read_text() if path.exists() else ""
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if pattern.search(before):
        after = pattern.sub(lambda _: block, before)
    else:
        after = before.rstrip("\n") + "\n\n" + block + "\n"
    path.write_text(after)
