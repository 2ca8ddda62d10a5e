"""Puts results between the markers of docs/benchmarks.md."""

import re

HEAD = "# Benchmarks\n\nEach suite of `tests/bench/run` writes its sections between the markers.\n"


def put(path, name, text):
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    block = f"{begin}\n{text}\n{end}"
    before = path.read_text() if path.exists() else HEAD
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if pattern.search(before):
        after = pattern.sub(lambda _: block, before)
    else:
        after = before.rstrip("\n") + "\n\n" + block + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(after)
