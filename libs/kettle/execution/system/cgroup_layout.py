"""
Where control groups can be made on this machine.

One hierarchy is used, because each costs a job a millisecond: the v2 tree if it limits memory, else v1's memory
hierarchy, else whatever at least tracks.  Our groups are made below the group that we are in ourselves: that is the part
of the tree that was given to us.
"""

import contextlib
import os
from pathlib import Path
from typing import Literal

import msgspec


class CgroupLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Where groups can be made."""

    parent: str
    """The directory below which each attempt has its group."""
    origin: str
    """The group of the startd itself, to which a starter returns."""
    kind: Literal["v2", "memory", "tracking"]


def probe_cgroups(name: str) -> CgroupLayout | None:
    """Make our own group called `name` in every useful hierarchy; None if there is no place where we may."""
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


def probe_processor_groups(name: str) -> str:
    """Our own group called `name` in v1's hierarchy that limits processors; empty: there is none, or we may not make one."""
    mounts, own = _mounts(), _own_groups()
    return _make(mounts.get("cpu"), own.get("cpu"), name)


def _layout(parent: str, kind: Literal["v2", "memory", "tracking"], origin: str) -> CgroupLayout:
    return CgroupLayout(parent=parent, origin=origin, kind=kind)


def remove_layout(layout: CgroupLayout) -> None:
    """Remove our own group; what still has members stays."""
    _rmdir(layout.parent)


def _rmdir(path: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(path)  # noqa: PTH106 - a control group is not a directory tree


def _mounts() -> dict[str, str]:
    """Where each v1 controller is mounted; the v2 tree has the empty name."""
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


def groups_of(pid: int) -> list[Path]:
    """The directory of each control group that a process is in, in every hierarchy that is mounted."""
    mounts = _mounts()
    return [Path(mounts[name] + path) for name, path in _groups(str(pid)).items() if name in mounts]


def _own_groups() -> dict[str, str]:
    return _groups("self")


def _groups(process: str) -> dict[str, str]:
    lines = (
        line.split(":", 2)
        for line in Path("/proc", process, "cgroup").read_text(encoding="utf-8").splitlines()
    )
    return {controller: path for _, names, path in lines for controller in names.split(",")}


def _make(mount: str | None, own: str | None, name: str) -> str:
    """The path of our group in one hierarchy; empty if we may not make it."""
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
