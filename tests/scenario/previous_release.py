"""
Another version of Kettle, as its wheel: built from a commit, and put where a pool of tests finds it before
this one.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[2]


def commit_before() -> str:
    """The newest release; where none has a tag yet, the commit on which this branch began."""
    tagged = _said("git", "describe", "--tags", "--abbrev=0", "HEAD~1", check=False)
    return tagged or _said("git", "rev-list", "--max-count=1", "--first-parent", "HEAD~1")


def packages_of(commit: str, directory: Path) -> Path:
    """The packages of a commit, in a directory for PYTHONPATH."""
    source = directory / "source"
    source.mkdir(parents=True)
    tree = subprocess.run(["git", "archive", commit], cwd=TOP, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x"], cwd=source, check=True, input=tree)
    return _installed(source, directory)


def packages_of_tree(version: str, directory: Path) -> Path:
    """The packages of this tree as it stands, as if they were of another version."""
    source = directory / "source"
    source.mkdir(parents=True)
    for name in ("libs", "schemas", "services", "pyproject.toml", "README.md", "LICENSE"):
        subprocess.run(["cp", "-a", str(TOP / name), str(source / name)], check=True)
    for path, old in (("pyproject.toml", 'version = "'), ("libs/kettle/__init__.py", '\nVERSION = "')):
        text = (source / path).read_text()
        head, _, rest = text.partition(old)
        rest = rest[rest.index('"') :]
        (source / path).write_text(f"{head}{old}{version}{rest}")
    return _installed(source, directory)


def _installed(source: Path, directory: Path) -> Path:
    python = sys.executable
    subprocess.run([python, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"], cwd=source, check=True)
    (wheel,) = (source / "dist").glob("*.whl")
    target = directory / "packages"
    install = [
        python,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*install, "--no-compile", "--target", str(target), str(wheel)], check=True)
    return target


def _said(*words: str, check: bool = True) -> str:
    return subprocess.run(words, cwd=TOP, check=check, capture_output=True, text=True).stdout.strip()
