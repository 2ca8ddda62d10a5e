"""`tests/softroce/run` does what its help says: devices, links, limits, exit codes, no traces."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kernels
import pytest
from guests import SKIPPED, no_guest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUN = HERE / "run"
BROKEN, LATE = 125, 124
# perftest and ping-pong servers listen on these; a client before that would fail.
LISTENING = "listening() { until at $1 ss -ltn | grep -q :$2; do :; done; }\n"


def guest(*command, options=(), **more):
    return subprocess.run(
        [RUN, *options, "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=more.pop("stderr", subprocess.PIPE),
        text=more.pop("text", True),
        timeout=more.pop("timeout", 180),
        check=False,
        **more,
    )


@pytest.fixture(scope="session", autouse=True)
def possible():
    """Ends the suite where no guest can run."""
    # The first guest of a machine may wait until its kernel is built.
    probe = guest("true", options=("--hosts", "1"), timeout=None)
    if probe.returncode == SKIPPED:
        no_guest(probe.stderr)


def shell(script, *options, **more):
    return guest("bash", "-c", script, options=options, **more)


class TestCommand:
    """The command is run as if it were run here."""

    def test_streams_directory_environment_and_status_are_the_commands(self):
        words = "a 'b' \"c\" $d *"
        got = shell(
            'echo "$FARO_WORDS"; pwd; test -t 1 || echo plain; echo err >&2; exit 7',
            "--hosts",
            "1",
            env={**os.environ, "FARO_WORDS": words},
            cwd=HERE,
        )
        assert (got.returncode, got.stdout, got.stderr) == (7, f"{words}\n{HERE}\nplain\n", "err\n")

    def test_malloc_keeps_its_arenas_where_the_kernel_needs_it(self):
        """And the caller's own settings count."""
        script = 'echo "$MALLOC_TRIM_THRESHOLD_ $MALLOC_MMAP_THRESHOLD_"'
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
        environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
        got = shell(script, "--hosts", "1", env=environment)
        kernel = subprocess.check_output([HERE / "build-kernel"], text=True).strip()
        trim = kernels.environment(kernel).get("MALLOC_TRIM_THRESHOLD_", "")
        assert got.stdout == f"{trim} 65536\n"

    def test_a_signal_and_a_missing_program_give_the_exit_codes_of_a_shell(self):
        assert shell("kill -9 $$", "--hosts", "1").returncode == 128 + signal.SIGKILL
        assert guest("/nowhere/program", options=("--hosts", "1")).returncode == 127

    def test_output_is_complete_binary_and_in_order(self):
        size = 3_000_000
        data = os.urandom(size)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            got = shell(f"cat {file.name}; sleep 600 &", "--hosts", "1", text=False)
        assert (got.returncode, got.stderr, len(got.stdout)) == (0, b"", size)
        same = got.stdout == data
        assert same, "bytes differ"
        got = shell(
            "for i in {1..100}; do echo $i; echo $i >&2; done",
            "--hosts",
            "1",
            stderr=subprocess.STDOUT,
        )
        assert got.stdout.split() == [str(i) for i in range(1, 101) for _ in "12"]

    def test_a_late_command_is_stopped(self):
        got = guest("sleep", "600", options=("--hosts", "1", "--timeout", "1"))
        assert got.returncode == LATE
        assert "more than 1 s" in got.stderr


