"""The graph of a Java module's packages: which of them uses which, and where."""

from __future__ import annotations

import re
from pathlib import Path

from .module_graph import Graph, Place

# Comments and literals, longest first; a text block is Java 15's and does not occur.
SILENT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
# The last lower-case part before a class: io.faro.spark.read.Parts.X is of io.faro.spark.read.
NAME = re.compile(r"(?<![\w.])((?:[a-z]\w*\.)+)[A-Z]\w*")


class Module:
    """The classes of `folder`/src/main/java, by package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        sources = folder / "src" / "main" / "java"
        self.files = {}
        for path in sorted(sources.rglob("*.java")):
            code = SILENT.sub(_blank, path.read_text())
            declared = PACKAGE.search(code)
            if declared:
                self.files[path] = (declared[1], code)

    def top(self) -> str:
        """The node of the package that all others are below."""
        return min((package for package, _ in self.files.values()), key=len).rpartition(".")[2]

    def graph(self) -> Graph:
        """A node is a package's name below the one above all others."""
        packages = {package for package, _ in self.files.values()}
        short = _shortened(packages)
        graph = Graph({short[package]: {} for package in sorted(packages)})
        for path, (package, code) in self.files.items():
            for match in NAME.finditer(code):
                used = match[1].rstrip(".")
                if used in packages and used != package:
                    line = code.count("\n", 0, match.start()) + 1
                    graph.add(short[package], short[used], Place(path, line))
        return graph


def _blank(match: re.Match[str]) -> str:
    """The same number of lines, so that places stay right."""
    return " " + "\n" * match[0].count("\n")


def _shortened(packages: set[str]) -> dict[str, str]:
    """`read` for io.faro.spark.read, where io.faro.spark is above all; that one is `spark`."""
    top = min(packages, key=len)
    return {
        package: top.rpartition(".")[2] if package == top else package.removeprefix(f"{top}.")
        for package in packages
    }
