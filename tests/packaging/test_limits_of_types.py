"""
Limits of types that are equal are written alike.

`typing` keeps one `Annotated` for equal arguments, and `Meta(ge=0)` equals `Meta(ge=0.0)`: which of the two a schema shows would
depend on which module was imported first.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest


def limits(source: str) -> Iterator[tuple[int, str, str]]:
    """Of each `Annotated[..., Meta(...)]` its line, what it equals, and how it is written."""
    for node in ast.walk(ast.parse(source)):
        if not (
            isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] == "Annotated"
        ):
            continue
        first, *more = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        said = [each for each in map(_limits, more) if each is not None]
        if said:
            equals = [sorted((name, repr(value + 0.0)) for name, value in each.items()) for each in said]
            written = [sorted((name, repr(value)) for name, value in each.items()) for each in said]
            yield node.lineno, f"{ast.unparse(first)} {equals}", f"{written}"


def _limits(node: ast.expr) -> Mapping[str, float] | None:
    """The numbers of a `Meta`; None: it is none, or they are not written there."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Meta"):
        return None
    found: dict[str, float] = {}
    for keyword in node.keywords:
        parts = [*ast.walk(keyword.value)]
        texts = [each for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if texts or not all(isinstance(each, _NUMBERS) for each in parts):
            continue
        found[keyword.arg or ""] = eval(ast.unparse(keyword.value))
    return found


_NUMBERS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)


def otherwise(sources: Mapping[str, str]) -> list[str]:
    """The places of limits that are equal and written otherwise than at another place."""
    found: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for name, source in sources.items():
        for line, equals, written in limits(source):
            found[equals].setdefault(written, []).append(f"{name}:{line}")
    return [place for ways in found.values() if len(ways) > 1 for places in ways.values() for place in places]


def test_limits_that_are_equal_are_written_alike(top: Path, roots: list[Path]) -> None:
    """In the whole tree, because one process may import any two modules."""
    # To take a module apart takes long, and few have limits.
    sources = {
        str(module.relative_to(top)): source
        for root in roots
        for module in root.rglob("*.py")
        if "Meta" in (source := module.read_text()) and "Annotated" in source
    }
    assert 100 < sum(len([*limits(source)]) for source in sources.values())
    assert [] == otherwise(sources)


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ("Annotated[float, Meta(ge=0)]", "Annotated[float, msgspec.Meta(ge=0.0)]", True),
        ("Annotated[int, Meta(ge=1, le=2**31)]", "typing.Annotated[int, Meta(le=2.0**31, ge=1)]", True),
        ("Annotated[float, Meta(ge=0)]", "Annotated[float, Meta(ge=0)]", False),
        ("Annotated[float, Meta(ge=0)]", "Annotated[int, Meta(ge=0.0)]", False),
        ("Annotated[float, Meta(ge=0)]", "Annotated[float, Meta(gt=0.0)]", False),
        ("Annotated[float, Meta(ge=-1)]", "Annotated[float, Meta(ge=-1.0)]", True),
    ],
)
def test_each_way_is_found(first: str, second: str, *, is_found: bool) -> None:
    """Whatever the module calls `Meta`, and whatever is said besides."""
    assert is_found == bool(otherwise({"a": f"A = {first}", "b": f"B = {second}"}))