class TestDevices:
    def test_each_host_has_a_name_an_address_and_a_device_of_its_own(self):
        got = shell(
            "for h in h1 h3; do at $h bash -c 'hostname; ls -d /sys/class/infiniband/* "
            "/sys/class/net/[el]*; cd /sys/class/infiniband;cat */ports/1/gids/1 "
            "*/ports/1/gid_attrs/types/1 */ports/1/state; ibv_devices'; done; at h1 ping -q -c "
            "1 -W 5 h3 >/dev/null; echo $?; at h9 true; echo $?",
            "--hosts",
            "3",
        )

        def host(number):
            return (
                rf"h{number}\n/sys/class/infiniband/rxe{number}\n/sys/class/net/eth0\n/sys/class/net/lo\n"
                rf"0000:0000:0000:0000:0000:ffff:0a4d:000{number}\nRoCE v2\n4: ACTIVE\n"
                rf" +device .*\n.*-\n +rxe{number} .*\n"
            )

        assert re.search(f"^{host(1)}{host(3)}0\n125\n$", got.stdout), got.stderr
        assert "no host 'h9'; there are: h1 h2 h3" in got.stderr

    def test_verbs_work_between_hosts_and_within_one(self):
        got = shell(
            LISTENING + "for h in h1 h2; do\n"
            "at h1 ibv_rc_pingpong -g 1 >/tmp/server & listening h1 18515;"
            "at $h ibv_rc_pingpong -g 1 h1 | grep -c 'iters in'; wait $! || echo failed\n"
            "done; at h1 ib_write_bw -F -n 500 >/tmp/server & listening h1 18515;"
            "at h2 ib_write_bw -F -n 500 h1 | grep -c '^ 65536'; wait $! || echo failed"
        )
        assert (got.returncode, got.stdout.split()) == (0, ["1", "1", "1"]), got.stderr

    def test_a_device_can_go_and_come_back(self):
        got = shell(
            "link h1 rdma-delete; at h1 ls /sys/class/infiniband /dev/infiniband;"
            "at h2 ls /sys/class/infiniband; link h1 rdma-add;"
            "at h1 ibv_devinfo -d rxe1 | grep -c PORT_ACTIVE"
        )
        assert got.stdout.split() == [
            "/dev/infiniband:",
            "rdma_cm",
            "/sys/class/infiniband:",
            "rxe2",
            "1",
        ], got.stderr

    def test_a_memlock_limit_holds_for_root_and_users(self):
        # Registers 200 kB.
        script = "ulimit -l; id -u; ibv_rc_pingpong -g 1 -s 200000"
        for options, user in ((), "0"), (("--user", "nobody"), "65534"):
            got = shell(script, "--hosts", "1", "--memlock", "64K", *options)
            assert got.stdout.split() == ["64", user]
            assert "Couldn't register MR" in got.stderr


class TestLinks:
    """`ping -q`: ... packets transmitted, ... received, 12% packet loss."""

    def lost(self, text):
        return [float(part) for part in re.findall(r"([\d.]+)% packet loss", text)]

    def test_loss_is_applied_and_taken_away(self):
        got = shell(
            "p() { at h1 ping -q -A -c 300 -W 1 h2; }; p; link all clear; p", "--loss", "20%"
        )
        some, none = self.lost(got.stdout)
        # 36 % are expected; 3 sigma are 8 %.
        assert 10 < some < 70, got.stdout
        assert none == 0, got.stdout

    def test_links_are_delayed_limited_and_cut(self):
        got = shell(
            "p() { at h1 ping -q -c 1 -W $1 h2; }; p 9; tc qdisc show dev port2;"
            "link h2 rate 1mbit; tc qdisc show dev port2;"
            "link h2 down; p 1; link h2 up; p 9",
            "--delay",
            "30ms",
            "--rate",
            "50mbit",
        )
        assert self.lost(got.stdout) == [0, 100, 0], got.stdout + got.stderr
        # Each way takes 30 ms.
        assert float(re.search(r"rtt min/avg/max/mdev = ([\d.]+)/", got.stdout)[1]) >= 60
        assert re.search(r"netem .* delay 30ms +rate 50Mbit", got.stdout)
        assert re.search(r"tbf .* rate 1Mbit", got.stdout)


