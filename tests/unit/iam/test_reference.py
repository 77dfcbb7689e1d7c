"""The page about HTTP says what is refused, and how."""

import re
from pathlib import Path

from kettle_services.iam.domain.refusals import Code

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "iam.md"
ON_THE_BUS = {
    "ban.unknown",
    "client.taken",
    "join.not_renewed",
    "join.too_many",
    "join.unknown_worker",
    "token.too_many",
    "value.changed",
    "value.too_much",
    "value.unknown",
}
"""Codes of refusals that only the bus has, where they are said in a sentence."""


def test_every_code_is_explained() -> None:
    """The table of refusals names all codes, and none that there is not."""
    rows = re.findall(r"^\| (`.*?) \| \d+ \|", PAGE.read_text(), re.MULTILINE)
    named = {code for row in rows for code in re.findall(r"`([a-z_]+\.[a-z_]+)`", row)}
    assert {code.value for code in Code} - ON_THE_BUS == named
