"""The graph of a crate's modules: which of them uses which, and where."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from .rust_source import ELSEWHERE, Function, Module, read_crate

ROOT = "the crate's root"


@dataclass(frozen=True)
class Place:
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass
class Graph:
    """Module -> the modules that it uses -> the first place where it does."""

    edges: dict[str, dict[str, Place]]

    def add(self, user: str, used: str, place: Place) -> None:
        if user != used:
            self.edges.setdefault(used, {})
            self.edges.setdefault(user, {}).setdefault(used, place)

    def cycles(self) -> list[list[str]]:
        """A shortest cycle out of each set of modules that all reach each other."""
        reach = {module: self._reachable(module) for module in self.edges}
        found, done = [], set()
        for module in sorted(self.edges):
            if module in done or module not in reach[module]:
                continue
            group = {other for other in reach[module] if module in reach[other]}
            done |= group
            found.append(min((self._way_back(one) for one in sorted(group)), key=len))
        return found

    def group_of(self, module: str) -> set[str]:
        """The modules that `module` reaches and that reach it."""
        return {m for m in self._reachable(module) if module in self._reachable(m)}

    def reduced(self) -> list[tuple[str, str]]:
        """The edges that no longer path implies; all of them where there is a cycle."""
        everything = [(a, b) for a in sorted(self.edges) for b in sorted(self.edges[a])]
        if self.cycles():
            return everything
        implied = {(a, c) for a in self.edges for b in self.edges[a] for c in self._reachable(b)}
        return [edge for edge in everything if edge not in implied]

    def _reachable(self, start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(self.edges[start])
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo += self.edges[module]
        return seen

    def _way_back(self, start: str) -> list[str]:
        """The shortest path from a module to itself; its end is left out."""
        todo = deque([[start]])
        seen = set()
        while todo:
            path = todo.popleft()
            for following in sorted(self.edges[path[-1]]):
                if following == start:
                    return path
                if following not in seen:
                    seen.add(following)
                    todo.append([*path, following])
        raise ValueError(f"{start} is in no cycle")


class Crate:
    """A crate's modules; `folder` is where its `src` is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.modules = read_crate(folder / "src")
        self.roots = [module for module in self.modules if not module.path]

    def graph(self, within: tuple[str, ...] = ()) -> Graph:
        """The graph of the modules that are declared in the module `within`, with all that is below
        each of them. Uses of `within` itself are edges to `ROOT` if it is the crate's root, and
        are left out otherwise: a folder's `mod.rs` may hold what its files share."""
        depth = len(within)
        parents = [module for module in self.modules if module.path == within]
        children = {child for module in parents for child in module.children}
        known = {module.path[depth] for module in self._below(within)}
        graph = Graph({child: {} for child in sorted(children & known)})
        macros = self._macros(within)
        for module in self._below(within):
            user = module.path[depth]
            for reference in module.references:
                used = self._target(reference.path, within, parents, children)
                if used and (used != ROOT or not within):
                    graph.add(user, used, Place(module.file, reference.line))
            for name, line in module.macros_called.items():
                if name in macros:
                    graph.add(user, macros[name], Place(module.file, line))
        return graph

    def folders(self) -> list[tuple[str, ...]]:
        """The modules that have child modules, without the crate's root."""
        return sorted({m.path for m in self.modules if m.path and len(m.children) > 1})

    def functions(self) -> list[tuple[Function, Place]]:
        return [(f, Place(m.file, f.line)) for m in self.modules for f in m.functions]

    def _below(self, within: tuple[str, ...]) -> list[Module]:
        depth = len(within)
        return [m for m in self.modules if len(m.path) > depth and m.path[:depth] == within]

    def _macros(self, within: tuple[str, ...]) -> dict[str, str]:
        """Macros by name, as far as one child of `within` alone defines them."""
        owners: dict[str, set[str]] = {}
        for module in self._below(within):
            for name in module.macros_defined:
                owners.setdefault(name, set()).add(module.path[len(within)])
        return {name: next(iter(of)) for name, of in owners.items() if len(of) == 1}

    def _target(
        self,
        path: tuple[str, ...],
        within: tuple[str, ...],
        parents: list[Module],
        children: set[str],
    ) -> str | None:
        """The child of `within` that a path leads to; `ROOT` for an item of `within` itself; None
        for what is elsewhere."""
        depth = len(within)
        seen = set()
        while path[:depth] == within and path not in seen:
            seen.add(path)
            if len(path) == depth:
                return ROOT
            name = path[depth]
            if name in children:
                return name
            imported = next((m.imports[name] for m in parents if name in m.imports), None)
            if imported is None:
                return self._macros(within).get(name, ROOT)
            if imported[0] == ELSEWHERE:
                return None
            # A re-export: the edge goes to the module of the item.
            path = imported
        return None


def mermaid(graph: Graph) -> str:
    """The picture for a document; edges that others imply are left out."""
    edges = graph.reduced()
    alone = sorted(set(graph.edges) - {module for edge in edges for module in edge})
    lines = [f"    {a} --> {b}" for a, b in edges] + [f"    {module}" for module in alone]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


def dot(name: str, graph: Graph) -> str:
    lines = [f'  "{a}" -> "{b}";' for a in sorted(graph.edges) for b in sorted(graph.edges[a])]
    return "\n".join([f'digraph "{name}" {{', *lines, "}"])


def between_markers(document: str, name: str) -> re.Match[str] | None:
    """The text between `<!-- module graph: NAME -->` and `<!-- /module graph -->`."""
    pattern = rf"<!-- module graph: {re.escape(name)} -->\n(.*?)\n?<!-- /module graph -->"
    return re.search(pattern, document, re.DOTALL)


def names_in(document: str) -> list[str]:
    return re.findall(r"<!-- module graph: ([\w-]+) -->", document)
