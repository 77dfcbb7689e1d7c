"""The documents hang together."""

import ast
import importlib.util
import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kettle.jobs.ad import KEPT, LATER
from kettle.submit.commands import NAMES, NOT_YET
from kettle_wire.events import Event, Superseded
from kettle_wire.events.codec import Codec

KINDS = {"added", "changed", "deprecated", "removed", "fixed", "security"}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)[^)]*\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def generator(top: Path) -> Any:
    """`docs/generate.py`, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("kettle_docs_generate", top / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part(top: Path, name: str) -> dict[str, Any]:
    """What a module beside it has."""
    return runpy.run_path(str(top / "docs" / f"{name}.py"))


def prose(top: Path) -> list[Path]:
    """Every page that a reader may open, the fragments of the changelog too."""
    return [*top.glob("*.md"), *(top / "docs").rglob("*.md"), *(top / "services").rglob("*.md")]


def test_relative_links_lead_somewhere(top: Path) -> None:
    """A reader who follows a link inside the repository arrives."""
    broken = [
        f"{page.relative_to(top)}: {target}"
        for page in prose(top)
        for target in _LINK.findall(_CODE.sub("", page.read_text()))
        if not (page.parent / target).exists()
    ]
    assert [] == broken


def test_decisions_have_one_number_each(top: Path) -> None:
    """A decision is cited by its number, so the number is four digits and nobody else's."""
    names = [page.name for page in (top / "docs/decisions").glob("*.md") if page.name != "README.md"]
    assert names
    assert [] == [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)]
    assert [] == [n for n, times in Counter(name[:4] for name in names).items() if times > 1]


def test_news_fragments_are_named_by_kind(top: Path) -> None:
    """A release sorts the fragments by the second part of their names."""
    names = [page.name for page in (top / "docs/changes").iterdir() if page.name != "README.md"]
    kinds = [re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", name) for name in names]
    assert [] == [n for n, k in zip(names, kinds, strict=True) if k is None or k[1] not in KINDS]


def test_the_reference_is_what_the_code_makes_of_it(top: Path, generator: Any) -> None:
    """
    A setting, a command or an event that is not in the reference is forgotten; `docs/generate.py` writes it down.
    """
    stale = [
        name
        for name, text in generator.pages().items()
        if text != (top / "docs/reference" / name).read_text()
    ]
    assert [] == stale, "run .venv/bin/python docs/generate.py"


def test_the_picture_of_the_imports_shows_these_imports(top: Path, generator: Any) -> None:
    """An arrow that nobody drew is one that nobody has thought about."""
    stale = [
        name
        for name, picture in generator.pictures().items()
        if picture != (top / "docs/explanation" / name).read_text()
    ]
    assert [] == stale, "run .venv/bin/python docs/generate.py"


def test_what_the_queue_sets_is_in_the_reference(top: Path) -> None:
    """Also what only some jobs have: no test runs one of every kind."""
    known = {
        name.lower()
        for kind in ("Job", "Queue", "all")
        for name in part(top, "list_attributes")["attributes"]()[kind].attributes
    }
    assert set() == {name.lower() for name in (*KEPT, *LATER)} - known


def test_superseded_events_stay_in_the_reference(top: Path) -> None:
    """What is in the log from long ago is described, and who reads it is told what it becomes."""

    class Held(Event, frozen=True, tag="job.held/2"):
        why: str

    class HeldV1(Superseded, frozen=True, tag="job.held/1"):
        reason: str

        def upcast(self) -> Held:
            return Held(why=self.reason)

    page = part(top, "list_events")["events_page"](Codec[Event]([Held], [HeldV1]))
    assert "## `job.held/1`, superseded\n\nNot written any more; readers get it as `job.held/2`." in page
    assert "| `reason` | text | always there |" in page


def test_the_generator_writes_over_no_promise(
    generator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Where a published schema does not hold any more, nothing is written and the sentence says what to do.
    """
    monkeypatch.setattr(generator, "TOP", tmp_path)
    monkeypatch.setattr(generator, "PAGES", tmp_path)
    monkeypatch.setattr(generator, "EXPLANATION", tmp_path)
    monkeypatch.setattr(generator, "SCHEMAS", tmp_path)
    monkeypatch.setattr(generator, "pages", lambda: {"page.md": "text"})
    monkeypatch.setattr("sys.argv", ["generate.py"])
    assert 0 == generator.main()
    made = (tmp_path / "page.md", tmp_path / "events/job.held.1.json")
    assert all(path.is_file() for path in made)
    promised = made[1].read_text().replace('"subcode"', '"detail"')
    made[1].write_text(promised)
    made[0].unlink()
    capsys.readouterr()

    assert 1 == generator.main()

    assert "job.held/1: detail is gone; a published type is only superseded" in capsys.readouterr().out
    assert (False, promised) == (made[0].exists(), made[1].read_text())


def test_every_setting_says_what_it_means(top: Path) -> None:
    """A setting that the reference can only name has no docstring below its field."""
    assert [] == part(top, "list_settings")["without_meaning"]()


def test_the_page_of_a_service_names_files_that_exist(top: Path) -> None:
    """A reader who looks for the module that a page names finds it, from the page's directory or the top."""
    lost = [
        f"{page.relative_to(top)}: {name}"
        for page in (top / "services").rglob("README.md")
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text())
        if not (page.parent / name).exists() and not (top / name).exists()
    ]
    assert [] == lost


def test_every_service_has_a_page(top: Path) -> None:
    """Who is woken at night finds what a service owns, how it fails and how it is stopped beside its code."""
    services = [path.parent for path in (top / "services/kettle_services").glob("*/__init__.py")]
    assert services
    assert [] == sorted(path.name for path in services if not (path / "README.md").is_file())


def test_examples_can_be_read(top: Path) -> None:
    """A piece of Python in a page is Python, and a fence says what it holds."""
    for page in prose(top):
        text = page.read_text()
        assert text.count("\n```") % 2 == 0, f"{page.relative_to(top)}: a fence is left open"
        for language, code in _FENCE.findall(text):
            if language == "python":
                ast.parse(code, str(page.relative_to(top)))


def test_decisions_say_what_a_decision_must(top: Path) -> None:
    """A record without what was given up, or without how a mistake would show, is an announcement."""
    wanted = ("## Context", "## Choice", "## What we gave up", "## How we would notice that it was wrong")
    missing = [
        f"{page.name}: {title}"
        for page in sorted((top / "docs/decisions").glob("0*.md"))
        for title in wanted
        if f"\n{title}\n" not in page.read_text()
    ]
    assert [] == missing


def test_every_submit_command_has_its_state(top: Path) -> None:
    """
    What is accepted is in the reference, and what the reference says of a command is what becomes of it.
    """
    found = part(top, "list_submit_commands")["submit_commands"]()
    accepted = {name for name in (*found.carried_out, *found.noted) if name.isidentifier()}
    assert set(NAMES) == accepted
    assert set(found.refused) == NOT_YET
    assert not found.carried_out.keys() & found.noted.keys()
