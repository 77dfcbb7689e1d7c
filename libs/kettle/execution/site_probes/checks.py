"""What each kind of probe does: blocking, in a process that its startd ends when it takes too long."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.probe import ProbeOrder, probe
from kettle.execution.site_probes.declared import (
    AnyProbe,
    ContainerProbe,
    CvmfsProbe,
    Finding,
    ImageProbe,
    ProgramProbe,
    XrootdProbe,
)
from kettle.execution.site_probes.printed_attributes import NotAttributesError, read_attributes
from kettle.transfer.xrootd_handshake import why_not
from kettle_wire.ads import Ad

_READ_BYTES: Final = 1 << 16
_PRINTED_BYTES: Final = 1 << 16
_LAST_WORDS: Final = 300
_REVISION: Final = "user.revision"
"""The extended attribute in which CVMFS tells which revision of a repository is mounted."""


class ProbeTask(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is told: a probe, and how jobs run here."""

    probe: AnyProbe
    account: Account | None
    """Whose rights jobs have; None: ours."""
    containers: ProbeOrder


def look(task: ProbeTask) -> Finding:
    """Run a probe; all but programs and containers see what the account of a job sees."""
    wanted = task.probe
    if isinstance(wanted, ContainerProbe):
        return _containers(task.containers)
    if isinstance(wanted, ProgramProbe):
        return _program(wanted)
    if task.account is not None:
        os.setgroups([])
        os.setgid(task.account.gid)
        os.setuid(task.account.uid)
    match wanted:
        case CvmfsProbe():
            return _repository(wanted)
        case XrootdProbe():
            return Finding(why=_cache(wanted))
        case ImageProbe():
            return Finding(why=_image(wanted))


def _repository(wanted: CvmfsProbe) -> Finding:
    top = f"{wanted.mount}/{wanted.repository}"
    path = f"{top}/{wanted.file}" if wanted.file else top
    try:
        if wanted.file:
            with Path(path).open("rb") as file:
                file.read(_READ_BYTES)
        else:
            with os.scandir(path) as entries:
                if next(entries, None) is None:
                    return Finding(why=f"there is nothing in {path}: it is not mounted")
    except OSError as error:
        return Finding(why=f"{path} cannot be read: {error.strerror}")
    attributes: Ad = {}
    with contextlib.suppress(OSError, ValueError):  # a stand-in has none
        attributes[f"CVMFS_{wanted.spelt}_REVISION"] = int(os.getxattr(top, _REVISION))
    return Finding(attributes=attributes)


def _cache(wanted: XrootdProbe) -> str:
    if why := why_not(wanted.url, within_s=wanted.timeout):
        return why
    if not wanted.file:
        return ""
    program = shutil.which("xrdfs")
    if program is None:
        return f"{wanted.file} cannot be asked for: there is no program xrdfs (package xrootd-client)"
    command = [program, wanted.url, "stat", f"/{wanted.file}"]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if said.returncode:
        return f"{wanted.url} does not have /{wanted.file}: {_last(said.stderr or said.stdout)}"
    return ""


def _image(wanted: ImageProbe) -> str:
    try:
        about = os.stat(wanted.path)  # noqa: PTH116 - a string
        if stat.S_ISDIR(about.st_mode):
            with os.scandir(wanted.path) as entries:
                return "" if next(entries, None) else f"{wanted.path} is empty"
        with Path(wanted.path).open("rb") as file:
            return "" if file.read(_READ_BYTES) else f"{wanted.path} is empty"
    except OSError as error:
        return f"{wanted.path} cannot be read: {error.strerror}"


def _containers(order: ProbeOrder) -> Finding:
    """It is well if one of the runtimes works."""
    whys: list[str] = []
    for tried in probe(order):
        if not tried.why:
            return Finding()
        whys.append(f"{tried.name}: {tried.why}")
    return Finding(why=f"no container runs: {'; '.join(whys) or 'no runtime is configured'}"[:1000])


def _program(wanted: ProgramProbe) -> Finding:
    environment = {"PATH": os.defpath, **{k: v for k, v in os.environ.items() if k == "PATH"}}
    with subprocess.Popen(
        wanted.command,
        env=environment | wanted.environment,
        cwd=wanted.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,  # whose end the startd keeps
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read(_PRINTED_BYTES + 1)
        if len(said) > _PRINTED_BYTES:
            process.kill()
            return Finding(why=f"it prints more than {_PRINTED_BYTES >> 10} KiB")
    if process.returncode:
        return Finding(why=f"it ended with status {process.returncode}: {_last(said) or 'it said nothing'}")
    try:
        return Finding(attributes=read_attributes(said.decode(errors="replace"), wanted.prefix))
    except NotAttributesError as error:
        return Finding(why=str(error))


def _last(said: bytes) -> str:
    return " ".join(said.decode(errors="replace").replace("\0", "").split())[-_LAST_WORDS:]
