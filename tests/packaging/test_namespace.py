"""
The traps of one namespace over three roots: each of these once failed without a word.
"""

import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOTS = {"libs", "schemas", "services"}


def test_three_roots(roots: list[Path]) -> None:
    """
    The namespace has exactly the roots that the tree promises.
    """
    assert ROOTS == {root.name for root in roots}


def test_namespace_roots_hold_only_components(roots: list[Path]) -> None:
    """
    A stray module in a root, above all an `__init__.py`, would hide the other roots.
    """
    assert [] == [file for root in roots for file in (root / "kettle").iterdir() if file.is_file()]


def test_component_names_are_unique(components: list[Path]) -> None:
    """
    Of two components with one name, the wheel would take one.
    """
    assert [] == [name for name, times in Counter(path.name for path in components).items() if times > 1]


def test_every_package_has_an_init(components: list[Path]) -> None:
    """
    Below the roots nothing is a namespace: a directory with modules says what it is.
    """
    modules = [module for component in components for module in component.rglob("*.py")]
    assert modules
    assert set() == {module.parent for module in modules if not (module.parent / "__init__.py").exists()}


def test_every_tool_is_told_every_root(pyproject: dict[str, Any]) -> None:
    """
    A tool that misses one root says "success" about the others.
    """
    tool = pyproject["tool"]
    packages = {f"{root}/kettle" for root in ROOTS}
    assert ROOTS == set(tool["hatch"]["build"]["dev-mode-dirs"])
    assert packages == set(tool["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert ROOTS <= set(tool["hatch"]["build"]["targets"]["sdist"]["only-include"])
    assert ROOTS == set(tool["pytest"]["ini_options"]["pythonpath"])
    assert ROOTS | {"tests"} == set(tool["mypy"]["files"])
    assert ROOTS == set(tool["mypy"]["mypy_path"])
    assert ROOTS | {"tests"} == set(tool["pyright"]["include"])
    assert ROOTS == set(tool["pyright"]["extraPaths"])
    assert ROOTS | {"tests"} == set(tool["ruff"]["src"])


def test_the_installed_project_exposes_every_root(roots: list[Path], tmp_path: Path) -> None:
    """
    Seen from another directory, the installed namespace has all its parts.
    """
    code = "import kettle; print(*kettle.__path__, sep='\\n')"
    seen = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert {root / "kettle" for root in roots} == {Path(line).resolve() for line in seen.stdout.splitlines()}


def test_the_wheel_holds_every_file(top: Path, roots: list[Path], tmp_path: Path) -> None:
    """
    The wheel has the files of all three roots, those that are no modules too, and nothing else.
    """
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=top,
        check=True,
        capture_output=True,
        timeout=120,
    )
    [wheel] = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    lying = {
        str(file.relative_to(root))
        for root in roots
        for file in (root / "kettle").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert lying == packed
