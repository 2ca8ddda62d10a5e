"""Options of tests/yarn, and Faro's jar."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    add = parser.getgroup("faro", "Spark with Faro on YARN").addoption
    add("--jar", type=Path, default=ROOT / "dist" / "faro-spark.jar")
    add("--all", action="store_true", help="all cases; otherwise those of `make test`")


def pytest_configure(config):
    config.addinivalue_line("markers", "short(id): the case with this id is one of `make test`")
    if not config.option.jar.is_file():
        raise pytest.UsageError(
            f"{config.option.jar} is missing: run 'make jar' first, or pass --jar"
        )


@pytest.fixture(scope="session")
def faro_jar(pytestconfig) -> Path:
    return pytestconfig.option.jar.resolve()


def pytest_collection_modifyitems(config, items):
    if config.option.all or config.option.keyword:
        return
    short = [item for item in items if is_short(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in short])
    items[:] = short


def is_short(item):
    mark = item.get_closest_marker("short")
    return mark is not None and item.callspec.id in mark.args
