"""Splits Rust into tokens and drops what only a test build has (`#[cfg(test)]`, `#[test]`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*)
  | (?P<comment>/\*)
  | (?P<string>[bc]?"(?:[^"\\]|\\.)*")
  | (?P<raw>[bc]?r(?P<hashes>\#*)"(?:.|\n)*?"(?P=hashes))
  | (?P<char>b?'(?:[^'\\]|\\.[^']*)')
  | (?P<lifetime>'\w+)
  | (?P<word>(?:r\#)?[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<mark>::|->|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPENING, CLOSING = "([{", ")]}"
# An item that begins with one of these ends with its braces or a semicolon.
ITEMS = {"fn", "mod", "impl", "struct", "enum", "union", "trait", "unsafe", "async", "extern"}
# A statement or item that ends with a semicolon even after braces.
UNTIL_SEMICOLON = {"use", "let", "const", "static", "type"}


@dataclass(frozen=True)
class Token:
    text: str
    line: int
    # "word", "string", "mark", ...
    kind: str


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match, f"no token at {text[at : at + 20]!r}"
        kind = str(match.lastgroup)
        end = match.end()
        if match["comment"]:
            kind, end = "skip", _end_of_comment(text, at)
        elif match["raw"]:
            kind = "string"
        if kind != "skip":
            found.append(Token(text[at:end], line, kind))
        line += text.count("\n", at, end)
        at = end
    return found


def _end_of_comment(text: str, start: int) -> int:
    """The end of a block comment, which may contain others."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def end_of_group(code: list[Token], at: int) -> int:
    """The index after the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(code)):
        if code[index].kind == "mark":
            depth += (code[index].text in OPENING) - (code[index].text in CLOSING)
        if depth == 0:
            return index + 1
    return len(code)


def needs_test(words: list[str]) -> bool:
    """Whether a `cfg` predicate, as its tokens, holds only in a test build."""
    if not words:
        return False
    if words[0] in ("all", "any") and len(words) > 1:
        parts, depth = [[]], 0
        for word in words[2:-1]:
            depth += (word == "(") - (word == ")")
            if word == "," and depth == 0:
                parts.append([])
            else:
                parts[-1].append(word)
        needed = [needs_test(part) for part in parts if part]
        return any(needed) if words[0] == "all" else all(needed)
    return words == ["test"]


def _is_for_tests(attribute: list[Token]) -> bool:
    """`attribute` are the tokens between the square brackets."""
    words = [token.text for token in attribute]
    return words == ["test"] or (words[:2] == ["cfg", "("] and needs_test(words[2:-1]))


def _end_of_item(code: list[Token], at: int) -> int:
    """The index after the item, field, match arm or statement that begins at `at`."""
    while at < len(code) and code[at].text == "#":
        at = end_of_group(code, at + 1)
    if at < len(code) and code[at].text == "pub":
        at += 1
        if code[at].text == "(":
            at = end_of_group(code, at)
    first = code[at].text if at < len(code) else ""
    while at < len(code):
        text = code[at].text if code[at].kind == "mark" else ""
        if text and text in CLOSING:
            return at
        if text == ";" or (text == "," and first not in ITEMS):
            return at + 1
        if text and text in OPENING:
            at = end_of_group(code, at)
            if text == "{" and first not in UNTIL_SEMICOLON:
                return at
            continue
        at += 1
    return at


def without_tests(code: list[Token]) -> list[Token]:
    kept: list[Token] = []
    at = 0
    while at < len(code):
        if code[at].text == "#" and at + 1 < len(code):
            inner = code[at + 1].text == "!" and code[at + 2].text == "["
            opening = at + (2 if inner else 1)
            if code[opening].text == "[":
                end = end_of_group(code, opening)
                if _is_for_tests(code[opening + 1 : end - 1]):
                    if inner:
                        return kept
                    at = _end_of_item(code, end)
                    continue
                # `#[path = "..."]` is kept for the module that follows.
                kept += code[at:end]
                at = end
                continue
        kept.append(code[at])
        at += 1
    return kept
