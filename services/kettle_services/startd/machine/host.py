"""What this machine is, and where jobs may work on it."""

import hashlib
import logging
import os
import platform
import pwd
import socket
import stat
from pathlib import Path
from typing import Final

from kettle.accounts.lookup import own_name
from kettle.execution.attempts.job_spec import Account
from kettle.execution.job_environment import helper_programs
from kettle.execution.sandbox.directory import SYSTEM_EXECUTE
from kettle.execution.system.directory_spreading import spread_below
from kettle.runtime import SettingsError
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_SLOT_ACCOUNTS: Final = 100_000
EXECUTE_LINK: Final = "execute"
"""In the startd's state: a link to the sandboxes' directory where that is not in the pool's home."""
_ARCH: Final = {"x86_64": "X86_64", "aarch64": "aarch64", "ppc64le": "ppc64le"}


def machine_name(settings: StartdSettings) -> str:
    """The name of the machine and of the startd."""
    return settings.name or socket.gethostname()


def account(settings: StartdSettings, slot: int) -> Account | None:
    """Whom the job in dynamic slot number `slot` runs as; None: as we do."""
    if settings.job_account == "own" or (settings.job_account == "auto" and os.geteuid() != 0):
        return None
    return Account(settings.slot_uid_base + slot, settings.slot_uid_base + slot)


def job_account(settings: StartdSettings) -> Ad:
    """
    Whose rights jobs have here, if they all have the same: a job of that user needs none of its files moved.
    """
    if account(settings, 0) is not None:
        return {}
    try:
        return {"JobAccount": pwd.getpwuid(os.geteuid()).pw_name}
    except KeyError:
        return {}


def accounts(settings: StartdSettings) -> range:
    """The users that are slots; none if jobs run as we do."""
    base = settings.slot_uid_base
    return range(base, base + _SLOT_ACCOUNTS) if account(settings, 0) is not None else range(0)


def administrators(settings: StartdSettings) -> frozenset[str]:
    """
    Names of the users who may drain this machine: the account that could stop the startd anyway, and the configured
    ones.
    """
    return frozenset({*settings.administrators, own_name()})


def home() -> str:
    """Our own account's home directory; empty if it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def make_execute(settings: StartdSettings) -> Path:
    """
    The directory of the sandboxes, made if it is not there.

    A pool's home is closed to everybody but its owner, and root's pool runs jobs under accounts of their own: then their
    sandboxes are in the system's directory, as HTCondor's are.

    Raises:
        SettingsError: it cannot be made, or is not reachable for the accounts of the slots.
    """
    slots = account(settings, 0) is not None
    if slots and os.geteuid() != 0:
        raise SettingsError("KETTLE_STARTD_JOB_ACCOUNT: an account per slot takes a startd that is root.")
    chosen = Path(settings.execute) if settings.execute else settings.home_path / "execute"
    if not settings.execute and slots and not _reachable(chosen):
        mark = hashlib.sha256(
            f"{settings.home_path.resolve()}\0{machine_name(settings)}".encode()
        ).hexdigest()
        chosen = Path(SYSTEM_EXECUTE) / mark[:16]
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        if slots:
            chosen.chmod(0o711)  # who knows his sandbox's name gets there; nobody reads the others'
        spread_below(chosen)
    except OSError as error:
        raise SettingsError(f"KETTLE_STARTD_EXECUTE: {chosen} cannot be used: {error.strerror}.") from error
    if slots and not _reachable(chosen):
        raise SettingsError(f"KETTLE_STARTD_EXECUTE: {chosen} is closed to the accounts that jobs run as.")
    _leave_word(settings, chosen.resolve())
    _install(chosen.resolve())
    return chosen.resolve()


def _install(execute: Path) -> None:
    """
    Without them a job only cannot talk with its access point: on a full disk that is no reason to offer no machine.
    """
    try:
        helper_programs.install(execute)
    except OSError as error:
        _log.warning("helper programs of jobs are not in place", extra={"cause": str(error)})


def _leave_word(settings: StartdSettings, execute: Path) -> None:
    """
    Write down for the master where the sandboxes are, if not in the home: it removes what a startd leaves.

    A correct file is not touched, because on a full disk it could not be written again.
    """
    word = settings.state_path / EXECUTE_LINK
    elsewhere = execute != (settings.home_path / "execute").resolve()
    if word.is_symlink() and elsewhere and word.readlink() == execute:
        return
    try:
        word.unlink(missing_ok=True)
        if elsewhere:
            word.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            word.symlink_to(execute)
    except OSError as error:
        _log.warning("the master will not know of our sandboxes", extra={"cause": str(error)})


def _reachable(path: Path) -> bool:
    """Whether every existing directory on the path is open to all accounts."""
    existing = [each for each in (path.absolute(), *path.absolute().parents) if each.exists()]
    return all(stat.S_IMODE(each.stat().st_mode) & stat.S_IXOTH for each in existing)


def platform_attributes() -> Ad:
    """What kind of machine it is."""
    found: Ad = {
        "Arch": _ARCH.get(platform.machine(), platform.machine()),
        "OpSys": "LINUX",
        "FileSystemDomain": socket.gethostname(),
        "UidDomain": socket.gethostname(),
    }
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return found
    short = release.get("ID", "linux").capitalize()
    version = release.get("VERSION_ID", "").partition(".")[0]
    found |= {
        "OpSysName": short,
        "OpSysShortName": short,
        "OpSysLongName": release.get("PRETTY_NAME", short),
        "OpSysAndVer": f"{short}{version}",
    }
    if version.isdecimal():
        found["OpSysMajorVer"] = int(version)
    return found
