"""The pages that say where each behaviour lives, and how the end of a job travels, name what there is."""

import importlib
import re
from pathlib import Path

import pytest

NAMED = re.compile(r"`((?:kettle|kettle_services|kettle_wire)(?:\.\w+)*)(?::([\w.]+))?`")


def named(page: Path) -> list[tuple[str, str]]:
    """Each module that the page names, and what it names in it."""
    return [found for found in NAMED.findall(page.read_text()) if "<" not in found[0]]


def missing(module: str, symbol: str) -> bool:
    """Whether there is no such thing."""
    try:
        place: object = importlib.import_module(module)
    except ModuleNotFoundError:
        return True
    for name in symbol.split(".") if symbol else []:
        if not hasattr(place, name):
            return True
        place = getattr(place, name)
    return False


@pytest.mark.parametrize(("page", "least"), [("where-is.md", 40), ("end-of-a-job.md", 20)])
def test_each_behaviour_is_where_the_page_says(top: Path, page: str, least: int) -> None:
    """A reader who follows a name finds it; a developer who renames it corrects the page."""
    found = named(top / "docs/explanation" / page)
    assert len(found) >= least
    assert [] == [f"{module}:{symbol}" for module, symbol in found if missing(module, symbol)]


@pytest.mark.parametrize(
    ("module", "symbol"),
    [
        ("kettle_services.astrologer", ""),
        ("kettle.fairshare", "horoscope"),
        ("kettle_wire.codes", "HoldCode.FULL_MOON"),
    ],
)
def test_a_wrong_name_is_found(module: str, symbol: str) -> None:
    """The check bites on a module, a symbol and a member that are not there."""
    assert missing(module, symbol)
