"""
Control groups: one group per attempt for tracking, killing, limiting and measuring, where the machine allows it.

One hierarchy is used, because each costs a job a millisecond: the v2 tree if it limits memory, else v1's memory
hierarchy, else whatever at least tracks.  Our groups are made below the group that we are in ourselves: that is the part
of the tree that was given to us.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final, Literal

import msgspec

MIB: Final = 1024 * 1024
_REMOVE_TRIES: Final = 50
_REMOVE_PAUSE_S: Final = 0.002


class CgroupLayout(msgspec.Struct, frozen=True, kw_only=True):
    """
    Where groups can be made.
    """

    parent: str
    """The directory below which each attempt has its group."""
    origin: str
    """The group of the startd itself, to which a starter returns."""
    kind: Literal["v2", "memory", "tracking"]


def probe_cgroups(name: str) -> CgroupLayout | None:
    """
    Make our own group called `name` in every useful hierarchy; None if there is no place where we may.
    """
    mounts, own = _mounts(), _own_groups()
    unified = _make(mounts.get(""), own.get(""), name)
    if unified and "memory" in _controllers(unified):
        return _layout(unified, "v2", mounts[""] + own[""])
    for controller, kind in (("memory", "memory"), ("pids", "tracking"), ("cpuacct", "tracking")):
        if path := _make(mounts.get(controller), own.get(controller), name):
            if unified:
                _rmdir(unified)
            return _layout(
                path, "memory" if kind == "memory" else "tracking", mounts[controller] + own[controller]
            )
    return _layout(unified, "tracking", mounts[""] + own[""]) if unified else None


def _layout(parent: str, kind: Literal["v2", "memory", "tracking"], origin: str) -> CgroupLayout:
    return CgroupLayout(parent=parent, origin=origin, kind=kind)


def remove_layout(layout: CgroupLayout) -> None:
    """
    Remove our own group; what still has members stays.
    """
    _rmdir(layout.parent)


def _rmdir(path: str) -> None:
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
    lines = (
        line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    )
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
    The group of one attempt.
    """

    def __init__(self, layout: CgroupLayout, name: str) -> None:
        self._v2 = layout.kind == "v2"
        self._origin = layout.origin
        self._path = f"{layout.parent}/{name}"
        self.limits_memory = layout.kind != "tracking"
        """Whether the kernel enforces the limit."""

    def make(self, *, memory_mib: int) -> None:
        """
        Make the group; its processes together may not have more than `memory_mib` resident (0: no limit).
        """
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._path)  # noqa: PTH102 - as above
        if not self.limits_memory or memory_mib <= 0:
            return
        limit = memory_mib * MIB
        # No swap beyond the limit, where swap is accounted for: v2 counts it alone, v1 both together.
        self._set("memory.max" if self._v2 else "memory.limit_in_bytes", limit)
        self._set(*(("memory.swap.max", 0) if self._v2 else ("memory.memsw.limit_in_bytes", limit)))

    def _set(self, name: str, value: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            _write(f"{self._path}/{name}", str(value))

    def join(self) -> None:
        """
        Put the calling process into the group.
        """
        _write(f"{self._path}/cgroup.procs", "0")

    def leave(self) -> None:
        """
        Put the calling process back to where the startd is.
        """
        _write(f"{self._origin}/cgroup.procs", "0")

    def pids(self) -> list[int]:
        """
        Everything in the group, groups below it included.
        """
        found: list[int] = []
        for path in (self._path, *_below(self._path)):
            with contextlib.suppress(OSError), open(f"{path}/cgroup.procs", "rb") as file:  # noqa: PTH123 - hot
                found += [int(pid) for pid in file.read().split()]
        return [pid for pid in found if pid > 0]

    def kill(self) -> None:
        """
        SIGKILL everything in the group; not all of it need be gone when this returns.
        """
        try:
            _write(f"{self._path}/cgroup.kill", "1")
        except OSError:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)

    def remove(self) -> bool:
        """
        Remove the emptied group; whether it is gone.  The kernel takes a moment to forget a process.
        """
        return _remove(self._path)

    def oom_kills(self) -> int:
        """
        How many processes of the group the kernel has killed for want of memory.
        """
        return _table(f"{self._path}/{'memory.events' if self._v2 else 'memory.oom_control'}").get(
            "oom_kill", 0
        )

    def memory_peak_kib(self) -> int:
        """
        The most that was ever charged to the group, page cache included; 0 if it is not known.
        """
        return _number(f"{self._path}/{'memory.peak' if self._v2 else 'memory.max_usage_in_bytes'}") // 1024

    def resident_kib(self) -> int:
        """
        Anonymous memory of the group now; 0 if it is not known.
        """
        return _table(f"{self._path}/memory.stat").get("anon" if self._v2 else "total_rss", 0) // 1024

    def cpu_seconds(self) -> tuple[float, float]:
        """
        User and system time of everything that was ever in the group; zeros if they are not known.
        """
        table = _table(f"{self._path}/cpu.stat") if self._v2 else {}
        return table.get("user_usec", 0) / 1e6, table.get("system_usec", 0) / 1e6


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
