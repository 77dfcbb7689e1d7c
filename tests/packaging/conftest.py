"""
The tree as it lies on disk, and as pyproject.toml describes it.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

_TOP = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def top() -> Path:
    return _TOP


@pytest.fixture(scope="session")
def roots() -> list[Path]:
    """
    The directories that each hold a part of the namespace: found, not listed.
    """
    return sorted(path.parent for path in _TOP.glob("*/kettle") if path.is_dir())


@pytest.fixture(scope="session")
def components(roots: list[Path]) -> list[Path]:
    return sorted(
        path
        for root in roots
        for path in (root / "kettle").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    )


@pytest.fixture(scope="session")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((_TOP / "pyproject.toml").read_text())
