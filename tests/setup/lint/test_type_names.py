"""Whether check-names finds types that have the name of another one."""

from __future__ import annotations

import pytest

from .type_names import problems

FIRST = """
mod inner;
pub struct Request { kind: Kind }
pub(crate) trait Carrier { type Link; fn carry(&self); }
enum Kind { Request, Reply }
#[cfg(unix)]
struct Handle(i32);
#[cfg(not(unix))]
struct Handle(u64);
#[cfg(test)]
mod tests { struct Bench; }
"""
INNER = """
impl super::Carrier for u8 { type Link = u16; fn carry(&self) { struct Local; } }
type Table<K> = Vec<K>;
"""


@pytest.fixture
def crates(tmp_path):
    def write(second: str, binary: str = ""):
        for name, text in [
            ("first/src/lib.rs", FIRST),
            ("first/src/inner.rs", INNER),
            ("second/src/lib.rs", second),
            ("second/src/bin/tool.rs", binary),
        ]:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return [tmp_path / "first", tmp_path / "second"]

    return write


def test_each_name_once(crates):
    # Variants, types of a trait, tests and the other arm of a `cfg` are not counted.
    second = """
    pub enum Message { Kind, Local }
    impl Iterator for Message { type Item = u8; }
    #[cfg(test)]
    mod tests { struct Bench; struct Request; }
    """
    assert problems(crates(second)) == []


@pytest.mark.parametrize(
    "declaration",
    [
        "pub struct Request;",
        "pub(crate) enum Request { A }",
        "trait Request {}",
        "type Request = u8;",
        "mod inline { pub struct Request { at: u8 } }",
        "macro_rules! made { () => { struct Request; } }",
    ],
)
def test_both_places_are_named(crates, tmp_path, declaration):
    [message] = problems(crates(f"\n{declaration}"))
    assert message.startswith(f"{tmp_path}/first/src/lib.rs:3: type `Request` is also declared in")
    assert f" {tmp_path}/second/src/lib.rs:2;" in message


def test_aliases_and_binaries(crates, tmp_path):
    [message] = problems(crates("", binary="struct Table;"))
    assert message.startswith(f"{tmp_path}/first/src/inner.rs:3: type `Table`")
    assert f"{tmp_path}/second/src/bin/tool.rs:1" in message
