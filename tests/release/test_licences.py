"""THIRD-PARTY.txt in the jar of `make jar` and beside the command: each crate of the bill of
materials that is linked in has a line and a text."""

import json
import re
import zipfile

import licences
import pytest
import sbom

JAR = sbom.ROOT / "dist" / "faro-spark.jar"
LINE = re.compile(r"^(\S+) (\S+): (.+) \[([\d, ]+)\]$", re.M)
RULE = re.compile(rf"^={{{licences.WIDTH}}}$", re.M)
# What a text of each licence says.
WORDS = {
    "MIT": "permission is hereby granted, free of charge",
    "Apache-2.0": "apache license",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "BSD-2-Clause": "redistribution and use in source and binary forms",
    "ISC": "permission to use, copy, modify, and",
    "Zlib": "'as-is', without any express or implied",
}


def of_jar():
    with zipfile.ZipFile(JAR) as jar:
        return jar.read(sbom.ENTRY).decode(), jar.read(licences.ENTRY).decode()


def of_command():
    folder = JAR.parent
    return (folder / "faro.cdx.json").read_text(), (folder / licences.BESIDE).read_text()


@pytest.fixture(scope="module", params=[of_jar, of_command])
def pair(request):
    if not JAR.exists():
        pytest.fail(f"{JAR} does not exist: make jar")
    return request.param()


@pytest.fixture(scope="module")
def linked(pair):
    """The components that are linked in and not Faro's own: `name version` and licence."""
    parts = [part for part in json.loads(pair[0])["components"] if part.get("scope") == "required"]
    return {
        f"{part['name']} {part['version']}": part["licenses"][0]["expression"]
        for part in parts
        if not part["name"].startswith("faro-")
    }


@pytest.fixture(scope="module")
def texts(pair):
    """The texts, by their numbers, without the lines that say whose they are."""
    found = {}
    for piece in RULE.split(pair[1])[1:]:
        number, text = re.match(r"\s*\[(\d+)\] .*?\n\n(.*)", piece, re.S).groups()
        found[int(number)] = text
    return found


@pytest.fixture(scope="module")
def lines(pair):
    """Licence and numbers of texts, by `name version`."""
    return {
        f"{name} {version}": (licence, [int(number) for number in numbers.split(", ")])
        for name, version, licence, numbers in LINE.findall(RULE.split(pair[1])[0])
    }


def test_what_is_linked_in_has_a_line_with_its_licence(linked, lines):
    assert linked
    assert {name: lines[name][0] for name in linked} == linked
    others = {name for name in lines if not lines[name][0].endswith("; in rust-std")}
    assert others == set(linked)


def test_every_line_has_texts(lines, texts):
    for name, (_, numbers) in lines.items():
        assert all(texts[number].strip() for number in numbers), name
    assert set(texts) == {number for _, numbers in lines.values() for number in numbers}


def test_a_text_of_its_licence_is_among_them(linked, lines, texts):
    for name, licence in linked.items():
        own = " ".join("".join(texts[number] for number in lines[name][1]).lower().split())
        choices = [choice.split(" AND ") for choice in licence.split(" OR ")]
        words = [[WORDS.get(one.split(" WITH ")[0], one) for one in all_of] for all_of in choices]
        assert any(all(one in own for one in all_of) for all_of in words), name


def test_no_licence_that_is_not_taken(texts):
    assert not any("GNU GENERAL PUBLIC LICENSE" in text[:500] for text in texts.values())


def test_a_package_without_a_text_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(licences, "package_of", lambda _: tmp_path)
    with pytest.raises(ValueError, match="has no licence text"):
        licences.of_crates(sbom.CRATE, ["x86_64"])
