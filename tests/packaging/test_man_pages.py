"""Manual pages follow from the declarations of the commands."""

import re
import runpy
from pathlib import Path

import pytest

from kettle_services.cli.commands import COMMANDS
from kettle_services.condor.start import COMMANDS as CONDOR

_REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi", ".br"}


@pytest.fixture(scope="module")
def pages(top: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages by their names."""
    directory = tmp_path_factory.mktemp("man")
    assert 0 == runpy.run_path(str(top / "docs" / "man_pages.py"))["main"]([str(directory)])
    return {path.stem: path.read_text() for path in directory.glob("*.1")}


def test_each_command_has_a_page(pages: dict[str, str]) -> None:
    """And nothing else has."""
    assert {"kettle", *(f"kettle-{name}" for name in COMMANDS), *CONDOR} == set(pages)


def test_options_are_in_them_with_what_they_mean(pages: dict[str, str]) -> None:
    """Also those of commands within commands, and those whose explanation takes several lines."""
    assert "\\fB\\-\\-constraint EXPR\\fR\nonly jobs for whose ad" in pages["kettle-q"]
    assert "kettle config check" in pages["kettle-config"]
    assert "\\fBFILE\\fR\ncheck this file instead" in pages["kettle-config"]
    simulate = pages["condor_gpu_discovery"].partition("\\-simulate")[2]
    assert "\n3 TITAN RTX, 4 A100" in simulate.partition(".TP")[0]


def test_no_text_is_taken_for_a_request(pages: dict[str, str]) -> None:
    """A line that begins with a dot or an apostrophe would be one; a backslash begins an escape."""
    for name, text in pages.items():
        for line in text.splitlines():
            assert not line.startswith("'"), name
            assert not line.startswith(".") or line.split()[0] in _REQUESTS, (name, line)
            assert not re.sub(r"\\(e|-|&|f[BR])", "", line).count("\\"), (name, line)
