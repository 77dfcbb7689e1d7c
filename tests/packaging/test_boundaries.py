"""The import contracts hold, and they bite."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kettle_wire.endpoint import Endpoint

# Run lint-imports on a copy: the editable install of the real tree must not be seen beside it.
_LINT = """
import sys
copy, *real = sys.argv[1:]
sys.path = [f"{copy}/{root}" for root in ("libs", "schemas", "services")] + [p for p in sys.path if p not in real]
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename=f"{copy}/pyproject.toml", cache_dir=None))
"""

# What the planted imports name.
_NAMED = {
    "schemas/kettle_wire/commands",
    "libs/kettle/classad",
    "libs/kettle/matchmaking",
    "libs/kettle/storage",
    "services/kettle_services/cli",
    "services/kettle_services/negotiator",
    "services/kettle_services/schedd",
    "services/kettle_services/schedd/domain",
}

_HEAVY = {"asyncpg", "aiohttp", "nats", "numpy", "opentelemetry"}
_NO_DATABASE = {"asyncpg", "kettle.storage"}
_NO_EXPRESSIONS = {"kettle.classad", "kettle.matchmaking", "re2"}
_NOWHERE = {
    "aiohttp", "authlib", "cryptography", "multiprocessing", "opentelemetry", "pyarrow", "rich",
    "kettle.audit", "kettle.client", "kettle.submit", "kettle.testing", "kettle_services.cli",
}  # fmt: skip
"""What no service loads before somebody asks for what it is for."""
_BUT = {"ce": {"kettle.submit"}, "scaler": {"kettle.submit"}, "schedd": {"kettle.submit"}}
"""Units of pool files are those of submissions; job transforms and routes are in their language."""

_ROLES = {
    "master": {
        "nats",
        "numpy",
        *_NO_DATABASE,
        *_NO_EXPRESSIONS,
    },  # it asks its own servers whether they are up
    "schedd": {"numpy"},
    "shadow": {"numpy", *_NO_DATABASE},
    "startd": {"numpy", *_NO_DATABASE},
    "starter": {"asyncio", "email", "inspect", "nats", "numpy", "ssl", *_NO_DATABASE, *_NO_EXPRESSIONS},
    "collector": set[str](),
    "negotiator": set[str](),
    "accounting": {"numpy"},
    "iam": {"numpy", *_NO_EXPRESSIONS},
    "dagman": {"numpy", *_NO_EXPRESSIONS},
    "sessions": {"numpy", *_NO_EXPRESSIONS},
    "provisioner": {"numpy", *_NO_DATABASE, *_NO_EXPRESSIONS},
    "ce": {"numpy"},
    "scaler": set[str](),
    "worker": {"nats", "numpy", *_NO_DATABASE, *_NO_EXPRESSIONS},
    "gateway": {"numpy", *_NO_DATABASE, *_NO_EXPRESSIONS},
}
_LATER = {"asyncio", "kettle.client.events", "kettle.submit", "logging", "tempfile", "threading"}
"""What takes longer to load than a command that asks one question takes to ask it."""
_IMPORTS = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*(name for name, module in sys.modules.items() if module is not None), sep="\\n")
"""


@pytest.fixture
def skeleton(top: Path, components: list[Path], tmp_path: Path) -> Path:
    """A tree of the same components, all empty, under the real contracts."""
    (tmp_path / "pyproject.toml").write_text((top / "pyproject.toml").read_text())
    for component in {str(path.relative_to(top)) for path in components} | _NAMED:
        plant(tmp_path, f"{component}/__init__.py", "")
    return tmp_path


