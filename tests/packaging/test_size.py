"""
The limits of `make check` for modules, functions and classes; and that a clone has only what people wrote.
"""

import subprocess
from pathlib import Path

import msgspec
import pytest

from .sizes import COLLABORATORS, FUNCTION_LINES, MODULE_LINES, Exceptions, complaints, measure

NONE = Exceptions({}, {}, {})


def module(functions: int = 0, parts: int = 0, lines: int = 0) -> str:
    """A module with a function and a class of these sizes."""
    classes = "".join(f"class Part{n}:\n    pass\n" for n in range(parts))
    arguments = ", ".join(f"part{n}: 'Part{n} | None'" for n in range(parts))
    kept = "".join(f"        self.part{n} = part{n}\n" for n in range(parts))
    return (
        f"{classes}class Whole:\n    def __init__(self, {arguments}) -> None:\n        self.name = ''\n{kept}"
        "def long() -> None:\n" + "    print()\n" * max(1, functions - 1) + "#\n" * lines
    )


def said(top: Path, text: str, exceptions: Exceptions = NONE) -> list[str]:
    """What is complained of in a tree of one module."""
    (top / "libs").mkdir(exist_ok=True)
    (top / "libs/one.py").write_text(text)
    return complaints(measure(top, ("libs",)), exceptions)


def test_what_is_within_the_limits_is_not_complained_of(tmp_path: Path) -> None:
    """The largest that may be."""
    assert [] == said(tmp_path, module(FUNCTION_LINES, COLLABORATORS))
    rest = MODULE_LINES - len(module(FUNCTION_LINES, COLLABORATORS).splitlines())
    assert [] == said(tmp_path, module(FUNCTION_LINES, COLLABORATORS, rest))


def test_what_is_larger_is_named_unless_it_has_a_reason(tmp_path: Path) -> None:
    """With its place and its size; the reason names the same place."""
    large = module(FUNCTION_LINES + 1, COLLABORATORS + 1, MODULE_LINES)
    lines = len(large.splitlines())
    assert [
        f"libs/one.py has {lines}",
        f"libs/one.py:long has {FUNCTION_LINES + 1}",
        f"libs/one.py:Whole has {COLLABORATORS + 1}",
    ] == [line.partition(",")[0] for line in said(tmp_path, large)]
    reasons = Exceptions({"libs/one.py": "r"}, {"libs/one.py:long": "r"}, {"libs/one.py:Whole": "r"})
    assert [] == said(tmp_path, large, reasons)
    assert ["libs/one.py is an exception without a reason"] == said(
        tmp_path, large, msgspec.structs.replace(reasons, modules={"libs/one.py": ""})
    )


def test_a_reason_that_is_not_needed_any_more_is_to_go(tmp_path: Path) -> None:
    """Of what is gone, and of what has become small."""
    reasons = Exceptions({"libs/one.py": "r"}, {"libs/one.py:short": "r"}, {"libs/two.py:Whole": "r"})
    assert ["libs/one.py", "libs/one.py:short", "libs/two.py:Whole"] == [
        line.partition(" ")[0] for line in said(tmp_path, module(), reasons)
    ]


def test_values_are_no_collaborators(tmp_path: Path) -> None:
    """What a class is told, and what it has many of, it does not work with."""
    values = "".join(f"class V{n}(Struct):\n    pass\nclass W{n}(V{n}):\n    pass\n" for n in range(13))
    arguments = ", ".join(f"v{n}: W{n}, many{n}: dict[str, Whole]" for n in range(13))
    kept = "".join(f"        self.v{n} = v{n}\n        self.many{n} = many{n}\n" for n in range(13))
    assert [] == said(tmp_path, f"{values}class Whole:\n    def __init__(self, {arguments}) -> None:\n{kept}")


def test_nothing_large_and_nothing_fetched_is_recorded(top: Path) -> None:
    """No package of somebody else was committed by mistake: its files would be in each clone for all time."""
    if not (top / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, text=True, check=True)
    found = [top / name for name in listed.stdout.split("\0") if name]
    packages = {".whl", ".deb", ".rpm", ".sif", ".gz", ".zip", ".xz", ".jar", ".exe", ".so"}
    assert [] == [path for path in found if path.suffix in packages]
    assert [] == [path for path in found if path.is_file() and path.stat().st_size > 1_000_000]
