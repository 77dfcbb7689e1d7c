"""
Kettle for programs in environments of their own: it is found where its commands were written from.

`kettle condor-env` writes the file `installation` beside the directory of these modules: the Python that it is installed
for, and its paths.  Only what the bindings need is looked for there, and only if the environment itself has none, so that
nothing of the program's own is hidden.  Without the file, Kettle has to be installed in the environment.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Final

NEEDED: Final = frozenset(
    {
        "_cffi_backend",
        "kettle",
        "kettle_wire",
        "msgspec",
        "nacl",
        "nats",
        "nkeys",
        "re2",
        "_re2",
        "typing_extensions",
    }
)
"""What `kettle.bindings` imports, and what that imports."""


class InstallationFinder(MetaPathFinder):
    """The last of all finders: the modules of Kettle's installation that this environment lacks."""

    def __init__(self, python: str, paths: Iterable[str]) -> None:
        self._python = python
        self._paths = list(paths)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """
        Where it is.

        Raises:
            ImportError: it is installed for another Python.
        """
        if path is not None or fullname not in NEEDED:
            return None
        found = PathFinder.find_spec(fullname, self._paths, target)
        if found is not None and self._python != sys.implementation.cache_tag:
            raise ImportError(
                f"the Kettle of {self._paths[0]} is installed for {self._python}, and this Python is "
                f"{sys.implementation.cache_tag}: install Kettle into this environment as well, or make the environment "
                "with the Python of Kettle",
                name=fullname,
            )
        return found


def find() -> None:
    """Let Kettle be found from here on, once."""
    try:
        python, *paths = (Path(__file__).parents[2] / "installation").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return
    sys.meta_path.append(InstallationFinder(python, paths))


find()
