"""What a transform consists of."""

from collections.abc import Mapping
from typing import Final

import msgspec

PATTERNED: Final[Mapping[str, str]] = {"copy": "copy/", "rename": "rename/", "delete": "delete/"}
"""The statement on one attribute -> that on all whose names a pattern matches."""


class Statement(msgspec.Struct, frozen=True):
    """One statement: what it does, to what, and with what."""

    line: int
    word: str
    """In lower case; `=` assigns a macro."""
    name: str
    text: str

    @property
    def changes(self) -> tuple[str, ...]:
        """The attributes that it changes, as far as it names them."""
        match self.word:
            case "set" | "evalset" | "default" | "delete":
                return (self.name,)
            case "copy":
                return (self.text,)
            case "rename":
                return (self.name, self.text)
            case _:
                return ()

    def __str__(self) -> str:
        match self.word:
            case "=":
                return f"{self.name} = {self.text}"
            case "copy/" | "rename/" | "delete/":
                return f"{self.word[:-1].upper()} /{self.name}/ {self.text}".rstrip()
            case _:
                return " ".join(part for part in (self.word.upper(), self.name, self.text) if part)
