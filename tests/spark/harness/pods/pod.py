"""What a pod is: the restrictions that its executor runs under."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace


@dataclass(frozen=True)
class Pod:
    """Of one executor. The defaults are those of a pod with every restriction at once."""

    user: int = 185  # without a line in /etc/passwd; 0: root
    read_only: bool = True  # the root file system
    sys: bool = True
    shm: str = "64m"  # the size of /dev/shm; empty: there is none
    seccomp: bool = True
    files: int = 1024  # RLIMIT_NOFILE; 0: as it is
    locked: int | None = 64 << 10  # RLIMIT_MEMLOCK
    local_noexec: bool = False  # Spark's local directory too, as /tmp is
    options: tuple[str, ...] = ()  # of the JVM
    # The pod has the network of that executor's pod: two containers with `hostNetwork` of one node.
    network_of: str = ""
    host: str = ""  # its name, if not its address
    bind: str = ""  # where it listens, if not at its address
    environment: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # of files in /etc
    replace: dict[str, str] = field(default_factory=dict)  # in the JVM's command line
    commands: tuple[str, ...] = ()

    def with_(self, **changes) -> Pod:
        return replace(self, **changes)

    def spec(self, **where) -> dict:
        """For enter.py; `where`: network, address, place, local and java."""
        return {**asdict(self), **where}


HARD = Pod()
# Without what HARD still has.
BARE = Pod(sys=False, shm="")
