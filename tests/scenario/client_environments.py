"""Programs of others, each with what it needs in an environment of its own, installed on demand."""

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
INSTALLED_WITHIN_S: Final = 600.0


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
    made = await execute(
        [sys.executable, "-m", "venv", str(tmp_path / "environment")], tmp_path, dict(os.environ)
    )
    assert 0 == made.status, made
    python = str(tmp_path / "environment" / "bin" / "python")
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    installed = await execute(words, tmp_path, dict(os.environ), within_s=INSTALLED_WITHIN_S)
    assert 0 == installed.status, installed
    return python
