"""What a kernel says of itself decides whether its guests get a way around its defect; on a kernel
without the defect none is needed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import kernels
import pytest
from guests import SKIPPED, no_guest

HERE = Path(__file__).resolve().parent
UML, FREES, PATCHED = "CONFIG_UML=y", kernels.FREES_TABLES, kernels.IS_PATCHED
# A round drops 150 MB. On 7.2.12 without the patch each of six rounds found pages that could
# still be read, in a guest of one processor.
ROUNDS = 4


def kernel_that_says(place: Path, script: str) -> str:
    file = place / "linux"
    file.write_text(f"#!/bin/sh\n[ $# = 1 ] && [ $1 = --showconfig ] || exit 9\n{script}\n")
    file.chmod(0o755)
    return str(file)


class TestRecognition:
    @pytest.mark.parametrize(
        ("lines", "defect"),
        [
            ([UML], False),
            ([UML, "# CONFIG_PT_RECLAIM is not set"], False),
            ([UML, FREES], True),
            ([UML, FREES, PATCHED], False),
        ],
        ids=["old", "off", "frees", "patched"],
    )
    def test_the_configuration_decides(self, tmp_path, lines, defect):
        kernel = kernel_that_says(tmp_path, "\n".join(f"echo '{line}'" for line in lines))
        assert kernels.loses_unmappings(kernel) == defect
        assert kernels.environment(kernel) == (kernels.MALLOC if defect else {})

    @pytest.mark.parametrize("script", ["echo CONFIG_X86=y", f"echo {UML}; exit 3"])
    def test_what_is_no_kernel_is_an_error(self, tmp_path, script):
        kernel = kernel_that_says(tmp_path, script)
        with pytest.raises(kernels.NoGuest, match=re.escape(f"'{kernel} --showconfig' ended with")):
            kernels.environment(kernel)

    def test_what_cannot_be_run_is_an_error(self, tmp_path):
        with pytest.raises(kernels.NoGuest, match="--showconfig' failed: "):
            kernels.environment(str(tmp_path))


class TestPatch:
    def test_it_sets_the_option_that_is_looked_for(self):
        patch = (HERE / "unmappings.patch").read_text()
        name = PATCHED.removeprefix("CONFIG_").removesuffix("=y")
        assert f"+config {name}\n+\tdef_bool y\n" in patch


@pytest.fixture(scope="module")
def kernel():
    """The kernel of this machine's guests."""
    found = subprocess.run(
        [HERE / "build-kernel"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == SKIPPED:
        no_guest(f"softroce: skipped: {found.stderr}")
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


class TestGuest:
    def test_what_a_process_drops_is_unmapped(self, kernel, tmp_path):
        """The way around is for malloc only, so this program meets the defect where it is."""
        if kernels.loses_unmappings(kernel):
            pytest.skip(f"{kernel} has {FREES} and not {PATCHED}: commands get {kernels.MALLOC}")
        program = tmp_path / "unmappings"
        source = HERE / "unmappings.c"
        subprocess.run(["cc", "-O1", "-pthread", source, "-o", program], check=True)
        done = subprocess.run(
            [HERE / "run", "--hosts", "1", "--cpus", "1", "--", program, str(ROUNDS)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={k: v for k, v in os.environ.items() if k not in kernels.MALLOC},
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, f"{ROUNDS} rounds\n"), done.stderr
