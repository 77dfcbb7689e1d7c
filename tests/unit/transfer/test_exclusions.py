"""Patterns of what is not moved."""

import pytest

from kettle.transfer.exclusions import exclusions
from kettle.transfer.file_lists import ManifestError


@pytest.mark.parametrize(
    ("patterns", "name", "expected"),
    [
        ("*.tmp", "a.tmp", True),
        ("*.tmp", "d/e/a.tmp", True),
        ("*.tmp", "a.tmp.gz", False),
        ("*.tmp", "d.tmp/a", True),
        ("build/", "build/a", True),
        ("build/", "d/build/e/a", True),
        ("build/", "d/build/", True),
        ("build/", "build", False),
        ("plots/*.ps", "plots/a.ps", True),
        ("plots/*.ps", "plots/deep/a.ps", False),
        ("plots/*.ps", "d/plots/a.ps", False),
        ("/a", "a", True),
        ("/a", "d/a", False),
        ("**/old/*", "old/a", True),
        ("**/old/*", "x/y/old/a", True),
        ("d/**", "d/e/f", True),
        ("?.c", "a.c", True),
        ("?.c", "ab.c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "dx", True),
        ("a.c", "abc", False),
        ("*.o, core", "x/core", True),
        ("", "a", False),
        ("d/**", "d", False),
        (f"{'**/' * 50}x", f"{'y/' * 500}z", False),
        (f"{'*a' * 50}b", "a" * 2000, False),
    ],
)
def test_what_is_covered(patterns: str, name: str, expected: bool) -> None:
    """
    As in .gitignore: without a slash at any depth, with one from the top, with one at the end directories.
    """
    assert expected is exclusions(patterns).covers(name)


@pytest.mark.parametrize("pattern", ["!a", "/", "../a", "a//b"])
def test_what_is_no_pattern(pattern: str) -> None:
    """It is refused with the pattern."""
    with pytest.raises(ManifestError) as caught:
        exclusions(pattern)
    assert pattern in str(caught.value)
