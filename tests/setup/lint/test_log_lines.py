"""Whether check-log-lines finds the lines of the sources, and what a document has wrong."""

from __future__ import annotations

import pytest

from .log_lines import explains, of_java, of_rust, pattern_of, problems

RUST = """
fn f() {
    log::warn!("cannot read {}: {error}", path.display());
    log::error!(
        "a thread that reads \\
         panicked ({detail:?}); {{so}}"
    );
    log::debug!("not of interest");
}
#[cfg(test)]
mod tests {
    fn g() { log::warn!("only in a test"); }
}
"""
JAVA = """
class A {
  void f() {
    LOG.warn("Faro: block {} of {} is corrupt ({}) and "
        + "is fetched again", a(b, "c"), d);
    log.warn(peer + " topic", "Faro: " + count + " blocks " + (x ? "" : "y"));
    LOG.error(Other.text(settings));
    LOG.debug("not of interest");
  }
}
"""
OTHER = 'class Other { static String text(List<String> of) { return "Faro is off: " + of; } }'


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "a.rs").write_text(RUST)
    (tmp_path / "A.java").write_text(JAVA)
    (tmp_path / "Other.java").write_text(OTHER)
    return [*of_rust(tmp_path / "a.rs", tmp_path), *of_java(tmp_path / "A.java", tmp_path)]


def test_the_lines_of_the_sources(lines):
    assert [(line.level, line.text) for line in lines] == [
        ("warn", "cannot read …: …"),
        ("error", "a thread that reads panicked (…); {so}"),
        ("warn", "Faro: block … of … is corrupt (…) and is fetched again"),
        ("warn", "Faro: … blocks …y"),
        ("error", "Faro is off: …"),
    ]
    assert [line.place for line in lines][:3] == ["a.rs:3", "a.rs:4", "A.java:4"]


def test_words_of_a_class_of_another_package(tmp_path):
    for package, text in [
        ("a", "import a.b.Other;\nclass A { void f() { LOG.warn(Other.text(x)); } }"),
        ("a/b", OTHER),
    ]:
        (tmp_path / package).mkdir()
        name = "A.java" if package == "a" else "Other.java"
        dotted = package.replace("/", ".")
        (tmp_path / package / name).write_text(f"package {dotted};\n{text}\n")
    assert [line.text for line in of_java(tmp_path / "a/A.java", tmp_path)] == ["Faro is off: …"]


@pytest.mark.parametrize(
    ("said", "written", "is_one"),
    [
        ("cannot read …: …", "cannot read {}: {}", True),
        ("cannot read …", "cannot read {}: {}", True),
        ("cannot read /a/b: …", "cannot read {}: {}", True),
        ("cannot read", "cannot read {}: {}", False),
        ("… is busy after 10 s", "{} is busy after {} s", True),
        ("… is busy …", "{} is busy after {} s", True),
        ("… busy after 10 s", "{} is busy after {} s", False),
        ("something else: …", "{}: {}", False),
        ("cannot … files", "cannot read files", False),
    ],
)
def test_a_documents_line_is_one_of_the_sources(said, written, is_one):
    assert explains(pattern_of(said, "…"), pattern_of(written, r"\{\}")) == is_one


def test_what_is_wrong_is_named(lines):
    document = "| Line | Cause |\n|---|---|\n| `cannot read …`, `gone: …` | `not` a line |\n"
    document += "- `a thread that reads panicked (…); {so}`,\n  `Faro: block …`\n"
    found = problems(lines, document, {})
    assert found == [
        "line 3: no source writes `gone: …`",
        "A.java:6: `Faro: … blocks …y` is not in the document",
        "A.java:7: `Faro is off: …` is not in the document",
    ]
