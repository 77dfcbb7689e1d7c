"""
What is read in one sitting: no module, function or class of the tree is larger than that, but for a few with a reason.

    .venv/bin/python -m tests.packaging.sizes

`make check` runs this.  The exceptions are in `size_exceptions.toml`, each with its reason; one that is not needed any more fails
like one that is missing, so the list only says what is so.

A collaborator of a class is an object of ours, or a function, that it is given or makes when it is made, and keeps.
Values (structs, enumerations, tuples) are none, and nor is what a container has.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

TOP: Final = Path(__file__).parents[2]
ROOTS: Final = ("docs", "infra", "libs", "schemas", "services", "tests")
MODULE_LINES: Final = 400
TEST_LINES: Final = 500
"""A module of tests is a list of cases: it is read one by one."""
FUNCTION_LINES: Final = 60
COLLABORATORS: Final = 12
_VALUES: Final = frozenset({
    "Struct", "Enum", "StrEnum", "IntEnum", "IntFlag", "Flag", "NamedTuple", "TypedDict", "Exception", "tuple", "str", "int",
})  # fmt: skip
"""What values are made of."""
_WRAPPERS: Final = frozenset({"Final", "ClassVar", "Annotated", "Optional"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Exceptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be larger, by its place, and why."""

    modules: dict[str, str]
    functions: dict[str, str]
    classes: dict[str, str]


class Found(msgspec.Struct, frozen=True):
    """What is larger than it should be: its place, and how large it is."""

    modules: dict[str, int]
    functions: dict[str, int]
    classes: dict[str, int]


def measure(top: Path, roots: tuple[str, ...] = ROOTS) -> Found:
    """What is larger than it should be below `top`."""
    found = Found({}, {}, {})
    bases: dict[str, list[str]] = {}
    classes: list[tuple[str, ast.ClassDef]] = []
    for path in sorted(path for root in roots for path in (top / root).rglob("*.py")):
        place, text = path.relative_to(top).as_posix(), path.read_text()
        lines, tests = len(text.splitlines()), place.startswith("tests/")
        if lines > (TEST_LINES if tests else MODULE_LINES):
            found.modules[place] = lines
        for name, node in _definitions(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, [_last_name(base) for base in node.bases])
                if not tests:
                    classes.append((f"{place}:{name}", node))
            elif (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES:
                found.functions[f"{place}:{name}"] = length
    for place, node in classes:
        if (count := len(collaborators(node, bases))) > COLLABORATORS:
            found.classes[place] = count
    return found


def _definitions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.ClassDef | Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{within}{node.name}"
            yield name, node
            yield from _definitions(node, f"{name}.")
        elif isinstance(node, ast.stmt):
            yield from _definitions(node, within)


def collaborators(node: ast.ClassDef, bases: Mapping[str, list[str]]) -> set[str]:
    """The attributes of a class that are collaborators; `bases`: what each class of the tree is made of."""
    made = next(
        (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )
    if made is None or _is_value(node.name, bases):
        return set()
    arguments = {
        each.arg: each.annotation
        for each in (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs)
        if each.annotation is not None
    }
    kept: set[str] = set()
    for statement in ast.walk(made):
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                kind = _made_of(value, arguments)
            case ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=said, value=value
            ):
                kind = _class_of(said) or (_made_of(value, arguments) if value is not None else "")
            case _:
                continue
        if kind == "Callable" or (kind in bases and not _is_value(kind, bases)):
            kept.add(name)
    return kept


def _is_value(name: str, bases: Mapping[str, list[str]]) -> bool:
    """Whether a class is one of values, by what it inherits from."""
    return name in _VALUES or any(base != name and _is_value(base, bases) for base in bases.get(name, ()))


def _made_of(value: ast.expr, arguments: Mapping[str, ast.expr]) -> str:
    """The class of what is assigned, as far as it is said there; empty: it is not."""
    match value:
        case ast.Name(id=name) if name in arguments:
            return _class_of(arguments[name])
        case ast.BoolOp(values=[first, *_]) | ast.IfExp(body=first):
            return _made_of(first, arguments)
        case ast.Call(func=ast.Name(id=name)):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name
        case _:
            return ""


def _class_of(said: ast.expr) -> str:
    """The class that an annotation names; empty if it is a container, or none is named."""
    match said:
        case ast.Constant(value=str(text)):
            return _class_of(ast.parse(text, mode="eval").body)
        case ast.BinOp(left=left, op=ast.BitOr()):
            return _class_of(left)
        case ast.Subscript(value=outer, slice=inner) if _last_name(outer) in _WRAPPERS:
            return _class_of(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
        case ast.Subscript(value=outer):
            return _last_name(outer)
        case _:
            return _last_name(said)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
        case _:
            return ""


def complaints(found: Found, exceptions: Exceptions) -> list[str]:
    """What is too large without a reason, and which reasons are not needed any more, each as a sentence."""
    said: list[str] = []
    for what, limit in (
        ("modules", f"{MODULE_LINES} lines ({TEST_LINES} of tests)"),
        ("functions", f"{FUNCTION_LINES} lines"),
        ("classes", f"{COLLABORATORS} collaborators"),
    ):
        large, reasons = getattr(found, what), getattr(exceptions, what)
        said += [
            f"{place} has {size}, and {what} have no more than {limit}: divide it, or say in "
            "tests/packaging/size_exceptions.toml why it is better whole"
            for place, size in large.items()
            if place not in reasons
        ]
        said += [
            f"{place} is no larger than other {what}: remove it from tests/packaging/size_exceptions.toml"
            for place in reasons
            if place not in large
        ]
        said += [f"{place} is an exception without a reason" for place, why in reasons.items() if not why]
    return said


def main() -> int:
    """Say what is wrong; exit status 1 if something is."""
    text = Path(__file__).with_name("size_exceptions.toml").read_bytes()
    said = complaints(measure(TOP), msgspec.toml.decode(text, type=Exceptions))
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main())
