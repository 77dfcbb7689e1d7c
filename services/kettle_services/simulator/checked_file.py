"""
A file that somebody wrote, TOML or JSON, read so that a refusal names the file, the line and the place in it.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from kettle.runtime.toml_lines import TomlLines
from kettle.terminal.nearest_names import nearest

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
"""How msgspec says where in a value it is."""
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class CheckedFile:
    """One that is being read, for what is wrong in it to be found; `refusal` is the type of all errors."""

    def __init__(self, path: Path, refusal: type[Exception], *, text: str | None = None) -> None:
        """`text`: what is in it, where that has come without a file."""
        self.path = path
        self._refusal = refusal
        try:
            self.text = path.read_text(encoding="utf-8") if text is None else text
        except OSError as error:
            raise refusal(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise refusal(f"{path}: {error}") from error

    def tables(self) -> dict[str, Any]:
        """All of it."""
        try:
            if self.path.suffix.lower() == ".json":
                found = msgspec.json.decode(self.text, type=dict[str, Any])
            else:
                found = tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
            raise self._refusal(f"{self.path}: {error}") from error
        return found

    def refusal(self, message: str) -> Exception:
        """The error for what is wrong in another file that this one names."""
        return self._refusal(message)

    def where(self, keys: tuple[str, ...]) -> str:
        """The file, and the line of a key if it has lines."""
        line = TomlLines(self.text).line_of(keys) if self.path.suffix.lower() != ".json" else None
        return f"{self.path}:{line}" if line else str(self.path)

    def refuse(self, keys: tuple[str, ...], message: str) -> Exception:
        """The error for a value in the file."""
        return self._refusal(f"{self.where(keys)}: {'.'.join(keys)}: {message}")

    def convert(self, value: object, kind: Any, keys: tuple[str, ...]) -> Any:
        """A value of a type, or why it is none."""
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            said = _PLACE.fullmatch(str(error))
            if said is None:
                raise self.refuse(keys, str(error)) from error
            raise self.refuse(
                (*keys, *(name or place for name, place in _STEP.findall(said[2]))), said[1]
            ) from error

    def only(self, table: object, known: Sequence[str], keys: tuple[str, ...]) -> None:
        """Refuse what is no table, and the first key of one that is not known, with the nearest that is."""
        self.table(table, keys)
        for name in cast("dict[object, object]", table):
            if name not in known:
                raise self.refuse(
                    (*keys, str(name)), f"there is no such key{closest(str(name), known)}; {', '.join(known)}"
                )

    def table(self, said: object, keys: tuple[str, ...]) -> None:
        """Refuse what is none."""
        if not isinstance(said, dict):
            raise self.refuse(keys, f"this is a table: [{'.'.join(keys)}]")


def closest(name: str, known: Sequence[str]) -> str:
    """The half of a sentence that asks for the nearest known name, if one is near."""
    close = nearest(name, known)
    return f", did you mean {close}?" if close else ""
