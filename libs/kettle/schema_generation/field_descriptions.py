"""
The meaning of the fields of a struct or of the members of an enum: the texts below them in the source, which do not
exist at run time.
"""

import ast
import inspect
import sys
from enum import Enum
from functools import cache

from msgspec import Struct


@cache
def meanings(kind: type[Struct] | type[Enum]) -> dict[str, str]:
    """Field or member -> its docstring, of a class of ours and of those it inherits from."""
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
        match field:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case _:
                continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[name] = " ".join(str(after.value.value).split())
    return found
