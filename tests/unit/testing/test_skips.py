from pathlib import Path

from kettle.testing import skips

LISTED = """\
# The machine

no engine answers *
  we may read everything
"""


def test_unless_a_list_is_named_every_reason_may_be() -> None:
    assert skips.allowed({}) is None


def test_a_reason_that_is_not_listed_is_a_complaint(tmp_path: Path) -> None:
    """Lines are patterns; comments and empty lines are none."""
    (tmp_path / "list").write_text(LISTED)
    patterns = skips.allowed({skips.VARIABLE: str(tmp_path / "list")})
    assert patterns is not None
    assert ["no engine answers *", "we may read everything"] == patterns
    assert "" == skips.complaint("Skipped: no engine answers at /run/x: refused", patterns)
    assert "" == skips.complaint("we may read everything", patterns)
    assert "no bwrap (Debian package bubblewrap)" in skips.complaint(
        "Skipped: no bwrap (Debian package bubblewrap)", patterns
    )


def test_the_list_of_this_repository_names_no_package_of_debian() -> None:
    """What can be installed is, so its absence is no reason."""
    file = Path(__file__).parents[2] / "allowed_skips.txt"
    patterns = skips.allowed({skips.VARIABLE: str(file)})
    assert patterns
    assert [] == [pattern for pattern in patterns if "Debian" in pattern]
    assert "" != skips.complaint("no runc (Debian package runc)", patterns)