def lint(tree: Path, roots: list[Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", _LINT, str(tree), *map(str, roots)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def plant(tree: Path, module: str, text: str) -> None:
    file = tree / module
    file.parent.mkdir(parents=True, exist_ok=True)
    for package in list(file.relative_to(tree).parents)[:-2]:  # neither the root nor the tree
        (tree / package / "__init__.py").touch()
    file.write_text(text)


def test_an_empty_tree_keeps_the_contracts(skeleton: Path, roots: list[Path]) -> None:
    """Nothing imported, nothing broken: what the other tests see is what they planted."""
    found = lint(skeleton, roots)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("module", "text", "contract"),
    [
        (
            "services/kettle_services/negotiator/cycle.py",
            "import kettle_services.schedd",
            "services know each other",
        ),
        (
            "services/kettle_services/cli/submit.py",
            "import kettle_services.schedd",
            "services know each other",
        ),
        ("libs/kettle/classad/values.py", "import kettle_services.schedd", "services over libraries"),
        ("libs/kettle/classad/evaluator.py", "import kettle.storage", "libraries stand"),
        ("schemas/kettle_wire/events.py", "import kettle.classad", "services over libraries"),
        ("services/kettle_services/astrologer/__init__.py", "", "services know each other"),
        ("libs/kettle/astrology/__init__.py", "", "libraries stand"),
        ("services/kettle_services/schedd/domain/jobs/job.py", "import time", "domains are pure"),
        (
            "services/kettle_services/schedd/domain/jobs/job.py",
            "from datetime import datetime",
            "domains are pure",
        ),
        ("libs/kettle/classad/functions.py", "import asyncio", "expressions and matching are pure"),
        ("schemas/kettle_wire/commands.py", "import nats", "the wire contract is only a contract"),
    ],
)
def test_a_planted_violation_is_found(
    skeleton: Path, roots: list[Path], module: str, text: str, contract: str
) -> None:
    """Each contract breaks, by name, on the import that it forbids."""
    plant(skeleton, module, text)
    found = lint(skeleton, roots)
    broken = [line for line in found.stdout.splitlines() if line.startswith(contract)]
    assert found.returncode == 1, found.stdout + found.stderr
    assert broken, found.stdout


def test_a_planted_circle_of_packages_is_found(skeleton: Path, roots: list[Path]) -> None:
    """Two packages that import from each other are one, also where no module of theirs imports itself."""
    negotiator = "services/kettle_services/negotiator"
    plant(skeleton, f"{negotiator}/domain/shares.py", "import kettle_services.negotiator.reports.lines")
    plant(skeleton, f"{negotiator}/reports/lines.py", "")
    plant(skeleton, f"{negotiator}/reports/pages.py", "import kettle_services.negotiator.domain.shares")
    found = lint(skeleton, roots)
    broken = [line for line in found.stdout.splitlines() if "No cycles are allowed" in line]
    assert found.returncode == 1, found.stdout + found.stderr
    assert broken == ["No cycles are allowed in kettle_services.negotiator."]


@pytest.mark.parametrize(
    ("component", "unwanted"),
    [
        ("kettle_wire", _HEAVY),
        ("kettle.client", _HEAVY - {"nats", "opentelemetry"}),  # the client speaks on the bus, and traces
        ("kettle.client.short_lived", _HEAVY | _NO_EXPRESSIONS | _LATER),
    ],
)
def test_light_components_stay_light(component: str, unwanted: set[str], tmp_path: Path) -> None:
    """
    What a submitter imports brings no driver of a database and no web server along; a short command, no event loop.
    """
    assert set() == unwanted & loaded(component, tmp_path)


@pytest.mark.parametrize(
    "package", ["libs/kettle/bindings", "services/kettle_services/cli", "services/kettle_services/condor"]
)
def test_what_people_use_asks_through_the_client(top: Path, package: str) -> None:
    """No command and no binding builds a request of its own: whatever a request learns is taught once."""
    endpoints = {
        name
        for module in (top / "schemas/kettle_wire/commands").glob("*.py")
        for name, value in vars(import_module(f"kettle_wire.commands.{module.stem}")).items()
        if isinstance(value, Endpoint)
    }
    named = {
        alias.name
        for module in (top / package).rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kettle_wire.commands")
        for alias in node.names
    }
    assert "QUERY_JOBS" in endpoints
    assert set() == endpoints & named


@pytest.mark.parametrize("role", sorted(_ROLES))
def test_a_service_loads_only_what_its_role_needs(role: str, tmp_path: Path) -> None:
    """Each pool starts eight processes: a useless import costs each person time, and each machine memory."""
    unwanted = (_NOWHERE | _ROLES[role]) - _BUT.get(role, set())
    assert set() == unwanted & loaded(f"kettle_services.{role}.__main__", tmp_path)


def test_every_service_is_looked_at(top: Path) -> None:
    """No service is left out above; `cli` is none."""
    assert set(_ROLES) == {
        path.parent.name for path in top.glob("services/kettle_services/*/__main__.py")
    } - {"cli"}


def loaded(module: str, directory: Path) -> set[str]:
    """The modules that a process has when it has imported one."""
    imported = subprocess.run(
        [sys.executable, "-P", "-c", _IMPORTS, module],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert imported.returncode == 0, imported.stderr
    return set(imported.stdout.split())
