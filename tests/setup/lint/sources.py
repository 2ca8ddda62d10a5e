"""Rust and Java sources as text in which only production code is left, at its place. No kept tool
gives this offline: cargo-modules brings rust-analyzer, and knows no lines of a log."""

from __future__ import annotations

import re
from pathlib import Path

RAW = r'[bc]?r(?P<hashes>#*)"(?:.|\n)*?"(?P=hashes)'
RUST_SILENT = re.compile(
    rf"""//[^\n]*|/\*(?:.|\n)*?\*/|(?P<text>{RAW}|[bc]?"(?:[^"\\]|\\(?:.|\n))*")"""
    r"""|b?'(?:[^'\\\n]|\\[^'\n]+|\\')'"""
)
JAVA_SILENT = re.compile(r"""/\*(?:.|\n)*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
FOR_TESTS = re.compile(r"#(!?)\[(?:cfg\((?:all\()?test\b.*|test)\]")
# An item that begins so ends with its braces or a semicolon; others also with a comma.
ITEM = re.compile(
    r"\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?"
    r"(?:(fn|mod|impl|struct|enum|union|trait|unsafe|async|extern)\b|(use|let|const|static|type)\b)?"
)


def blank(text: str) -> str:
    """As many characters and lines, so that places stay right."""
    return re.sub(r"[^\n]", " ", text)


def java(path: Path) -> str:
    return JAVA_SILENT.sub(lambda match: blank(match[0]), path.read_text())


def rust(path: Path) -> tuple[str, str]:
    """The code, and the code with its literals."""
    whole = path.read_text()
    code = RUST_SILENT.sub(lambda match: blank(match[0]), whole)
    literal = RUST_SILENT.sub(lambda m: m[0] if m["text"] else blank(m[0]), whole)
    at = 0
    while match := FOR_TESTS.search(code, at):
        at = len(code) if match[1] else _end_of_item(code, match.end())
        cut = slice(match.start(), at)
        code, literal = (
            text[: cut.start] + blank(text[cut]) + text[cut.stop :] for text in (code, literal)
        )
    return code, literal


def _end_of_item(code: str, at: int) -> int:
    match = ITEM.match(code, at)
    depth, at = 0, match.end()
    while at < len(code):
        mark = code[at]
        depth += (mark in "([{") - (mark in ")]}")
        if depth < 0:
            return at
        at += 1
        if depth == 0 and (mark == ";" or (mark == "," and not match[1])):
            return at
        if depth == 0 and mark == "}" and not match[2]:
            return at
    return at


def crate(folder: Path) -> dict[Path, tuple[tuple[str, ...], str, str]]:
    """Of each file that production code declares: its module, its code, and that with literals."""
    found: dict = {}
    todo = [(folder / "src" / name, ()) for name in ("lib.rs", "main.rs")]
    while todo:
        file, module = todo.pop()
        if file.is_file() and file not in found:
            found[file] = (module, *rust(file))
            place = file.parent
            if file.stem not in ("lib", "main", "mod"):
                place /= file.stem
            for name in re.findall(r"\bmod\s+(\w+)\s*;", found[file][1]):
                files = (place / f"{name}.rs", place / name / "mod.rs")
                todo += [(one, (*module, name)) for one in files]
    return dict(sorted(found.items()))


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
