"""
What joining leaves on a machine, and takes away again: credentials, and the settings that they need.

    credentials/<role>.creds      what the machine shows to the bus
    credentials/bus-ca.pem        by whom it trusts the bus
    credentials/joined.json       what was written, so that leaving removes that and nothing else

The settings of the machine are the administrator's: what is there stays, and only what is missing is added.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.classad.printing import quoted_string
from kettle.pool.access_point import FILE, PEOPLE_KEY, AccessPointFile
from kettle.pool.joining import WORKER, Joined, JoinError, forget_key
from kettle.pool.personal_settings import Tables, Value
from kettle.pool.settings_file import SettingsFileError, merged, without

SETTINGS: Final = "kettle.toml"
_HEAD: Final = "# Begun by joining a pool.  It is yours: change what you want.\n"
_RECORD: Final = "joined.json"
_PEOPLE: Final = ("user.creds", "account-*.creds")
_THEIRS: Final = frozenset({"administrators", "start"})
"""What the machine's administrator may have said otherwise: the pool looks at whose jobs a machine takes by itself."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What joining has written."""

    pool: str
    worker: str
    joins: str
    files: list[str]
    settings: dict[str, dict[str, Any]]


def record_of(home: Path) -> Record | None:
    """What joining wrote here; None if this machine has not joined.  Raises JoinError."""
    path = home / "credentials" / _RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise JoinError(f"{path} cannot be read: {error}") from error


def keep(joined: Joined, home: Path) -> list[Path]:
    """
    Write what this machine needs into the directory of the pool; the files.

    Raises:
        JoinError: its settings say something else, or the files cannot be written.
    """
    directory, before = home / "credentials", record_of(home)
    files = {directory / f"{role}.creds": text for role, text in joined.credentials.items()}
    if joined.bus_ca:
        files[directory / "bus-ca.pem"] = joined.bus_ca
    if joined.people_account:
        own = AccessPointFile(name=joined.worker, people_account=joined.people_account)
        files[directory / FILE] = msgspec.json.encode(own).decode()
    tables = _needed(joined, directory)
    settings = home / SETTINGS
    try:
        private_directory(directory)
        was = settings.read_text(encoding="utf-8") if settings.exists() else _HEAD
        text, added = merged(settings, was, tables, before.settings if before else {}, theirs=_THEIRS)
        written = [write_private(path, content) for path, content in files.items()]
        if text != was or not settings.exists():
            written.append(write_private(settings, text))
        names = [str(path.relative_to(home)) for path in files]
        if joined.people_account:
            names.append(f"credentials/{PEOPLE_KEY}.nk")
        record = Record(
            pool=joined.pool,
            worker=joined.worker,
            joins="schedd" if joined.people_account else "worker",
            files=names,
            settings=added,
        )
        write_private(directory / _RECORD, msgspec.json.encode(record).decode())
        forget_key(home)
    except SettingsFileError as error:
        raise JoinError(f"{error}, or give a directory of its own with --home") from error
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise JoinError(f"{getattr(error, 'filename', '') or home} cannot be written: {said}") from error
    return written


def remove(home: Path, record: Record) -> list[Path]:
    """
    Remove what joining wrote, save settings that were changed since; the files that are gone.

    Raises:
        JoinError: they cannot be removed.
    """
    settings, gone = home / SETTINGS, [home / name for name in record.files]
    if record.joins == "schedd":  # those for whom it vouched
        gone += [path for pattern in _PEOPLE for path in (home / "credentials").glob(pattern)]
    try:
        if settings.exists():
            text = settings.read_text(encoding="utf-8")
            left = without(text, record.settings)
            if left.strip() in {"", _HEAD.strip()}:
                gone.append(settings)
            elif left != text:
                write_private(settings, left)
        for path in (*gone, home / "credentials" / _RECORD):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise JoinError(f"{error.filename or home} cannot be removed: {error.strerror}") from error
    return gone


def _needed(joined: Joined, directory: Path) -> Tables:
    """The settings without which the machine is not in the pool."""
    managed: dict[str, Value] = {"administrators": [joined.administrator]} if joined.administrator else {}
    shared: dict[str, Value] = {"pool": joined.pool, "nats_url": joined.nats_url}
    if joined.bus_ca:
        shared["nats_ca"] = str((directory / "bus-ca.pem").absolute())
    master: dict[str, Value] = {"nats_url": joined.nats_url, "name": joined.worker}
    if joined.people_account:
        name = joined.worker
        master["daemon_list"] = [f"schedd.{name}", f"shadow.{name}"]
        return {"kettle": shared, "master": master | managed}
    shared["nats_credentials"] = str((directory / f"{WORKER}.creds").absolute())
    master["daemon_list"] = ["startd"]
    policy: dict[str, Value] = (
        {"start": f"TARGET.Owner == {quoted_string(joined.owner)}"} if joined.owner else {}
    )
    return {
        "kettle": shared,
        "master": master | managed,
        "startd": {"name": joined.worker} | managed | policy,
    }
