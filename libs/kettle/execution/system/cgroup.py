"""The control group of one attempt: tracks, limits, measures and kills."""

import contextlib
import os
import time
from typing import Final

from kettle.execution.system.cgroup_layout import CgroupLayout

MIB: Final = 1024 * 1024
_REMOVE_TRIES: Final = 50
_REMOVE_PAUSE_S: Final = 0.002


class Cgroup:
    """The group of one attempt."""

    def __init__(self, layout: CgroupLayout, name: str) -> None:
        self._v2 = layout.kind == "v2"
        self._origin = layout.origin
        self._path = f"{layout.parent}/{name}"
        # Of a process with one thread both are the same, but v1 waits for no grace period of the whole machine (10 ms)
        # where a thread moves nobody but itself.
        self._own_entry = "cgroup.procs" if self._v2 else "tasks"
        self.limits_memory = layout.kind != "tracking"
        """Whether the kernel enforces the limit."""

    @property
    def path(self) -> str:
        """Its directory."""
        return self._path

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
        """Put the calling process into the group."""
        _write(f"{self._path}/{self._own_entry}", "0")

    def take(self, pid: int) -> None:
        """Put another process into the group."""
        _write(f"{self._path}/cgroup.procs", str(pid))

    def leave(self) -> None:
        """Put the calling process back to where the startd is."""
        _write(f"{self._origin}/{self._own_entry}", "0")

    def pids(self) -> list[int]:
        """Everything in the group, groups below it included."""
        found: list[int] = []
        for path in (self._path, *_below(self._path)):
            with contextlib.suppress(OSError), open(f"{path}/cgroup.procs", "rb") as file:  # noqa: PTH123 - hot
                found += [int(pid) for pid in file.read().split()]
        return [pid for pid in found if pid > 0]

    def kill(self) -> None:
        """SIGKILL everything in the group; some processes may still exist when this returns."""
        try:
            _write(f"{self._path}/cgroup.kill", "1")
        except OSError:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, 9)

    def freeze(self, *, frozen: bool) -> bool:
        """Freeze everything in the group, or thaw it; false: the kernel cannot do that here."""
        try:
            _write(f"{self._path}/cgroup.freeze", str(int(frozen)))
        except OSError:
            return False
        return True

    def remove(self) -> bool:
        """
        Remove the emptied group; returns whether it no longer exists.  The kernel takes a moment to forget a process.
        """
        return _remove(self._path)

    def oom_kills(self) -> int:
        """How many processes of the group the kernel has killed for want of memory."""
        return _table(f"{self._path}/{'memory.events' if self._v2 else 'memory.oom_control'}").get(
            "oom_kill", 0
        )

    def memory_peak_kib(self) -> int:
        """The most that was ever charged to the group, page cache included; 0 if it is not known."""
        return _number(f"{self._path}/{'memory.peak' if self._v2 else 'memory.max_usage_in_bytes'}") // 1024

    def resident_kib(self) -> int:
        """Anonymous memory of the group now; 0 if it is not known."""
        return _table(f"{self._path}/memory.stat").get("anon" if self._v2 else "total_rss", 0) // 1024

    def cpu_seconds(self) -> tuple[float, float]:
        """User and system time of everything that was ever in the group; zeros if they are not known."""
        table = _table(f"{self._path}/cpu.stat") if self._v2 else {}
        return table.get("user_usec", 0) / 1e6, table.get("system_usec", 0) / 1e6


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _table(path: str) -> dict[str, int]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - hot, and a codec would be loaded again in each starter
            pairs = (line.split() for line in file)
            return {pair[0].decode(): int(pair[1]) for pair in pairs if len(pair) == 2}
    except OSError:
        return {}


def _number(path: str) -> int:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return int(file.read())
    except OSError:
        return 0


def _below(path: str) -> list[str]:
    """Groups that the job made inside its own, deepest first."""
    try:
        inner = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [deeper for directory in inner for deeper in (*_below(directory), directory)]


def _remove(path: str) -> bool:
    for _ in range(_REMOVE_TRIES):
        try:
            os.rmdir(path)  # noqa: PTH106 - as above
        except FileNotFoundError:
            return True
        except OSError:
            if not _remove_below(path):
                time.sleep(_REMOVE_PAUSE_S)
        else:
            return True
    return False


def _remove_below(path: str) -> bool:
    """Remove the groups that the job has made; whether there were some, and now there are none."""
    inner = _below(path)
    try:
        for group in inner:
            os.rmdir(group)  # noqa: PTH106 - as above
    except OSError:
        return False
    return bool(inner)
