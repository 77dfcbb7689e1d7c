"""Programs of others, each with what it needs in an environment of its own, installed on demand."""

import hashlib
import os
import re
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
    listed = re.search(r"^# dependencies = (\[.*\])", (SCRIPTS / script).read_text(), re.MULTILINE)
    assert listed is not None
    return await python_with(literal_eval(listed[1]), module, tmp_path)


async def python_with(packages: Sequence[str], module: str, tmp_path: Path) -> str:
    """
    A Python of its own with some packages, which needs a package registry and a minute, and therefore an order.
    """
    if ORDER not in os.environ:
        pytest.skip(f"{module} is not installed ({ORDER}=1 installs clients into environments of their own)")
    place = _place(packages, tmp_path)
    python = str(place / "bin" / "python")
    if not (place / _COMPLETE).exists():
        made = await execute([sys.executable, "-m", "venv", str(place)], tmp_path, dict(os.environ))
        assert 0 == made.status, made
        words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        installed = await execute(words, tmp_path, dict(os.environ), within_s=INSTALLED_WITHIN_S)
        assert 0 == installed.status, installed
        (place / _COMPLETE).touch()
    return python


def _place(packages: Sequence[str], tmp_path: Path) -> Path:
    """The directory of the environment with these packages."""
    kept = Path(os.environ[ORDER])
    if not kept.is_absolute():
        return tmp_path / "environment"
    kept.mkdir(parents=True, exist_ok=True)
    return kept / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]
