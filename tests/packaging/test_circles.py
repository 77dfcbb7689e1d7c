"""No module imports itself through others."""

import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def circle(*packages: str) -> str:
    """
    A circle of imports in these packages, spelled out; empty if there is none.

    Imports inside of functions count: they hide a circle and do not open it.
    Those for the type checker alone do not: an ad holds values and a value may be an ad, so their types name each other,
    and no process ever follows these names.
    """
    graph = grimp.build_graph(*packages, cache_dir=None, exclude_type_checking_imports=True)
    importers = {
        module: sorted(graph.find_modules_that_directly_import(module)) for module in sorted(graph.modules)
    }
    try:
        TopologicalSorter(importers).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def test_no_module_imports_itself_through_others(packages: list[Path]) -> None:
    """Who reads a module finds all that it stands on below it."""
    assert not circle(*(package.name for package in packages))


@pytest.mark.parametrize(
    ("name", "back", "found"),
    [
        ("planted_at_once", "import {0}.a", True),
        ("planted_for_later", "def later():\n    from {0} import a", True),
        (
            "planted_for_types",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {0}.a import A",
            False,
        ),
    ],
)
def test_a_planted_circle_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, back: str, *, found: bool
) -> None:
    """Also one that a function hides; what only a type checker follows is none."""
    for module, text in {
        "__init__": "",
        "a": f"from {name}.b import B",
        "b": f"from {name} import c",
        "c": back.format(name),
    }.items():
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{module}.py").write_text(text + "\n")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])

    said = circle(name)

    ring = [f"{name}.{module}" for module in "abc"]
    turned = {" -> ".join([*ring[i:], *ring[:i], ring[i]]) for i in range(len(ring))}
    assert said in turned if found else not said


def test_a_package_that_its_own_modules_import_is_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that imports its modules is above them: they do not ask it for names."""
    package = tmp_path / "planted_package"
    package.mkdir()
    (package / "__init__.py").write_text("from planted_package.part import NAME\n")
    (package / "part.py").write_text("from planted_package import OTHER\n")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    assert "planted_package.part" in circle("planted_package")
