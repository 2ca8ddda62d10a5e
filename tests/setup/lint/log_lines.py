"""The lines of the log: those that the sources write, and those that a document explains.

A line is a pattern: a tuple of characters and of `ANY`, which stands for what only a run knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import sources

ANY = ""
# Fewer characters than this say nothing: the words come from somewhere else.
MIN_LITERAL = 8
# A call that logs: of SLF4J, of the class that limits warnings (after the topic), or of `log`.
JAVA_CALL = re.compile(r"\b(?P<logger>LOG|logger|log)\.(?P<level>info|warn|error)\(")
RUST_CALL = re.compile(r'\blog::(info|warn|error)!\(\s*"((?:[^"\\]|\\(?:.|\n))*)"')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# A table's first column, or a line of a list.
CELL = re.compile(r"^(?:\||-|  )\s*(`[^|]*?)(?:\s\||$)")


@dataclass(frozen=True)
class Line:
    pattern: tuple[str, ...]
    level: str
    # File and number of the line in it.
    place: str

    @property
    def text(self) -> str:
        return "".join(part or "…" for part in self.pattern)

    @property
    def is_opaque(self) -> bool:
        """The call has no words of its own."""
        return sum(part != ANY for part in self.pattern) < MIN_LITERAL


def pattern_of(text: str, placeholder: str) -> tuple[str, ...]:
    """Of a literal whose placeholders are what that expression matches."""
    found: list[str] = []
    at = 0
    for match in re.finditer(placeholder, text):
        found += [*text[at : match.start()], ANY]
        at = match.end()
    return (*found, *text[at:])


def explains(said: tuple[str, ...], written: tuple[str, ...]) -> bool:
    """Whether a document's line is one that a source writes.

    An `ANY` of the document stands where the source has one, and at its end for the whole rest.
    The document may have an example where the source has `ANY`, and words of the source itself.
    """
    seen, todo = set(), [(0, 0, 0)]
    while todo:
        state = i, j, same = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        is_rest = i == len(said) - 1 and said[i] == ANY
        is_end = is_rest or (i == len(said) and j == len(written))
        if is_end and same >= MIN_LITERAL:
            return True
        if j == len(written):
            continue
        if written[j] == ANY:
            todo.append((i, j + 1, same))
            if i < len(said):
                todo.append((i + 1, j, same))
        elif i < len(said) and said[i] == written[j]:
            todo.append((i + 1, j + 1, min(same + 1, MIN_LITERAL)))
    return False


def documented(text: str) -> list[tuple[int, str]]:
    """The lines of a document's first columns and of its lists' beginnings, with their numbers."""
    found = []
    for number, row in enumerate(text.splitlines(), 1):
        if cell := CELL.match(row):
            found += [(number, span) for span in re.findall(r"`([^`]+)`", cell[1])]
    return found


def of_java(path: Path, root: Path) -> list[Line]:
    text = path.read_text()
    found = []
    for call in JAVA_CALL.finditer(text):
        first, *rest = _arguments(text, call.end())
        words = rest[0] if call["logger"] == "log" and rest else first
        number = text.count("\n", 0, call.start()) + 1
        place = f"{path.relative_to(root)}:{number}"
        found.append(Line(_java_pattern(_resolved(words, path, text)), call["level"], place))
    return found


def _resolved(expression: str, path: Path, text: str) -> str:
    """The expression, or what it calls in another class of the module: `Class.method(...)`."""
    call = re.fullmatch(r"(\w+)\.(\w+)\(.*\)", expression.strip(), re.DOTALL)
    other = _class_file(call[1], path, text) if call else None
    if not call or not other or not other.is_file():
        return expression
    body = re.search(rf"\b{call[2]}\([^;{{]*\{{\s*return (.*?);", other.read_text(), re.DOTALL)
    return body[1] if body else expression


def _class_file(name: str, path: Path, text: str) -> Path | None:
    """Where a class is that the file `path` names: in a package that it imports, or in its own."""
    imported = re.search(rf"^import ([\w.]+)\.{name};", text, re.MULTILINE)
    if not imported:
        return path.with_name(f"{name}.java")
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    if not package:
        return None
    sources = path.parents[len(package[1].split("."))]
    return sources / imported[1].replace(".", "/") / f"{name}.java"


def _java_pattern(expression: str) -> tuple[str, ...]:
    found: list[str] = []
    at = 0
    for literal in LITERAL.finditer(expression):
        if re.search(r"\w", expression[at : literal.start()]):
            found.append(ANY)
        found += pattern_of(_unescaped(literal[1]), r"\{\}")
        at = literal.end()
    if re.search(r"\w", expression[at:]):
        found.append(ANY)
    return tuple(found)


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of a call whose parenthesis opens before `start`."""
    found, depth, begin, at = [], 0, start, start
    while True:
        if text[at] == '"':
            at = LITERAL.match(text, at).end()
            continue
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and text[at] == ","):
            found.append(text[begin:at])
            begin = at + 1
        if depth < 0:
            return found
        at += 1


def of_rust(crate: Path, root: Path) -> list[Line]:
    found = []
    for path, (_, _, code) in sources.crate(crate).items():
        for call in RUST_CALL.finditer(code):
            words = _unescaped(re.sub(r"\\\n\s*", "", call[2]))
            words = words.replace("{{", "\0").replace("}}", "\1")
            pattern = pattern_of(words, r"\{[^{}]*\}")
            pattern = tuple({"\0": "{", "\1": "}"}.get(part, part) for part in pattern)
            number = sources.line_of(code, call.start())
            found.append(Line(pattern, call[1], f"{path.relative_to(root)}:{number}"))
    return found


def _unescaped(literal: str) -> str:
    return literal.replace('\\"', '"').replace("\\\\", "\\")


def written(root: Path) -> list[Line]:
    """All lines at INFO and above that the product writes."""
    found = []
    for crate in sorted(path.parent for path in root.glob("native/*/Cargo.toml")):
        found += of_rust(crate, root)
    for module in ("jvm", "shuffle-plugin"):
        for path in sorted((root / module / "src" / "main").glob("**/*.java")):
            found += of_java(path, root)
    return found


def problems(lines: list[Line], document: str, opaque: dict[str, str]) -> list[str]:
    """What the document has wrong. `opaque`: files with calls without words, and why."""
    explained = [(number, text, pattern_of(text, "…")) for number, text in documented(document)]
    found = []
    for number, text, pattern in explained:
        if not any(explains(pattern, line.pattern) for line in lines if not line.is_opaque):
            found.append(f"line {number}: no source writes `{text}`")
    for line in lines:
        if line.level == "info":
            continue
        if line.is_opaque:
            if line.place.rsplit(":", 1)[0] not in opaque:
                found.append(f"{line.place}: a line without words of its own")
        elif not any(explains(pattern, line.pattern) for _, _, pattern in explained):
            found.append(f"{line.place}: `{line.text}` is not in the document")
    return found
