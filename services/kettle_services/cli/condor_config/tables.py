"""The tables by which HTCondor's configuration is carried over; they are data beside this module."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any, Final

import msgspec

OneOrMore = str | list[str]


class KnobTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See `knobs.toml`."""

    settings: dict[str, OneOrMore]
    families: dict[str, str]
    no_settings: dict[str, str]
    decide: dict[str, list[str]]
    macros: dict[str, str]

    def settings_of(self, knob: str) -> list[str]:
        """The settings that a knob is, as SERVICE.SETTING."""
        for name, said in self.settings.items():
            if name.lower() == knob.lower():
                return [said] if isinstance(said, str) else said
        return []

    def reason(self, knob: str) -> str:
        """Why there is no setting for a knob."""
        return self.named_reason(knob) or "Kettle has no such setting"

    def named_reason(self, knob: str) -> str:
        """Why there is none, if the tables say so; else nothing."""
        for pattern, why in self.no_settings.items():
            if fnmatchcase(knob.upper(), pattern.upper()):
                return why
        return ""

    def decides(self, knob: str) -> bool:
        """Whether something else has to be done in the place of a knob that has no setting."""
        return any(fnmatchcase(knob.upper(), pattern.upper()) for pattern in self.decide["knobs"])


def _data(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__ or "").joinpath(name).read_text(encoding="utf-8"))


KNOBS: Final = msgspec.convert(_data("knobs.toml"), KnobTables)
METAKNOBS: Final[Mapping[str, Mapping[str, str]]] = msgspec.convert(
    _data("metaknobs.toml"), dict[str, dict[str, str]]
)