class TestTraces:
    @pytest.fixture(autouse=True)
    def own_scratch(self):
        """A folder for temporary files in which other runners of this machine leave nothing."""
        with tempfile.TemporaryDirectory() as name:
            self.scratch = Path(name)
            self.environment = {**os.environ, "TMPDIR": name}
            yield

    def test_nothing_is_left_behind_but_what_is_kept(self):
        homes = Path.home() / ".uml"
        before = set(homes.glob("*"))
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            (place / "old" / "deep").mkdir(parents=True)
            (place / "old" / "deep" / "file").write_text("x")
            (place / "kept").mkdir()
            got = shell(
                f"cd {place} && rm -r old && mkdir old && ls -A old && echo y > new &&"
                "echo z > kept/new && cat new kept/new && mkdir /faro-left /usr/faro-left",
                "--hosts",
                "1",
                "--keep",
                str(place / "kept"),
                env=self.environment,
            )
            assert (got.returncode, got.stdout) == (0, "y\nz\n"), got.stderr
            assert sorted(str(p.relative_to(place)) for p in place.rglob("*")) == [
                "kept",
                "kept/new",
                "old",
                "old/deep",
                "old/deep/file",
            ]
            assert (place / "kept" / "new").read_text() == "z\n"
        assert not any(Path(p).exists() for p in ("/faro-left", "/usr/faro-left"))
        assert set(homes.glob("*")) == before
        assert list(self.scratch.iterdir()) == []

    def test_a_killed_runner_takes_the_guest_with_it(self):
        for number, code in (
            (signal.SIGKILL, -signal.SIGKILL),
            (signal.SIGTERM, 143),
            (signal.SIGINT, 130),
        ):
            runner = subprocess.Popen(
                [RUN, "--", "bash", "-c", "echo up; sleep 600"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                env=self.environment,
            )
            assert runner.stdout.readline() == "up\n"
            guests = children(runner.pid)
            assert guests
            runner.send_signal(number)
            assert runner.wait(30) == code
            runner.stdout.close()
            deadline = time.monotonic() + 30
            while any(in_group(group) for group in guests):
                assert time.monotonic() < deadline, f"{guests} are still there"
        # What the killed runner could not remove, the next one has removed.
        assert list(self.scratch.iterdir()) == []

    def test_a_kernel_that_dies_says_why(self):
        got = shell("echo c > /proc/sysrq-trigger; sleep 600", "--hosts", "1")
        assert (got.returncode, got.stdout) == (BROKEN, "")
        assert "ended without a status" in got.stderr
        assert "Kernel panic" in got.stderr


class TestRefusals:
    def test_wrong_options_are_named(self):
        for options in (
            ["--hosts", "0"],
            ["--mtu", "12"],
            ["--memlock", "much"],
            ["--keep", "/nowhere"],
            ["--user", "nobody-at-all"],
        ):
            got = guest("true", options=options)
            assert got.returncode == 2
            assert options[1] in got.stderr

    @pytest.mark.skipif(Path("/dev/infiniband").exists(), reason="this machine has RDMA devices")
    def test_native_needs_a_device(self):
        got = guest("true", options=["--native"])
        assert got.returncode == BROKEN
        assert "/dev/infiniband" in got.stderr

    def test_a_kernel_that_is_not_there_is_an_error(self):
        got = guest("true", env={**os.environ, "FARO_SOFTROCE_KERNEL": "/nowhere/linux"})
        assert got.returncode == BROKEN
        assert "'/nowhere/linux'" in got.stderr

    def test_no_kernel_and_no_tools_to_build_one_is_a_skip(self):
        with tempfile.TemporaryDirectory() as name:
            tools = Path(name)
            for tool in ("bash", "env", "python3", "uname", "dirname", "cat", "sha256sum", "cut"):
                # python3 on the PATH may be a script of pyenv's, which needs more tools.
                found = sys.executable if tool == "python3" else shutil.which(tool)
                (tools / tool).symlink_to(os.path.realpath(found))
            environment = {"PATH": name, "FARO_CACHE": name, "HOME": name}
            got = guest("true", env=environment)
        assert (got.returncode, got.stdout) == (SKIPPED, "")
        assert "building one needs: gcc make" in got.stderr
        assert "softroce: skipped: " in got.stderr


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.split()


def in_group(group):
    """Whether a process of this group lives; a zombie does not."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    return any(
        line.split()[0] == group and not line.split()[1].startswith("Z")
        for line in listed.stdout.splitlines()
    )
