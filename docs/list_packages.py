"""
Makes `docs/reference/packages.md`: every package with the first sentence of its docstring.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[1]
_PACKAGES: Final = (
    ("schemas/kettle_wire", "the contract between processes"),
    ("libs/kettle", "libraries"),
    ("services/kettle_services", "services"),
)
_UNLISTED: Final = "condor/python"
"""Modules with names of HTCondor's, which hold nothing else."""


def packages_page() -> str:
    """The page, below its first line."""
    parts = [_HEAD]
    for place, what in _PACKAGES:
        root = TOP / place
        rows = [f"| [`{name}`](../../{path.relative_to(TOP)}) | {says} |" for name, path, says in _rows(root)]
        parts.append(f"\n## `{root.name}`: {what}\n\n| package | what is in it |\n|---|---|\n")
        parts.append("\n".join(rows) + "\n")
    return "".join(parts)


def _rows(root: Path) -> Iterator[tuple[str, Path, str]]:
    for init in sorted(root.rglob("__init__.py")):
        if _UNLISTED in str(init):
            continue
        text = ast.get_docstring(ast.parse(init.read_text())) or ""
        sentence = " ".join(text.split("\n\n")[0].split())
        yield ".".join(init.parent.relative_to(root.parent).parts), init.parent, sentence


_HEAD: Final = """# Packages

Three packages, one per root, so that an import shows its layer; [where is ...?](../explanation/where-is.md) leads to single
behaviours.  The [picture of the imports](../explanation/imports.svg) shows who may know whom.
"""
