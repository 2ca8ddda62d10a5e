"""Whether the plots read the tables as the page shows them."""

from __future__ import annotations

import pytest

from .tables import Measured, after, measured

PAGE = """
## One
| a | b |
| --- | ---: |
| x | 1 |

## Two
words

| block | MB/s |
| ---: | ---: |
| 1 KB | 1,062 (1,019–1,076) |
| 4 KB | – |

after
| c |
"""


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1,062 (1,019–1,076)", Measured(1062, 1019, 1076)),
        ("0.063 (0.062–0.064)", Measured(0.063, 0.062, 0.064)),
        ("7.5", Measured(7.5, 7.5, 7.5)),
        ("–", None),
        ("+38 %", None),
    ],
)
def test_a_cell_is_a_median_with_its_spread(cell, expected):
    assert measured(cell) == expected


def test_the_first_table_after_a_text_is_read():
    assert after(PAGE, "## Two") == [
        {"block": "1 KB", "MB/s": "1,062 (1,019–1,076)"},
        {"block": "4 KB", "MB/s": "–"},
    ]


def test_a_text_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="has no 'Three'"):
        after(PAGE, "Three")
