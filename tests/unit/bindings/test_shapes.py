"""
The modules have HTCondor's names, enumerations and signatures, and hide nothing from those who do not ask for them.
"""

import enum
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import pytest

from . import oracle

MODULES: Final = Path(__file__).parents[3] / "services" / "kettle_services" / "condor" / "python"
ABSENT: Final = {
    "htcondor2": {
        "Placementd",
        "load_a_config_usermap_file",
        "reload_config_usermaps",
    },
}
"""What no client that we know of uses."""
FIRST: Final = {
    "htcondor": {
        "Schedd",
        "Submit",
        "Collector",
        "Negotiator",
        "Startd",
        "Credd",
        "SecMan",
        "JobEventLog",
        "JobEvent",
        "JobEventType",
        "JobAction",
        "JobStatus",
        "AdTypes",
        "DaemonTypes",
        "QueryOpts",
        "TransactionFlags",
        "DrainTypes",
        "CredTypes",
        "HTCondorException",
        "HTCondorIOError",
        "HTCondorLocateError",
        "HTCondorValueError",
        "param",
        "version",
        "platform",
        "enable_debug",
        "set_subsystem",
        "RemoteParam",
        "__version__",
        "FileTransferEventType",
        "poll",
    },
    "classad": {
        "ClassAd",
        "ExprTree",
        "Value",
        "Parser",
        "Function",
        "Attribute",
        "Literal",
        "quote",
        "unquote",
        "parseOne",
        "parseNext",
        "parseAds",
        "version",
        "register",
        "ClassAdException",
        "ClassAdParseError",
    },
}


def ours(name: str) -> ModuleType:
    """Our module of this name under another one: the real one is imported here, too."""
    beside = "kettle_installation"
    sys.modules.setdefault(beside, importlib.import_module(f"kettle_services.condor.python.{beside}"))
    spec = importlib.util.spec_from_file_location(f"ours_{name}", MODULES / name / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public(module: Any) -> dict[str, Any]:
    inside = cast("dict[str, Any]", vars(module))
    return {
        name: value
        for name, value in inside.items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name not in {"Optional", "Union"}
    }


def parameters(call: Any) -> list[str] | None:
    try:
        return [name for name in inspect.signature(call).parameters if name not in {"self", "kwargs"}]
    except (TypeError, ValueError):
        return None


@oracle.needed
@pytest.mark.parametrize("name", ["htcondor2", "classad2"])
def test_every_name_is_there(name: str) -> None:
    assert ABSENT.get(name, set()) == public(oracle.module(name)).keys() - public(ours(name)).keys()


@oracle.needed
def test_enumerations_are_the_same() -> None:
    module = ours("htcondor2")
    compared = 0
    for name, theirs in public(oracle.module("htcondor2")).items():
        if isinstance(theirs, type) and issubclass(theirs, enum.Enum):
            assert dict(theirs.__members__) == dict(getattr(module, name).__members__), name
            compared += 1
    assert compared > 15


@oracle.needed
@pytest.mark.parametrize("name", ["htcondor2", "classad2"])
def test_calls_take_the_same_arguments(name: str) -> None:
    """In the same order and under the same names; ours may take more."""
    module, compared = ours(name), 0
    theirs: Any
    for of, theirs in public(oracle.module(name)).items():
        mine = getattr(module, of, None)
        if mine is None or (isinstance(theirs, type) and issubclass(theirs, enum.Enum | Exception)):
            continue
        pairs: dict[str, tuple[Any, Any]] = {of: (theirs, mine)}
        methods: dict[str, Any] = dict(vars(theirs)) if isinstance(theirs, type) else {}
        for method, call in methods.items():
            if not method.startswith("_") and callable(call) and hasattr(mine, method):
                pairs[f"{of}.{method}"] = call, getattr(mine, method)
        for what, (call, our) in pairs.items():
            wanted, given = parameters(call), parameters(our)
            if wanted is not None and given is not None:
                assert wanted == given[: len(wanted)], what
                compared += 1
    assert compared > 5


@pytest.mark.parametrize("name", FIRST)
def test_version_1_has_the_names_that_its_clients_use(name: str) -> None:
    assert FIRST[name] <= vars(ours(name)).keys()


@pytest.mark.parametrize("name", ["htcondor2", "htcondor", "classad2", "classad"])
def test_a_module_is_found_by_whoever_asks_for_it_and_by_nobody_else(name: str) -> None:
    said = [
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import importlib.util as u; s = u.find_spec('{name}'); print(s and s.origin)",
            ],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for path in (str(MODULES), "")
    ]
    assert str(MODULES / name / "__init__.py") == said[0]
    assert str(MODULES) not in said[1]
