"""The statements of a `queries.sql`, by name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SQL: Final = Path(__file__).parent / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(file: Path) -> Mapping[str, str]:
    """
    Read a file of statements, each headed by `-- name: NAME` and a sentence; raises ValueError for a name given twice.
    """
    _, *parts = _NAME.split(file.read_text())
    names, texts = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{file}: a query's name stands twice")
    return {name: text.strip().removesuffix(";") for name, text in zip(names, texts, strict=True)}


QUERIES: Final = load(SQL / "queries.sql")
