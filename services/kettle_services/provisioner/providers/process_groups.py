"""
Control groups of machines that are processes of this host: each bounds what a machine has, and knows all processes of it.

They are made below the group of the process that makes them, where that may; elsewhere machines are not bounded.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.cgroup_layout import CgroupLayout, probe_cgroups, probe_processor_groups

_SERVICES_MIB: Final = 512
"""What the services of a machine take, besides the memory that it offers to jobs."""
_PERIOD_US: Final = 100_000


def make_groups(name: str, machine: str, *, cpus: int, memory: int) -> list[str]:
    """
    The directories of the groups of a new machine, below one of the name `name`; none: there can be none here.

    The first of them tracks its processes.
    """
    layout = probe_cgroups(name)
    if layout is None:
        return []
    group = Cgroup(layout, machine)
    group.make(memory_mib=memory + _SERVICES_MIB)
    quota = cpus * _PERIOD_US
    if layout.kind == "v2":
        with contextlib.suppress(FileNotFoundError):  # the controller is not passed on to us
            Path(group.path, "cpu.max").write_text(f"{quota} {_PERIOD_US}")
        return [group.path]
    parent = probe_processor_groups(name)
    if not parent:
        return [group.path]
    processors = Path(parent, machine)
    processors.mkdir(exist_ok=True)
    (processors / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (processors / "cpu.cfs_quota_us").write_text(str(quota))
    return [group.path, str(processors)]


def processes_in(groups: Sequence[str]) -> set[int]:
    """All processes of a machine."""
    return {pid for group in groups for pid in _opened(group).pids()}


def kill_groups(groups: Sequence[str]) -> None:
    """End all processes of a machine; some may still exist when this returns."""
    for group in groups:
        _opened(group).kill()


def remove_groups(groups: Sequence[str]) -> None:
    """Remove the groups of a machine that has ended, and what they are below if no other machine is."""
    for group in groups:
        _opened(group).remove()
        with contextlib.suppress(OSError):
            os.rmdir(Path(group).parent)  # noqa: PTH106 - a control group is not a directory tree


def _opened(group: str) -> Cgroup:
    path = Path(group)
    return Cgroup(CgroupLayout(parent=str(path.parent), origin="", kind="tracking"), path.name)
