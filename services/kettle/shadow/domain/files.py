"""Which files a job takes along and where its results go, by HTCondor's rules."""

from pathlib import PurePosixPath
from typing import Final

import msgspec

from kettle.wire.ads import Ad

NULL: Final = "/dev/null"
STDOUT: Final = "_condor_stdout"
STDERR: Final = "_condor_stderr"


class Wanted(msgspec.Struct, frozen=True):
    """A path on the submit side and the place of it in the sandbox; `contents`: of a directory, not the directory."""

    path: PurePosixPath
    name: str
    executable: bool = False
    contents: bool = False


def text(ad: Ad, name: str, default: str = "") -> str:
    """A string attribute."""
    value = ad.get(name, default)
    return value if isinstance(value, str) else default


def items(ad: Ad, name: str) -> list[str]:
    """A comma-separated list; blanks around its items do not count, empty items neither."""
    return [item for part in text(ad, name).split(",") if (item := part.strip())]


def inputs(ad: Ad) -> list[Wanted]:
    """What goes into the sandbox, in the order in which it is placed there: the last of two equal names wins."""
    iwd = PurePosixPath(text(ad, "Iwd", "/"))
    wanted: list[Wanted] = []
    if ad.get("TransferExecutable", True) is not False:
        command = iwd / text(ad, "Cmd")
        wanted.append(Wanted(command, command.name, executable=True))
    if text(ad, "In", NULL) != NULL and ad.get("TransferIn", True) is not False:
        stdin = iwd / text(ad, "In")
        wanted.append(Wanted(stdin, stdin.name))
    for item in items(ad, "TransferInput"):
        path = iwd / item
        wanted.append(Wanted(path, path.name, contents=item.endswith("/")))
    return wanted


def is_sandbox_name(name: str) -> bool:
    """Whether a file of this name stays inside a sandbox, and the name can be told: messages are UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name and not any(part in {"", ".", ".."} for part in name.split("/"))


def stranger(ad: Ad, account: str) -> str:
    """
    Why a job of this owner cannot be looked after by a shadow that acts as `account`; empty if it can.

    Whoever names a file gets it read and written with the rights of the account.
    """
    owner = text(ad, "Owner")
    if owner == account:
        return ""
    return f"the job belongs to {owner or 'nobody'}, and its files can be reached as {account} only"


def destination(ad: Ad, name: str) -> PurePosixPath | None:
    """Where a file that the job left goes; None if nobody wants it. Raises ValueError for a name that leads elsewhere."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the worker names an output file {name!r} outside of its sandbox")
    iwd = PurePosixPath(text(ad, "Iwd", "/"))
    stream = {STDOUT: "Out", STDERR: "Err"}.get(name)
    if stream is None:
        remaps = _remaps(text(ad, "TransferOutputRemaps"))
        return iwd / remaps.get(name, name)
    target = text(ad, stream, NULL)
    return None if target == NULL else iwd / target


def _remaps(remaps: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in remaps.split(";") if "=" in part)
    return {name.strip(): target.strip() for name, _, target in pairs}
