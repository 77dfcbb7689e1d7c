"""
The port of an iam whose settings name none: chosen here, before it starts, and told to programs of the host.
"""

from pathlib import Path

from kettle.auth.private_files import private_directory
from kettle.embedded.ports import kept_port, remembered_port


def keep_port(home: Path) -> int:
    """
    A port that can be had. Before the iam starts: it and the file for the host's programs, which are made side by side, then
    know the same one.
    """
    return kept_port(_file(home))


def port(home: Path) -> int:
    """The port, of an iam that listens there as well: to others that cannot be had, so it is not asked."""
    return remembered_port(_file(home)) or keep_port(home)


def _file(home: Path) -> Path:
    return private_directory(home / "iam") / "port"
