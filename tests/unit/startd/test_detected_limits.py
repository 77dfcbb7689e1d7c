"""What a control group leaves of a machine."""

import os
from pathlib import Path

import pytest

from kettle_services.startd.machine.detected_limits import usable_cpus, usable_memory

MIB = 1024 * 1024


def _sixteen(pid: int) -> set[int]:
    return set(range(16)) if not pid else set()


def _two(pid: int) -> set[int]:
    return {3, 5} if not pid else set()


def host(tmp_path: Path, cgroup: str, mounts: list[tuple[str, str, str, str]]) -> Path:
    """A `/proc/self`; mounts are root, place below `tmp_path`, kind, options."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(cgroup)
    lines = [
        f"{30 + n} 23 0:{n} {root} {tmp_path / place} rw,relatime - {kind} {kind} rw,{options}\n"
        for n, (root, place, kind, options) in enumerate(mounts)
    ]
    (proc / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + "".join(lines))
    return proc


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 16 cores and 64 GiB."""
    monkeypatch.setattr(os, "sched_getaffinity", _sixteen)
    sizes = {"SC_PHYS_PAGES": 64 * 1024 * MIB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)


def test_without_limits_it_is_the_machine(tmp_path: Path) -> None:
    """Also where there are no control groups at all."""
    proc = host(tmp_path, "0::/\n", [("/", "cg", "cgroup2", "nsdelegate")])
    write(tmp_path / "cg/cpu.max", "max 100000\n")

    assert (16, 64 * 1024) == (usable_cpus(proc), usable_memory(proc))
    assert (16, 64 * 1024) == (usable_cpus(tmp_path / "none"), usable_memory(tmp_path / "none"))


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    """Version 2: quota of a slice, memory of the service in it."""
    proc = host(tmp_path, "0::/pool.slice/kettle.service\n", [("/", "cg", "cgroup2", "nsdelegate")])
    write(tmp_path / "cg/pool.slice/cpu.max", "450000 100000\n")
    write(tmp_path / "cg/pool.slice/kettle.service/cpu.max", "max 100000\n")
    write(tmp_path / "cg/pool.slice/memory.max", "max\n")
    write(tmp_path / "cg/pool.slice/kettle.service/memory.max", f"{2048 * MIB}\n")

    assert (4, 2048) == (usable_cpus(proc), usable_memory(proc))


def test_version_1_in_a_container(tmp_path: Path) -> None:
    """The group's name is the host's, and what is mounted is the group itself."""
    cgroup = "4:memory:/docker/f00\n3:cpu,cpuacct:/docker/f00\n"
    mounts = [("/docker/f00", "cpu", "cgroup", "cpu,cpuacct"), ("/docker/f00", "mem", "cgroup", "memory")]
    proc = host(tmp_path, cgroup, mounts)
    write(tmp_path / "cpu/cpu.cfs_quota_us", "50000\n")
    write(tmp_path / "cpu/cpu.cfs_period_us", "100000\n")
    write(tmp_path / "mem/memory.limit_in_bytes", f"{512 * MIB}\n")

    assert (1, 512) == (usable_cpus(proc), usable_memory(proc))


def test_version_1_without_limits(tmp_path: Path) -> None:
    """-1 and a number near 2**63 mean none; limits of another controller's group are not ours."""
    proc = host(
        tmp_path,
        "4:memory:/a\n3:cpu:/b\n",
        [("/", "cpu", "cgroup", "cpu"), ("/", "mem", "cgroup", "memory")],
    )
    write(tmp_path / "cpu/b/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "cpu/b/cpu.cfs_period_us", "100000\n")
    write(tmp_path / "cpu/a/cpu.cfs_quota_us", "100000\n")
    write(tmp_path / "cpu/a/cpu.cfs_period_us", "100000\n")
    write(tmp_path / "mem/a/memory.limit_in_bytes", "9223372036854771712\n")

    assert (16, 64 * 1024) == (usable_cpus(proc), usable_memory(proc))


def test_a_cpuset_is_seen_by_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes away what the set does not hold."""
    monkeypatch.setattr(os, "sched_getaffinity", _two)

    assert 2 == usable_cpus(tmp_path)
