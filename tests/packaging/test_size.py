"""A module is read in one sitting."""

from pathlib import Path

LINES = 500


def test_no_module_passes_the_limit(top: Path, roots: list[Path]) -> None:
    """No module has more than 500 lines; one with more than 250 should already know why."""
    modules = [module for root in [*roots, top / "tests"] for module in root.rglob("*.py")]
    long = {m.relative_to(top): n for m in modules if (n := len(m.read_text().splitlines())) > LINES}
    assert {} == long
