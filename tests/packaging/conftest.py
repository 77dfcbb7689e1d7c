"""The tree as it lies on disk, and as pyproject.toml describes it."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

_TOP = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def top() -> Path:
    return _TOP


@pytest.fixture(scope="session")
def packages() -> list[Path]:
    """The import packages, one per root: found, not listed."""
    return sorted(path.parent for path in _TOP.glob("*/kettle*/__init__.py"))


@pytest.fixture(scope="session")
def roots(packages: list[Path]) -> list[Path]:
    """The directories of those packages."""
    return [package.parent for package in packages]


@pytest.fixture(scope="session")
def components(packages: list[Path]) -> list[Path]:
    return sorted(
        path for package in packages for path in package.iterdir() if (path / "__init__.py").exists()
    )


@pytest.fixture(scope="session")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((_TOP / "pyproject.toml").read_text())
