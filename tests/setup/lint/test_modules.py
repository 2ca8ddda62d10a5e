"""Whether check-modules reads Rust as the compiler does, as far as it looks at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .module_graph import ROOT, Crate, mermaid
from .rust_tokens import needs_test, tokens, without_tests

CHECK = Path(__file__).resolve().parents[1] / "check-modules"


@pytest.fixture
def crate(tmp_path):
    """A function that makes a crate of files, by their path under src/."""

    def make(files: dict[str, str]) -> Crate:
        for name, text in files.items():
            path = tmp_path / "sample" / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Crate(tmp_path / "sample")

    return make


def edges(graph) -> set[tuple[str, str]]:
    return {(user, used) for user, uses in graph.edges.items() for used in uses}


def kept(text: str) -> str:
    return " ".join(token.text for token in without_tests(tokens(text)))


def test_comments_strings_and_lifetimes_hide_no_code():
    text = "a /* b /* c */ d */ \"e // \\\" f\" r#\"g \" h\"# 'i' '\\'' &'j k // l\nm"
    assert [(t.text, t.line) for t in tokens(text) if t.kind == "word"] == [
        ("a", 1), ("k", 1), ("m", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("test", True),
        ("all ( test , not ( loom ) )", True),
        ("any ( test , loom )", False),
        ("any ( test , all ( test , loom ) )", True),
        ("not ( test )", False),
        ('feature = "faults"', False),
    ],
)
def test_a_predicate_that_only_a_test_build_fulfils(predicate, expected):
    assert needs_test(predicate.split()) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#[cfg(test)] mod tests { use crate::a; } b", "b"),
        ("#[cfg(test)] mod tests; b", "b"),
        ("#[cfg(test)] #[allow(x)] use crate::{a, b}; c", "c"),
        ("#[test] fn works<A, B>(x: [u8; 4]) -> A { a; } b", "b"),
        ("struct A { #[cfg(test)] pub b: crate::B<C>, d: D }", "struct A { d : D }"),
        ("struct A { d: D, #[cfg(test)] pub b: crate::B }", "struct A { d : D , }"),
        ("match a { #[cfg(test)] B => { c }, D => e }", "match a { , D => e }"),
        ("#[cfg(test)] const A: B = B { c }; d", "d"),
        ("#[cfg(not(test))] mod a; b", "# [ cfg ( not ( test ) ) ] mod a ; b"),
        ("#![cfg(test)] use crate::a;", ""),
    ],
)
def test_what_a_test_build_adds_does_not_count(text, expected):
    assert kept(text) == expected


def test_every_form_of_a_path_is_an_edge(crate):
    made = crate(
        {
            "lib.rs": "mod a; mod b; mod c; mod d; mod e; mod f; mod g;",
            "a.rs": "use crate::{b::{self, B}, c::C as Other};\nfn f() { super::d::run() }",
            "b.rs": "fn f(x: &dyn crate::e::E) {}",
            "c/mod.rs": "mod inner;",
            "c/inner.rs": "use super::super::f::F; use super::C;",
            "d.rs": "mod inline { use super::super::g::*; pub(in crate::a) fn f() {} }",
            "e.rs": "// use crate::a;\n#[cfg(test)] mod tests { use crate::a::A; }",
            "f.rs": "",
            "g.rs": "",
        }
    )
    assert edges(made.graph()) == {
        ("a", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("c", "f"), ("d", "g"),
    }  # fmt: skip
    assert str(made.graph().edges["a"]["d"]) == f"{made.folder}/src/a.rs:2"


def test_what_only_looks_like_a_use_is_none(crate):
    made = crate(
        {
            "lib.rs": "mod a; mod b;",
            "a.rs": "fn f<'x>() -> impl Sized + use<'x> { crate::b::run() }\n"
            "macro_rules! m { ($p:path) => { use $p } }",
            "b.rs": "pub fn run() {}",
        }
    )
    assert edges(made.graph()) == {("a", "b")}


def test_an_item_of_the_root_is_the_root_and_a_re_export_is_its_module(crate):
    made = crate(
        {
            "lib.rs": "mod a; mod b; pub use b::B; use other::C; use b::deep as short;\n"
            "pub struct Own;",
            "a.rs": "use crate::B; use crate::C; use crate::short::Thing;",
            "b.rs": "use crate::Own;",
        }
    )
    assert edges(made.graph()) == {("a", "b"), ("b", ROOT)}


def test_a_macro_is_an_item_of_the_module_that_defines_it(crate):
    made = crate(
        {
            "lib.rs": "#[macro_use] mod a; mod b;",
            "a.rs": "macro_rules! coded { () => { crate::Own } }",
            "b.rs": "coded! {}",
        }
    )
    assert edges(made.graph()) == {("b", "a"), ("a", ROOT)}


def test_of_a_cycle_the_shortest_way_round_is_named(crate):
    made = crate(
        {
            "lib.rs": "mod a; mod b; mod c; mod d;",
            "a.rs": "use crate::b;",
            "b.rs": "use crate::c;",
            "c.rs": "use crate::{a, b};",
            "d.rs": "use crate::a;",
        }
    )
    assert made.graph().cycles() == [["b", "c"]]
    assert made.graph().group_of("b") == {"a", "b", "c"}


def test_a_folder_has_a_graph_of_its_own(crate):
    made = crate(
        {
            "lib.rs": "mod a;",
            "a/mod.rs": "mod x; mod y; pub struct Shared;",
            "a/x.rs": "use super::{y::Y, Shared};",
            "a/y.rs": "use crate::a::x::X;",
        }
    )
    assert made.graph().cycles() == []
    assert made.folders() == [("a",)]
    assert made.graph(("a",)).cycles() == [["x", "y"]]


def test_the_picture_leaves_out_what_longer_ways_imply(crate):
    made = crate(
        {
            "lib.rs": "mod a; mod b; mod c; mod d;",
            "a.rs": "use crate::{b, c};",
            "b.rs": "use crate::c;",
            "c.rs": "",
            "d.rs": "",
        }
    )
    picture = mermaid(made.graph())
    assert picture.splitlines()[2:-1] == ["    a --> b", "    b --> c", "    d"]


# The program itself, on folders that need not be in this repository.


def run(*words):
    done = subprocess.run(
        [sys.executable, CHECK, *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_function_has_one_of_the_types_that_stand_apart(crate, tmp_path):
    crate(
        {
            "lib.rs": "mod a;",
            "a.rs": "fn good(f: &mut dyn Fabric) { Outbox::new() }\n"
            "fn bad<F: Fabric>(f: &mut F,\n o: &mut Outbox) {}\n"
            "fn both(r: &Reader, c: &Connections) {}\n",
        }
    )
    code, output = run("--apart", "Fabric,Outbox,Connections|Reader", tmp_path / "sample")
    assert code == 1
    assert "1 functions" in output
    assert "a.rs:2: bad takes Fabric and Outbox" in output


def test_a_document_has_the_graph_of_the_sources(crate, tmp_path):
    crate({"lib.rs": "mod a; mod b;", "a.rs": "use crate::b;", "b.rs": ""})
    document = tmp_path / "DOC.md"
    document.write_text("before\n<!-- module graph: sample -->\n<!-- /module graph -->\nafter\n")
    sample = tmp_path / "sample"
    code, output = run("--check-doc", document, sample)
    assert code == 1
    assert "--write-doc" in output
    assert run("--write-doc", document, sample) == (0, "")
    assert run("--check-doc", document, sample) == (0, "")
    text = document.read_text()
    assert text.startswith("before\n<!-- module graph: sample -->\n```mermaid\ngraph TD\n")
    assert text.endswith("    a --> b\n```\n<!-- /module graph -->\nafter\n")


def test_a_document_without_the_markers_is_named(crate, tmp_path):
    crate({"lib.rs": ""})
    document = tmp_path / "DOC.md"
    document.write_text("no graph\n")
    code, output = run("--check-doc", document, tmp_path / "sample")
    assert code == 1
    assert "no line `<!-- module graph: sample -->`" in output


def test_a_folder_without_a_crate_is_an_error(tmp_path):
    code, output = run(tmp_path)
    assert code == 2
    assert "neither lib.rs nor main.rs" in output
