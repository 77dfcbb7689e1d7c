"""The place of a demonstration, and what is left of it."""

import io
import shutil
import tempfile
from pathlib import Path

import pytest

from kettle_services.cli.demonstration import demonstration_pool
from kettle_services.cli.output.screen import Screen


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Demonstrations take place below the directory of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_nothing_is_left_of_one_that_fails() -> None:
    """Its files are gone, and what went wrong is told."""
    screen = Screen(out=io.StringIO(), err=io.StringIO(), environ={})
    places: list[Path] = []
    with pytest.raises(RuntimeError, match="no histogram"):
        fails(screen, places)
    assert [False] == [each.exists() for each in places]


def fails(screen: Screen, places: list[Path]) -> None:
    with demonstration_pool(screen, keep=False) as made:
        places.append(made.place)
        (made.place / "evidence").touch()
        raise RuntimeError("no histogram")


def test_its_files_are_kept_for_who_wants_to_look() -> None:
    """And it is said where."""
    said = io.StringIO()
    with demonstration_pool(Screen(out=io.StringIO(), err=said, environ={}), keep=True) as made:
        (made.place / "evidence").touch()
    assert (made.place / "evidence").exists()
    assert str(made.place) in said.getvalue()
    shutil.rmtree(made.place)
