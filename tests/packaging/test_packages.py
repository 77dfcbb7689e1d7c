"""
Three packages, one per root, in one distribution: every tool is told each, and the wheel has all of each.
"""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

PACKAGES = {"libs/kettle", "schemas/kettle_wire", "services/kettle_services"}
ROOTS = {"libs", "schemas", "services"}


def test_one_package_per_root(top: Path, packages: list[Path]) -> None:
    """The tree has the packages that it promises, and no other."""
    assert PACKAGES == {str(package.relative_to(top)) for package in packages}


def test_every_package_has_an_init(packages: list[Path]) -> None:
    """A directory with modules is a regular package, which says what it is for."""
    modules = [module for package in packages for module in package.rglob("*.py")]
    assert modules
    assert set() == {module.parent for module in modules if not (module.parent / "__init__.py").exists()}


def test_every_tool_is_told_every_root(pyproject: dict[str, Any]) -> None:
    """A tool that misses one root says "success" about the others."""
    tool = pyproject["tool"]
    assert ROOTS == set(tool["hatch"]["build"]["dev-mode-dirs"])
    assert PACKAGES == set(tool["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert ROOTS <= set(tool["hatch"]["build"]["targets"]["sdist"]["only-include"])
    assert ROOTS == set(tool["pytest"]["ini_options"]["pythonpath"])
    assert ROOTS | {"tests"} == set(tool["mypy"]["files"])
    assert ROOTS == set(tool["mypy"]["mypy_path"])
    assert ROOTS | {"tests"} == set(tool["pyright"]["include"])
    assert ROOTS == set(tool["pyright"]["extraPaths"])
    assert ROOTS | {"tests"} == set(tool["ruff"]["src"])
    assert {package.split("/")[1] for package in PACKAGES} == set(tool["importlinter"]["root_packages"])


def test_the_installed_project_exposes_every_package(packages: list[Path], tmp_path: Path) -> None:
    """Seen from another directory, the installed project is the packages of this tree."""
    names = [package.name for package in packages]
    code = f"import {', '.join(names)}; print({', '.join(f'{name}.__file__' for name in names)}, sep=chr(10))"
    seen = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert packages == [Path(line).resolve().parent for line in seen.stdout.splitlines()]


def test_the_wheel_holds_every_file(top: Path, packages: list[Path], tmp_path: Path) -> None:
    """The wheel has the files of all three packages, those that are no modules too, and nothing else."""
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
        str(file.relative_to(package.parent))
        for package in packages
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert lying == packed
