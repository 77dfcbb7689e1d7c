"""
Control groups: one group per attempt for tracking, killing, limiting and measuring, where the machine allows it.

Three layouts are known: v2 alone; v1 alone; and hybrid, where an empty v2 tree tracks and kills (`cgroup.kill`) while
v1 hierarchies limit memory and count CPU.  Our groups are made below the group that we are in ourselves: that is the
part of the tree that was given to us.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

import msgspec

MIB: Final = 1024 * 1024
_REMOVE_TRIES: Final = 50
_REMOVE_PAUSE_S: Final = 0.002


class CgroupLayout(msgspec.Struct, frozen=True, kw_only=True):
    """
    Directories below which groups can be made; an empty one means that the machine does not offer this.
    """

    track: str
    """Its groups know their processes."""
    memory: str = ""
    cpu: str = ""
    memory_v2: bool = False

    @property
    def parents(self) -> list[str]:
        """
        Each directory once.
        """
        return list(dict.fromkeys(path for path in (self.track, self.memory, self.cpu) if path))


def probe_cgroups(name: str) -> CgroupLayout | None:
    """
    Make our own group called `name` in every useful hierarchy; None if there is no place where we may.
    """
    mounts, own = _mounts(), _own_groups()
    unified = _make(mounts.get(""), own.get(""), name)
    if unified and "memory" in _controllers(unified):
        return CgroupLayout(track=unified, memory=unified, cpu=unified, memory_v2=True)
    memory = _make(mounts.get("memory"), own.get("memory"), name)
    cpu = _make(mounts.get("cpuacct"), own.get("cpuacct"), name)
    track = unified or _make(mounts.get("pids"), own.get("pids"), name) or memory
    return CgroupLayout(track=track, memory=memory, cpu=cpu) if track else None


def remove_layout(layout: CgroupLayout) -> None:
    """
    Remove our own group; what still has members stays.
    """
    for path in layout.parents:
        with contextlib.suppress(OSError):
            os.rmdir(path)  # noqa: PTH106 - a control group is not a directory tree


def _mounts() -> dict[str, str]:
    """
    Where each v1 controller is mounted; the v2 tree has the empty name.
    """
    found: dict[str, str] = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        where = before.split()[4]
        if kind == "cgroup2":
            found[""] = where
        elif kind == "cgroup":
            found.update(dict.fromkeys(options.split(","), where))
    return found


def _own_groups() -> dict[str, str]:
    lines = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines())
    return {controller: path for _, names, path in lines for controller in names.split(",")}


def _make(mount: str | None, own: str | None, name: str) -> str:
    """
    The path of our group in one hierarchy; empty if we may not make it.
    """
    if mount is None or own is None:
        return ""
    parent = Path(mount + own)
    path = parent / name
    try:
        if (parent / "cgroup.subtree_control").exists():
            _delegate(parent)
        path.mkdir(exist_ok=True)
        if (path / "cgroup.subtree_control").exists():
            _delegate(path)
        probe = path / "probe"
        probe.mkdir(exist_ok=True)
        writable = os.access(probe / "cgroup.procs", os.W_OK)
        probe.rmdir()
    except OSError:
        return ""
    return str(path) if writable else ""


def _delegate(parent: Path) -> None:
    """
    Pass the v2 controllers on to the groups below.  Where the kernel refuses, because `parent` has processes of its own,
    the groups below track and kill but do not limit.
    """
    offered = (parent / "cgroup.controllers").read_text(encoding="ascii").split()
    for controller in {"memory", "cpu", "pids"}.intersection(offered):
        with contextlib.suppress(OSError):
            (parent / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def _controllers(path: str) -> list[str]:
    try:
        return (Path(path) / "cgroup.subtree_control").read_text(encoding="ascii").split()
    except OSError:
        return []


class Cgroup:
    """
    The group of one attempt, in each hierarchy of the layout.
    """

    def __init__(self, layout: CgroupLayout, name: str) -> None:
        self._layout = layout
        self._track = f"{layout.track}/{name}"
        self._memory = f"{layout.memory}/{name}" if layout.memory else ""
        self._cpu = f"{layout.cpu}/{name}" if layout.cpu else ""
        self._paths = [f"{parent}/{name}" for parent in layout.parents]

    def make(self, *, memory_mib: int) -> None:
        """
        Make the group; its processes together may not have more than `memory_mib` resident (0: no limit).
        """
        for path in self._paths:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)  # noqa: PTH102 - as above
        if self._memory and memory_mib > 0:
            names = (
                ("memory.max", "memory.swap.max")
                if self._layout.memory_v2
                else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            )
            for name, limit in zip(names, (memory_mib * MIB, self._swap(memory_mib)), strict=True):
                with contextlib.suppress(FileNotFoundError):  # swap may not be accounted for
                    _write(f"{self._memory}/{name}", str(limit))

    def _swap(self, memory_mib: int) -> int:
        """
        No swap beyond the limit: v2 counts swap alone, v1 both together.
        """
        return 0 if self._layout.memory_v2 else memory_mib * MIB

    def join(self) -> None:
        """
        Put the calling process into the group.
        """
        for path in self._paths:
            _write(f"{path}/cgroup.procs", "0")

    def pids(self) -> list[int]:
        """
        Everything in the group, groups below it included.
        """
        found: list[int] = []
        for path in (self._track, *_below(self._track)):
            with contextlib.suppress(OSError), open(f"{path}/cgroup.procs", "rb") as file:  # noqa: PTH123 - hot
                found += [int(pid) for pid in file.read().split()]
        return [pid for pid in found if pid > 0]

    def kill(self) -> None:
        """
        SIGKILL everything in the group; not all of it need be gone when this returns.
        """
        try:
            _write(f"{self._track}/cgroup.kill", "1")
        except OSError:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)

    def remove(self) -> bool:
        """
        Remove the emptied group; whether it is gone.  The kernel takes a moment to forget a process.
        """
        return all([_remove(path) for path in self._paths])

    @property
    def limits_memory(self) -> bool:
        """
        Whether the kernel enforces the limit.
        """
        return bool(self._memory)

    def oom_kills(self) -> int:
        """
        How many processes of the group the kernel has killed for want of memory.
        """
        name = "memory.events" if self._layout.memory_v2 else "memory.oom_control"
        return _table(f"{self._memory}/{name}").get("oom_kill", 0) if self._memory else 0

    def memory_peak_kib(self) -> int:
        """
        The most that was ever charged to the group, page cache included; 0 if it is not known.
        """
        name = "memory.peak" if self._layout.memory_v2 else "memory.max_usage_in_bytes"
        return _number(f"{self._memory}/{name}") // 1024 if self._memory else 0

    def resident_kib(self) -> int:
        """
        Anonymous memory of the group now; 0 if it is not known.
        """
        if not self._memory:
            return 0
        table = _table(f"{self._memory}/memory.stat")
        return table.get("anon" if self._layout.memory_v2 else "total_rss", 0) // 1024

    def cpu_seconds(self) -> tuple[float, float]:
        """
        User and system time of everything that was ever in the group; zeros if they are not known.
        """
        if not self._cpu:
            return 0.0, 0.0
        if self._layout.memory_v2:
            table = _table(f"{self._cpu}/cpu.stat")
            return table.get("user_usec", 0) / 1e6, table.get("system_usec", 0) / 1e6
        return (
            _number(f"{self._cpu}/cpuacct.usage_user") / 1e9,
            _number(f"{self._cpu}/cpuacct.usage_sys") / 1e9,
        )


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


def _table(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - hot
            pairs = (line.split() for line in file)
            return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    except OSError:
        return {}


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - hot
            return int(file.read())
    except OSError:
        return 0


def _below(path: str) -> list[str]:
    """
    Groups that the job made inside its own, deepest first.
    """
    try:
        inner = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [deeper for directory in inner for deeper in (*_below(directory), directory)]


def _remove(path: str) -> bool:
    for _ in range(_REMOVE_TRIES):
        try:
            for inner in _below(path):
                os.rmdir(inner)  # noqa: PTH106 - as above
            os.rmdir(path)  # noqa: PTH106 - as above
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(_REMOVE_PAUSE_S)
        else:
            return True
    return False
