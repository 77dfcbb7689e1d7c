"""Programs of others, each with what it needs in an environment of its own, installed on demand."""

import hashlib
import os
import re
import shutil
import sys
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from kettle.testing.commands.running import execute

SCRIPTS: Final = Path(__file__).parents[1] / "acceptance"
ORDER: Final = "KETTLE_TEST_CLIENTS"
"""A variable: `1`, or the path of a directory in which environments are kept for the next time."""
INSTALLED_WITHIN_S: Final = 600.0
_COMPLETE: Final = "complete"
"""A file that is there when everything has been installed."""


async def python_of(script: str, module: str, tmp_path: Path) -> str:
    """
    A Python that has a client and what it needs, and not Kettle: made as the script's own list of packages says.
    """
    text = (SCRIPTS / script).read_text()
    listed = re.search(r"^# dependencies = (\[.*\])", text, re.MULTILINE)
    assert listed is not None
    alone = re.search(r"^# alone = (\[.*\])", text, re.MULTILINE)
    return await python_with(
        literal_eval(listed[1]), module, tmp_path, alone=literal_eval(alone[1]) if alone else ()
    )


async def python_with(
    packages: Sequence[str], module: str, tmp_path: Path, *, alone: Sequence[str] = ()
) -> str:
    """
    A Python of its own with some packages, which needs a package registry and a minute, and therefore an order.

    `alone`: packages that are installed, and built where they must be, with no more than what is there by then.
    """
    if ORDER not in os.environ:
        pytest.skip(f"{module} is not installed ({ORDER}=1 installs clients into environments of their own)")
    place = _place([*packages, *alone], tmp_path)
    python = str(place / "bin" / "python")
    if not (place / _COMPLETE).exists():
        made = await execute([sys.executable, "-m", "venv", str(place)], tmp_path, dict(os.environ))
        assert 0 == made.status, made
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        environ = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
        steps = [[*install, *packages]]
        steps += [[*install, "--no-deps", "--no-build-isolation", *alone]] if alone else []
        for words in steps:
            installed = await execute(words, tmp_path, environ, within_s=INSTALLED_WITHIN_S)
            if f"No matching distribution found for {module}\n" in installed.err:
                pytest.skip(f"{module} is not in the package registry that is in use here")
            assert 0 == installed.status, installed
        (place / _COMPLETE).touch()
    return python


async def program_of_node(package: str, program: str, tmp_path: Path) -> str:
    """A program of a package of Node's, made as `python_with` makes its environments."""
    if ORDER not in os.environ:
        pytest.skip(f"{program} is not installed ({ORDER}=1 installs clients into environments of their own)")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    place = _place([package], tmp_path)
    place.mkdir(parents=True, exist_ok=True)
    if not (place / _COMPLETE).exists():
        words = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(place), package]
        installed = await execute(words, tmp_path, dict(os.environ), within_s=INSTALLED_WITHIN_S)
        assert 0 == installed.status, installed
        (place / _COMPLETE).touch()
    return str(place / "node_modules" / ".bin" / program)


def _place(packages: Sequence[str], tmp_path: Path) -> Path:
    """The directory of the environment with these packages."""
    kept = Path(os.environ[ORDER])
    if not kept.is_absolute():
        return tmp_path / "environment"
    kept.mkdir(parents=True, exist_ok=True)
    return kept / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]
