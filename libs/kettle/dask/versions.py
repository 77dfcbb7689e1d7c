"""
What has to be of one version in a client, a scheduler and its workers: functions and results travel as pickles between them.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

PYTHON: Final = "python"
EQUAL: Final = ("distributed", "dask")
"""Packages whose versions have to be the same."""
_TOLD: Final = (*EQUAL, "cloudpickle", "msgpack", "numpy", "pandas")


def own_versions() -> dict[str, str]:
    """Of this process, as far as they are installed."""
    found = {PYTHON: ".".join(str(part) for part in sys.version_info[:3])}
    for package in _TOLD:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def mismatch(ours: Mapping[str, str], theirs: Mapping[str, str], *, we: str, they: str) -> str:
    """
    One sentence about what does not go together; empty if all does, or the others have not said theirs.

    Of Python the first two numbers count, since pickled code depends on them.
    """
    different = [
        (name, here, there)
        for name in (PYTHON, *EQUAL)
        if (there := theirs.get(name, ""))
        and (here := ours.get(name, ""))
        and _counts(name, here) != _counts(name, there)
    ]
    if not different:
        return ""
    there = ", ".join(f"{name} {there}" for name, _, there in different)
    here = ", ".join(f"{name} {here}" for name, here, _ in different)
    return f"{they} has {there}, {we} has {here}"


def _counts(name: str, said: str) -> str:
    return ".".join(said.split(".")[:2]) if name == PYTHON else said
