"""Rows as files for other programs: CSV, JSON, Parquet."""

import csv
import importlib
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from kettle_services.cli.errors import CommandError

Row: TypeAlias = Mapping[str, str | int | float]

SUFFIXES: Final[Mapping[str, str]] = {
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".svg": "svg",
}


def as_csv(columns: Mapping[str, type], rows: Sequence[Row]) -> bytes:
    """With a line of titles, as RFC 4180 has it; a number reads back as the same number."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    return text.getvalue().encode()


def as_parquet(columns: Mapping[str, type], rows: Sequence[Row]) -> bytes:
    """
    One group of rows, compressed.

    Raises:
        CommandError: pyarrow is not installed.
    """
    pa = _arrow("pyarrow")
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([pa.field(name, kinds[kind], nullable=False) for name, kind in columns.items()])
    arrays = [
        pa.array([row[name] for row in rows], type=field.type)
        for name, field in zip(columns, schema, strict=True)
    ]
    sink = io.BytesIO()
    _arrow("pyarrow.parquet").write_table(
        pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd"
    )
    return sink.getvalue()


def write(path: Path, data: bytes) -> None:
    """
    All of a file or nothing of it: who reads it meanwhile sees what was there before.

    Raises:
        CommandError: it cannot be written.
    """
    new: Path | None = None
    try:
        if path.exists() and not path.is_file():  # a pipe, a terminal
            path.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        new = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        new.chmod(0o666 & ~_umask())
        new.replace(path)
    except OSError as error:
        if new is not None:
            with suppress(OSError):
                new.unlink()
        raise CommandError(f"cannot write {path}: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise CommandError(
            "Parquet is written with pyarrow, which is not installed here: install kettle[archive], or take "
            "--format csv"
        ) from error
