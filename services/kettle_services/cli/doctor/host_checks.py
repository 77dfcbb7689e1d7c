"""The machine: limits, disk, control groups, programs, and whether secrets are private."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle_services.cli.doctor.findings import Finding, good, note, problem, warning

OPEN_FILES: Final = 4_096
"""With fewer a startd of a large machine, or a gateway with many browsers, has none left."""
PROCESSES: Final = 4_096
_GIB: Final = 1 << 30
_INODES: Final = 0.05


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of this machine."""

    home: str
    nofile: int
    """The hard limit of open files; -1: none."""
    nproc: int
    disk_free: int
    """Bytes, in the file system of the pool's directory."""
    disk_total: int
    inodes_free: float
    """The part of the inodes that is free, from 0 to 1; 1 where there are no inodes."""
    minimum_disk: int
    """Bytes below which the master ends the pool."""
    cgroups: str
    """How jobs are limited: `v2`, `v1`, `tracking` (found and killed, but not limited) or `none`."""
    programs: Mapping[str, str]
    """By what a program is for: its name where it is there, else empty."""
    open_secrets: Sequence[str]
    """Files of keys and passwords that others can read, or could replace."""
    root: bool


def host_findings(facts: HostFacts) -> Iterator[Finding]:
    """What is to be said of it."""
    yield from _limits(facts)
    yield from _disk(facts)
    yield _cgroups(facts)
    missing = [what for what, name in facts.programs.items() if not name]
    for what in missing:
        yield note(
            "programs",
            "this machine",
            f"there is no program for {what}",
            "install it if jobs are to have that",
        )
    if not missing:
        yield good("programs", "this machine", "everything that jobs may use is installed")
    for path in facts.open_secrets:
        yield problem(
            "permissions",
            path,
            "others than its owner can read or replace it",
            f"chmod go= {path}, and renew the secret in it",
        )
    if not facts.open_secrets:
        yield good("permissions", facts.home, "keys and passwords are for their owner alone")


def _limits(facts: HostFacts) -> Iterator[Finding]:
    for name, limit, enough, option in (
        ("open files", facts.nofile, OPEN_FILES, "LimitNOFILE=65536 in the unit, or nofile in limits.conf"),
        (
            "processes",
            facts.nproc,
            PROCESSES,
            "LimitNPROC= or TasksMax= in the unit, or nproc in limits.conf",
        ),
    ):
        if 0 <= limit < enough:
            what = f"at most {limit} {name}, and {enough} may be needed"
            yield warning("limits", "this machine", what, f"raise the hard limit: {option}")
        else:
            yield good("limits", "this machine", f"{'no limit of' if limit < 0 else limit} {name}")


def _disk(facts: HostFacts) -> Iterator[Finding]:
    free = f"{facts.disk_free / _GIB:.1f} GiB of {facts.disk_total / _GIB:.1f} GiB are free"
    if facts.disk_free < facts.minimum_disk:
        what = f"{free}, less than minimum_disk_mib of [master]: the pool ends itself"
        yield problem(
            "disk", facts.home, what, "make room: du -x --max-depth=2, kettle log archive, log_max_mib"
        )
    elif facts.disk_free < max(2 * facts.minimum_disk, 2 * _GIB):
        yield warning(
            "disk", facts.home, free, "make room: du -x --max-depth=2, kettle log archive, log_max_mib"
        )
    else:
        yield good("disk", facts.home, free)
    if facts.inodes_free < _INODES:
        yield warning(
            "disk",
            facts.home,
            f"{facts.inodes_free:.0%} of the inodes are free",
            "remove small files, or move it",
        )


def _cgroups(facts: HostFacts) -> Finding:
    match facts.cgroups:
        case "v1" | "v2":
            return good("cgroups", "this machine", f"jobs are limited by control groups ({facts.cgroups})")
        case "tracking":
            return note(
                "cgroups",
                "this machine",
                "processes of jobs are found by control groups, but memory and processors are not limited by them",
                "delegate the controllers memory, cpu and pids to the service: Delegate=yes in the unit",
            )
        case _:
            return note(
                "cgroups",
                "this machine",
                "there are no control groups for jobs: processes are found by their parents, memory is measured and not limited",
                "run the startd as root or with Delegate=yes in its unit",
            )
