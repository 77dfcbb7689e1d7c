"""
Helper programs for jobs, in a directory beside the sandboxes: a job's account may not be able to read ours.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SOURCES: Final = {
    "condor_chirp": "condor_chirp.py",
    "kettle_mpi": "kettle_mpi.sh",
    "kettle_rsh": "kettle_rsh.sh",
}
"""Files beside this one, by name of the program."""


INSIDE: Final = ".condor_bin"
"""The directory in a container: one in the sandbox, with copies."""


def directory(execute: str) -> str:
    """Where they are, for jobs with sandboxes in `execute`."""
    return f"{execute}/bin"


def install(execute: Path) -> None:
    """Put copies of them there; what is right already is not touched. Raises OSError."""
    place = Path(directory(str(execute)))
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    for name, source in _SOURCES.items():
        text, target = Path(__file__).with_name(source).read_bytes(), place / name
        if target.is_file() and target.read_bytes() == text:
            continue
        draft = place / f".{name}"
        draft.write_bytes(text)
        draft.chmod(0o755)
        draft.rename(target)


def bring(execute: str, place: Callable[[str, str], object]) -> None:
    """
    Have them placed in the sandbox of a job in a container: `place` takes the name there and the file. Raises OSError.
    """
    for name in _SOURCES:
        if os.path.isfile(path := f"{directory(execute)}/{name}"):  # noqa: PTH113 - as below
            place(f"{INSIDE}/{name}", path)


def remove(execute: str) -> None:
    """Take them away if nothing else is left beside them: nobody needs them any more."""
    with contextlib.suppress(OSError):
        place = directory(execute)
        if os.listdir(execute) == [os.path.basename(place)]:  # noqa: PTH119, PTH208 - short
            for name in os.listdir(place):  # noqa: PTH208
                os.unlink(f"{place}/{name}")  # noqa: PTH108
            os.rmdir(place)  # noqa: PTH106
