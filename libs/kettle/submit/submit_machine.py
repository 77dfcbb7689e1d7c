"""The machine on which a description is submitted: its properties, and the files on its disk."""

import os
import platform
import socket
from pathlib import Path
from typing import Final

import msgspec

_ARCHITECTURES: Final = {
    "x86_64": "X86_64", "amd64": "X86_64", "aarch64": "aarch64", "arm64": "aarch64", "ppc64le": "ppc64le",
    "i386": "INTEL", "i686": "INTEL",
}  # fmt: skip
_SYSTEMS: Final = {"linux": "LINUX", "darwin": "macOS", "windows": "WINDOWS"}


def architecture() -> str:
    """The Arch of this machine, as machine ads spell it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine.lower(), machine)


def operating_system() -> str:
    """The OpSys of this machine, as machine ads spell it."""
    system = platform.system()
    return _SYSTEMS.get(system.lower(), system.upper())


def machine_macros() -> dict[str, str]:
    """The macros that say what this machine is, in descriptions and in transforms."""
    system = operating_system()
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    version = release.get("VERSION_ID", "")
    major = version.partition(".")[0]
    return {
        "ARCH": architecture(),
        "OPSYS": system,
        "OPSYSANDVER": f"{release.get('ID', system).capitalize()}{major}",
        "OPSYSMAJORVER": major,
        "OPSYSVER": version.replace(".", ""),
        "IsLinux": "1" if system == "LINUX" else "0",
        "IsWindows": "1" if system == "WINDOWS" else "0",
    }


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What ends up in the ad of every job submitted here, and what a pool gives to those who do not ask."""

    arch: str
    opsys: str
    file_system_domain: str
    check_files: bool = True
    """False: a file that is not there is not missed (the description is for another machine)."""
    skip_filechecks: bool = False
    """Of the files only programs and directories have to be there: what they read and write is not looked at."""
    request_cpus: int = 1
    request_memory: int = 128
    """MiB."""
    request_disk_minimum: int = 1024
    """MiB; a job that does not ask gets this, or a quarter more than its input."""
    submit_method: int = 0
    """JobSubmitMethod: 0 the command, 2 the Python client."""

    @classmethod
    def here(cls, *, submit_method: int = 0) -> "Site":
        """The machine that we are on."""
        return cls(
            arch=architecture(),
            opsys=operating_system(),
            file_system_domain=socket.gethostname(),
            submit_method=submit_method,
        )


class Disk:
    """The files that a description names; each is looked at once, however many jobs name it."""

    def __init__(self) -> None:
        self._sizes: dict[Path, int | None] = {}

    def size(self, path: Path) -> int | None:
        """Bytes of a file, or of all files below a directory; None if there is no such thing."""
        if path not in self._sizes:
            self._sizes[path] = _size(path)
        return self._sizes[path]

    @staticmethod
    def unreadable(path: Path) -> str:
        """Why a file cannot be read, as the end of a sentence; empty if it can."""
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return "does not exist"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return "" if os.access(path, os.R_OK) else "cannot be read: Permission denied"

    @staticmethod
    def unwritable(path: Path) -> str:
        """Why a file cannot be written or made, as a sentence; empty if it can."""
        if not os.path.isdir(path.parent):  # noqa: PTH112 - pathlib's raises where we may not look
            return f"there is no directory {path.parent}"
        if os.path.isdir(path):  # noqa: PTH112 - the same
            return f"{path} is a directory"
        target = path if os.path.lexists(path) else path.parent
        return "" if os.access(target, os.W_OK) else f"we may not write {target}"


def _size(path: Path) -> int | None:
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib's raises where we may not look
            return path.stat().st_size
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    except OSError:
        return None
