"""Removing what jobs left in the pool's sandboxes, however they left it."""

from contextlib import suppress
from pathlib import Path

from kettle.execution.attempts.stored_reports import load_all
from kettle.execution.sandbox.directory import remove_tree
from kettle.pool.home import Home


def sweep(home: Home) -> list[Path]:
    """
    Remove the sandboxes that nobody needs; what could not be removed.

    A finished job whose report is not confirmed yet is still needed: its outputs lie there and nowhere else.
    """
    wanted = _waiting(home)
    left: list[Path] = []
    for place in _places(home):
        with suppress(FileNotFoundError):
            found = sorted(place.iterdir())
            left += [path for path in found if path.name not in wanted and not remove(path)]
        if place != home.execute:
            with suppress(OSError):  # what is in it is still wanted, or could not be removed
                place.rmdir()
    return left


def _places(home: Home) -> list[Path]:
    """Where sandboxes are: in the home, or where the startd of root's pool says that it has put them."""
    elsewhere = home.path / "startd" / "execute"
    return [home.execute, *([elsewhere.readlink()] if elsewhere.is_symlink() else [])]


def remove(path: Path) -> bool:
    """
    Remove a file or a tree even if a job has taken our permissions on parts of it; returns whether it no longer exists.
    """
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        else:
            remove_tree(str(path))
    except OSError:
        return False
    return True


def _waiting(home: Home) -> frozenset[str]:
    reports = home.path / "startd" / "reports"
    if not reports.is_dir():
        return frozenset()
    return frozenset(stored.id.sandbox for stored in load_all(str(reports)) if stored.sandbox)
