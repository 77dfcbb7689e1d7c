"""What `kettle doctor` reads of this machine."""

import os
import resource
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kettle.embedded.binaries import nats_server, postgres_bin
from kettle.embedded.errors import MissingBinaryError
from kettle.execution.system.cgroup_layout import probe_cgroups, remove_layout
from kettle_services.cli.doctor.host_checks import HostFacts

_SECRETS: Final = ("credentials", "pki", "iam", "kettle.toml", "postgres/passfile", "postgres/passfiles")
_NO_SECRETS: Final = (".pem", ".crt", ".json")
"""Endings of what may be read by others: certificates, and what was written about joining."""
_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("podman", "docker", "apptainer", "singularity", "runc", "crun", "bwrap"),
    "namespaces": ("unshare",),
    "servers of ours that end with their master": ("setpriv",),
}
_UNLIMITED: Final = resource.RLIM_INFINITY


def host_facts(home: Path, *, minimum_disk_mib: int) -> HostFacts:
    """All of it; what cannot be read counts as not there."""
    place = next(path for path in (home, *home.parents) if path.exists())
    usage, inodes = shutil.disk_usage(place), os.statvfs(place)
    return HostFacts(
        home=str(home),
        nofile=_limit(resource.RLIMIT_NOFILE),
        nproc=_limit(resource.RLIMIT_NPROC),
        disk_free=usage.free,
        disk_total=usage.total,
        inodes_free=inodes.f_favail / inodes.f_files if inodes.f_files else 1.0,
        minimum_disk=minimum_disk_mib << 20,
        cgroups=_cgroups(),
        programs={what: _first(names) for what, names in _PROGRAMS.items()} | _servers(),
        open_secrets=[str(path) for path in _open_secrets(home)],
        root=os.geteuid() == 0,
    )


def _limit(which: int) -> int:
    hard = resource.getrlimit(which)[1]
    return -1 if hard == _UNLIMITED else hard


def _cgroups() -> str:
    layout = probe_cgroups(f"kettle-doctor-{os.getpid()}")
    if layout is None:
        return "none"
    remove_layout(layout)
    return "v1" if layout.kind == "memory" else layout.kind


def _first(names: tuple[str, ...]) -> str:
    path = f"{os.environ.get('PATH', '')}:/usr/bin:/bin:/usr/sbin:/sbin"
    return next((name for name in names if shutil.which(name, path=path)), "")


def _servers() -> dict[str, str]:
    """Those that a pool starts itself, where it has none of the site."""
    found: dict[str, str] = {}
    for what, find in (("NATS", nats_server), ("PostgreSQL", postgres_bin)):
        try:
            found[f"a {what} server of the pool's own"] = str(find())
        except MissingBinaryError:
            found[f"a {what} server of the pool's own"] = ""
    return found


def _open_secrets(home: Path) -> Iterator[Path]:
    """
    What others could reach: below a private directory nothing is, so the directory itself is looked at first.
    """
    try:
        if not home.stat().st_mode & 0o077:
            return
    except OSError:
        return
    for name in _SECRETS:
        top = home / name
        for path in [top, *(sorted(top.rglob("*")) if top.is_dir() else [])]:
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and path.suffix not in _NO_SECRETS and mode & 0o077:
                yield path
