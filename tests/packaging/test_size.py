"""A module is read in one sitting, and a clone has what people wrote."""

import subprocess
from pathlib import Path

import pytest

LINES = 500


def test_no_module_passes_the_limit(top: Path, roots: list[Path]) -> None:
    """No module has more than 500 lines; one with more than 250 should already know why."""
    modules = [module for root in [*roots, top / "tests"] for module in root.rglob("*.py")]
    long = {m.relative_to(top): n for m in modules if (n := len(m.read_text().splitlines())) > LINES}
    assert {} == long


def test_nothing_large_and_nothing_fetched_is_recorded(top: Path) -> None:
    """No package of somebody else was committed by mistake: its files would be in each clone for all time."""
    if not (top / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, text=True, check=True)
    found = [top / name for name in listed.stdout.split("\0") if name]
    packages = {".whl", ".deb", ".rpm", ".sif", ".gz", ".zip", ".xz", ".jar", ".exe", ".so"}
    assert [] == [path for path in found if path.suffix in packages]
    assert [] == [path for path in found if path.is_file() and path.stat().st_size > 1_000_000]
