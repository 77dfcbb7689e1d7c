"""Templates are compiled once, and again when what they were made from has changed."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import jinja2
import pytest

from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.rendering import Templates
from kettle_wire.rest.administration import Workers


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the templates that are compiled, as they are."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    compile_really, names = jinja2.Environment.compile, list[str]()

    def compile_noted(self: jinja2.Environment, source: str, name: str, filename: str) -> object:
        names.append(name)
        return compile_really(self, source, name, filename)

    monkeypatch.setattr(jinja2.Environment, "compile", compile_noted)
    return names


def page(templates: Templates) -> str:
    frame = Frame(title="a title", path="/", query={}, now=datetime(2026, 3, 1, tzinfo=UTC), assets={})
    return templates.render("page.html", frame, Workers(workers=[], join_tokens=[]))


def test_what_is_compiled_is_kept_until_its_text_changes(compiled: list[str], tmp_path: Path) -> None:
    """A second gateway compiles nothing; one whose template is another compiles that one."""
    written, kept = tmp_path / "templates", tmp_path / "kept"
    written.mkdir()
    kept.mkdir()
    (written / "page.html").write_text("one: {{ frame.title }}")
    (written / "other.html").write_text("other")
    assert "one: a title" == page(Templates(written, kept=kept))
    assert ["other.html", "page.html"] == compiled
    assert "one: a title" == page(Templates(written, kept=kept))
    assert 2 == len(compiled)
    (written / "page.html").write_text("two: {{ frame.title }}")
    assert "two: a title" == page(Templates(written, kept=kept))
    assert "page.html" == compiled.pop()
    assert 2 == len(compiled)


def test_where_nothing_can_be_kept_each_compiles(compiled: list[str], tmp_path: Path) -> None:
    """A directory that is not there costs time and nothing else."""
    written = tmp_path / "templates"
    written.mkdir()
    (written / "page.html").write_text("{{ frame.title }}")
    for _ in range(2):
        assert "a title" == page(Templates(written, kept=tmp_path / "missing"))
    assert ["page.html", "page.html"] == compiled
