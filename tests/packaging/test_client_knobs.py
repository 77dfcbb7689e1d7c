"""The page about HTCondor's variables at commands says what the code reads, and what it does not."""

import re
from pathlib import Path

import pytest

READ = re.compile(r'\bknobs?(?:\.get|\.raw|\.flag|\.number)?\(\s*"([A-Z][A-Z_]+)"')
ROOTS = (
    "libs/kettle/client",
    "libs/kettle/bindings",
    "libs/kettle/auth/idtokens",
    "services/kettle_services/condor",
)
OF_FACILITIES = {
    "COLLECTOR_HOST", "SCHEDD_HOST", "SCHEDD_NAME", "SCITOKENS_FILE", "AUTH_SSL_CLIENT_CAFILE", "SEC_TOKEN_DIRECTORY",
    "SEC_DEFAULT_AUTHENTICATION_METHODS", "SEC_CLIENT_AUTHENTICATION_METHODS", "CREDD_HOST", "TOOL_DEBUG",
}  # fmt: skip
"""What is set for the commands where HTCondor serves an analysis facility."""


@pytest.fixture
def tables(top: Path) -> tuple[set[str], set[str]]:
    """The knobs that commands go by, and those that they do not."""
    heeded, ignored = (top / "docs/reference/client-knobs.md").read_text().split("## What they do not go by")
    return named(heeded), named(ignored)


def named(part: str) -> set[str]:
    rows = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([A-Z0-9_*<>a-z]+)`", row)}


def test_what_is_read_is_on_the_page(top: Path, tables: tuple[set[str], set[str]]) -> None:
    """Under what they go by, and nowhere else."""
    heeded, ignored = tables
    read = {
        name
        for root in ROOTS
        for module in (top / root).rglob("*.py")
        for name in READ.findall(module.read_text())
    }
    assert len(read) > 10
    assert set() == read - heeded
    assert set() == heeded & ignored


def test_what_facilities_set_is_on_the_page(tables: tuple[set[str], set[str]]) -> None:
    """Each, whether it has an effect or not."""
    assert set() == OF_FACILITIES - tables[0] - tables[1]
