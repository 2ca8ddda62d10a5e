"""Reads Rust sources as far as the checks need it: the modules that a crate declares, the paths
that its production code names, the macros it defines and calls, the types it declares, and the
parameters of its functions. This is no parser: it looks at the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .rust_tokens import CLOSING, OPENING, Token, end_of_group, tokens, without_tests

# First part of a path that does not begin in this crate's tree of modules.
ELSEWHERE = "::"
ROOTS = ("crate", "super", "self")
TYPES = ("struct", "enum", "union", "trait", "type")


@dataclass(frozen=True)
class Reference:
    """A path such as `crate::net::Outbox`, absolute in its crate: ("net", "Outbox")."""

    path: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    # The identifiers in its generic parameters and in its parameter list.
    names: frozenset[str]


@dataclass
class Module:
    """A module of production code with what its own text names; inline modules are of their own."""

    path: tuple[str, ...]
    file: Path
    children: list[str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    # name that a `use` brings into this module -> what it stands for, unresolved
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    macros_defined: set[str] = field(default_factory=set)
    macros_called: dict[str, int] = field(default_factory=dict)
    # The name and line of each type, trait and alias; those that belong to a trait are left out.
    types: list[tuple[str, int]] = field(default_factory=list)


def read_crate(source: Path) -> list[Module]:
    """The modules of a crate, beginning with its roots (lib.rs, main.rs), as far as production code
    declares them."""
    found: list[Module] = []
    for name in ("lib.rs", "main.rs"):
        if (source / name).is_file():
            _read_file(source / name, (), source, found)
    if not found:
        raise FileNotFoundError(f"{source} has neither lib.rs nor main.rs")
    return found


def read_binaries(source: Path) -> list[Module]:
    """The modules of the crate's further binaries, in `bin`."""
    found: list[Module] = []
    for file in sorted((source / "bin").glob("*.rs")):
        _read_file(file, (), source / "bin", found)
    return found


def _read_file(file: Path, path: tuple[str, ...], place: Path, found: list[Module]) -> None:
    """`place` is the folder in which the module's children are looked for."""
    code = without_tests(tokens(file.read_text()))
    _read_module(Module(path, file), code, place, found)


def _read_module(module: Module, code: list[Token], place: Path, found: list[Module]) -> None:
    found.append(module)
    # Children first: a `use` may begin with the name of one that is declared after it.
    rest: list[Token] = []
    files: list[tuple[str, Path]] = []
    inline: list[tuple[str, list[Token]]] = []
    at, override = 0, None
    while at < len(code):
        words = [token.text for token in code[at : at + 5]]
        if words[:4] == ["#", "[", "path", "="]:
            override = words[4].strip('"')
        if words[:1] == ["mod"] and len(words) > 2 and words[2] in (";", "{"):
            name = words[1]
            if name not in module.children:
                module.children.append(name)
            if words[2] == ";":
                files.append((name, _file_of(name, override, module, place)))
                at += 3
            else:
                end = end_of_group(code, at + 2)
                inline.append((name, code[at + 3 : end - 1]))
                at = end
            override = None
            continue
        rest.append(code[at])
        at += 1
    _read_text(module, rest)
    seen = {other.file for other in found}
    for name, file in files:
        if file not in seen:
            folder = file.parent if file.name == "mod.rs" else file.parent / name
            _read_file(file, (*module.path, name), folder, found)
    for name, inner in inline:
        _read_module(Module((*module.path, name), module.file), inner, place / name, found)


def _file_of(name: str, override: str | None, module: Module, place: Path) -> Path:
    if override:
        return module.file.parent / override
    flat = place / f"{name}.rs"
    return flat if flat.is_file() else place / name / "mod.rs"


def _read_text(module: Module, code: list[Token]) -> None:
    at, depth = 0, 0
    while at < len(code):
        if code[at].kind == "mark":
            depth += (code[at].text in OPENING) - (code[at].text in CLOSING)
        word = code[at].text if code[at].kind == "word" else ""
        before = code[at - 1].text if at else ""
        after = code[at + 1].text if at + 1 < len(code) else ""
        if word == "use" and after != "<":
            end = next((i for i in range(at, len(code)) if code[i].text == ";"), len(code))
            _read_use(module, code[at + 1 : end], ())
            at = end
        elif word == "fn" and at + 1 < len(code) and code[at + 1].kind == "word":
            # Its body and types are looked at in turn: `at` goes on token by token.
            module.functions.append(_function(code, at))
        elif word in TYPES and _is_name(code, at + 1):
            # Within braces a `type` is of a trait.
            if word != "type" or depth == 0:
                module.types.append((after, code[at].line))
            at += 1
        elif word == "macro_rules" and after == "!":
            module.macros_defined.add(code[at + 2].text)
            at += 2
        elif word in ROOTS and after == "::" and before not in ("::", "in"):
            end = at
            while (
                end + 2 < len(code) and code[end + 1].text == "::" and code[end + 2].kind == "word"
            ):
                end += 2
            path = tuple(token.text for token in code[at : end + 1 : 2])
            module.references.append(Reference(absolute(module, path), code[at].line))
            at = end
        elif word and after == "!" and before != "::":
            module.macros_called.setdefault(word, code[at].line)
        at += 1


def _is_name(code: list[Token], at: int) -> bool:
    return at < len(code) and code[at].kind == "word"


def _read_use(module: Module, code: list[Token], before: tuple[str, ...]) -> None:
    """One tree of a `use`, without the words `use` and the semicolon."""
    path, at = before, 0
    while at < len(code):
        text = code[at].text
        if text == "{":
            for part in _parts(code[at + 1 : end_of_group(code, at) - 1]):
                _read_use(module, part, path)
            return
        if text == "as":
            break
        if text != "::" and not (text == "self" and path):
            path = (*path, text)
        at += 1
    if not path:
        return
    name = code[at + 1].text if at + 1 < len(code) else path[-1]
    if path[0] in ROOTS or path[0] in module.children:
        path = absolute(module, path)
        module.references.append(Reference(path, code[0].line))
    else:
        # Of another crate, or a name that an import of this module brought in.
        path = (ELSEWHERE, *path)
    module.imports[name] = path


def _parts(code: list[Token]) -> list[list[Token]]:
    """What commas separate, not counting those within brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in code:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def absolute(module: Module, path: tuple[str, ...]) -> tuple[str, ...]:
    """The path from the crate's root; `path` begins with a root word or a child's name."""
    place, rest = module.path, path
    if rest[0] == "crate":
        return rest[1:]
    if rest[0] == "self":
        rest = rest[1:]
    while rest and rest[0] == "super":
        place, rest = place[:-1], rest[1:]
    return (*place, *rest)


def _function(code: list[Token], at: int) -> Function:
    """The function whose word `fn` is at `at`."""
    opening = at + 2
    if code[opening].text == "<":
        depth = 0
        while True:
            depth += (code[opening].text == "<") - (code[opening].text == ">")
            opening += 1
            if depth == 0:
                break
    end = end_of_group(code, opening)
    names = frozenset(token.text for token in code[at + 2 : end] if token.kind == "word")
    return Function(code[at + 1].text, code[at].line, names)
