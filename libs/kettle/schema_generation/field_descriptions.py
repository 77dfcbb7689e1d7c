"""
What the fields of a struct mean: the texts below them in the source, which no struct carries at run time.
"""

import ast
import inspect
import sys
from functools import cache

from msgspec import Struct


@cache
def meanings(kind: type[Struct]) -> dict[str, str]:
    """Field -> its docstring, of a struct of ours and of those it inherits from."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        if cls.__module__.startswith(("kettle.", "kettle_services.", "kettle_wire.")):
            found |= _classes(cls.__module__).get(cls.__qualname__, {})
    return found


@cache
def _classes(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _fields(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _fields(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(after.value.value).split())
    return found
