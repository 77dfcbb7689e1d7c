"""
Decides which commands people may send to a service, by the table `[authorization]` and the service's administrators.

A command that only reads needs READ, another WRITE, and one for administrators ADMINISTRATOR. As long as there is no allow list
for READ or WRITE both are everybody's who has a credential for the bus: who has one was let in by somebody.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from kettle.auth.mapping.access_lists import AccessDecision, AccessLists, Entry, missing_entry
from kettle.auth.mapping.findings import Because, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.principals import Address
from kettle.bus.ports import Served
from kettle.runtime.authorization import TABLE, Authorization
from kettle.runtime.settings import config_path
from kettle.runtime.settings_problems import SettingsError, SettingsFile
from kettle_wire.commands.rights import RIGHTS_AT
from kettle_wire.endpoint import Caller, Endpoint
from kettle_wire.identity import Identity

_REMEMBERED: Final = 10_000
"""People and levels of whom a service knows that they may."""
_MOST_LISTS: Final = 16
"""Endpoints of a service have the same administrators, or those of a few groups."""
_OPEN: Final = (Level.READ, Level.WRITE)
"""Everybody's as long as neither has an allow list."""


class SettingPlaces:
    """
    Where in the file of settings something is written now: it is looked up when somebody has to be told.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read: tuple[tuple[int, int], SettingsFile] | None = None

    def state(self) -> tuple[int, int] | None:
        """Changes when the file does; None if there is none."""
        try:
            return None if self._path is None else _state(self._path)
        except OSError:
            return None

    def place(self, keys: Sequence[str], text: str = "") -> Place:
        """The line of a setting, or of one text in its list."""
        named = f"[{keys[0]}] {'.'.join(keys[1:])}"
        try:
            file = self._file()
        except (OSError, SettingsError):  # it was there when the service read it
            file = None
        if file is None or (line := file.line_of(keys, text)) is None:
            return Place(named)
        return Place(str(file.path), line)

    def _file(self) -> SettingsFile | None:
        if self._path is None:
            return None
        state = _state(self._path)
        if self._read is None or self._read[0] != state:
            self._read = state, SettingsFile.read(self._path)
        return self._read[1]


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size


def level_of(endpoint: Endpoint[Any, Any]) -> Level:
    """The level that a person needs for a command."""
    if Caller.USER not in endpoint.callers:
        return Level.ADMINISTRATOR
    return Level.READ if endpoint.reads else Level.WRITE


class Known(Protocol):
    """What is known of people besides their names."""

    def levels(self, owner: str) -> Mapping[Level, Because]:
        """What rules give somebody because of his credential."""
        ...

    def banned(self, owner: str) -> str:
        """Why somebody is banned, as the end of a sentence; empty: he is not."""
        ...


class _Unknown:
    def levels(self, owner: str) -> Mapping[Level, Because]:
        del owner
        return {}

    def banned(self, owner: str) -> str:
        del owner
        return ""


class Verdict(NamedTuple):
    """Whether a person has a level at a service, and by which rule."""

    allowed: bool
    name: str
    level: Level
    because: Because | None
    """The rule that decided; None: there is none."""
    missing: str
    """What would have to be different, as the end of a sentence; empty: nothing."""


class _Lists:
    """The lists that count for endpoints with the same administrators."""

    def __init__(self, said: Authorization, role: str, administrators: Collection[str]) -> None:
        self._made_of = said, role, administrators
        self._role = role
        self._lists = access_lists(said, role, administrators, None)
        self._may: set[tuple[str, Level]] = set()
        """Who has been found to have which level."""
        self._placed: tuple[tuple[int, int] | None, AccessLists] | None = None
        """With the places in the file of settings, and the state of that one."""

    def allow(self, name: str, level: Level) -> bool:
        if (name, level) in self._may:
            return True
        if not self._lists.decide(name, level, Address(), subsystem=self._role).allowed:
            return False
        if len(self._may) >= _REMEMBERED:
            self._may.clear()
        self._may.add((name, level))
        return True

    def allow_granted(self, name: str, level: Level, granted: Mapping[Level, Because]) -> bool:
        """
        Whether the lists let somebody have what a rule has given; that is not remembered, for it may end.
        """
        return self._lists.decide(name, level, Address(), subsystem=self._role, granted=granted).allowed

    def explain(
        self, name: str, level: Level, places: SettingPlaces, granted: Mapping[Level, Because]
    ) -> AccessDecision:
        """
        The decision with the places of its rules: these are looked up once, and again if the file has changed.
        """
        state = places.state()
        if self._placed is None or self._placed[0] != state:
            self._placed = state, access_lists(*self._made_of, places)
        return self._placed[1].decide(name, level, Address(), subsystem=self._role, granted=granted)


class Authorizer:
    """Decides which commands people may send to one service."""

    def __init__(
        self,
        role: str,
        authorization: Callable[[], Authorization],
        places: SettingPlaces,
        people: Known | None = None,
    ) -> None:
        """
        `authorization` is what the settings say now; `people` knows what rules give somebody, and who is
        banned.
        """
        self._people: Known = people or _Unknown()
        self._role = role
        self._authorization = authorization
        self._places = places
        self._said: Authorization | None = None
        self._lists: dict[tuple[str, ...], _Lists] = {}
        """By administrators, of what was said last."""

    @classmethod
    def of_service(
        cls,
        role: str,
        authorization: Callable[[], Authorization],
        environ: Mapping[str, str] = os.environ,
        people: Known | None = None,
    ) -> "Authorizer":
        """The one of a service that has read its settings from where its environment leads to."""
        return cls(role, authorization, SettingPlaces(config_path(environ)), people)

    def __call__(self, served: Served[Any, Any], caller: Identity) -> str:
        """Why a person may not send a command, as a sentence; empty: it may be sent."""
        endpoint, said = served.endpoint, self._authorization()
        if endpoint is RIGHTS_AT.get(endpoint.role):
            return ""  # also who may do nothing may ask why
        if banned := self._people.banned(caller.name):
            return f"{caller.name}@{said.own_domain} {banned}"
        if Caller.USER in endpoint.callers and not (said.allow or said.deny):
            return ""
        lists = self._lists_of(said, served.administrators())
        level, name = level_of(endpoint), f"{caller.name}@{said.own_domain}"
        if lists.allow(name, level):
            return ""
        granted = self._people.levels(caller.name)
        if granted and lists.allow_granted(name, level, granted):
            return ""
        missing = self.decide(level, caller, served.administrators()).missing
        return f"{name} has not the level {level}, which {self._role}.{endpoint.verb} takes: {missing}"

    def decide(self, level: Level, caller: Identity, administrators: Collection[str] | None) -> Verdict:
        """
        Whether a person has a level where these are the administrators, with the rule that says so; None: the service has no
        such setting.
        """
        said = self._authorization()
        name = f"{caller.name}@{said.own_domain}"
        found = self._lists_of(said, administrators or ()).explain(
            name, level, self._places, self._people.levels(caller.name)
        )
        if found.allowed:
            return Verdict(allowed=True, name=name, level=level, because=found.because, missing="")
        missing = missing_entry(name, level, found)
        if level is Level.ADMINISTRATOR and found.because is None and administrators is not None:
            missing += f", and {caller.name} is not in administrators of [{self._role}]"
        return Verdict(allowed=False, name=name, level=level, because=found.because, missing=missing)

    def _lists_of(self, said: Authorization, administrators: Collection[str]) -> _Lists:
        if said is not self._said and said != self._said:
            self._lists.clear()
        self._said = said
        names = tuple(sorted(administrators))
        lists = self._lists.get(names)
        if lists is None:
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            lists = self._lists[names] = _Lists(said, self._role, names)
        return lists


def access_lists(
    said: Authorization, role: str, administrators: Collection[str], places: SettingPlaces | None
) -> AccessLists:
    """
    The lists that count at a service, with their places in the file of settings if they are to be named.
    """

    def entries(kind: str, key: str, texts: Sequence[str]) -> list[Entry]:
        return [
            Entry.read(text, places.place((TABLE, kind, key), text) if places else Place(""))
            for text in texts
        ]

    allow = {key: entries("allow", key, each) for key, each in said.allow.items()}
    if administrators:  # the short form: who administers one service
        short = Place(f"[{role}] administrators")
        of_service = f"{Level.ADMINISTRATOR}_{role.upper()}"
        inherited = allow.get(of_service, allow.get(Level.ADMINISTRATOR.value, []))
        allow[of_service] = [
            *inherited,
            *(Entry(f"{name}@*", f"{name}@*", "*", short) for name in administrators),
        ]
    deny = {key: entries("deny", key, each) for key, each in said.deny.items()}
    listed = {key: places.place((TABLE, "allow", key)) for key in said.allow} if places else {}
    own = {key for level in _OPEN for key in (level.value, f"{level}_{role.upper()}")}
    return AccessLists(allow, deny, places=listed, open_levels=_OPEN if own.isdisjoint(said.allow) else ())
