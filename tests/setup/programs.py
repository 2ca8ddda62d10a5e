"""Loads programs of the tests, whose names have no `.py`, as modules."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parents[1]


def loaded(name: str) -> ModuleType:
    """The program at this path below `tests`."""
    loader = importlib.machinery.SourceFileLoader(name.replace("/", "_"), str(TESTS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    # Where a dataclass looks for the names of its types.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module
