"""
HTCondor's knobs and the pool, from variables and from files: a batch system's client often runs without any environment.
"""

import os
import re
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kettle.client.connections.locating import Knob, locate, with_credential
from kettle.client.connections.pool_file import FILE, PoolFile, login_name, system_directory
from kettle.client.errors import PoolNotFoundError
from kettle.jobs.lines import joined, lines_of
from kettle_wire import addresses

PLACES: Final = ("~/.kettle", "~/.config/kettle", "/etc/kettle")
"""Directories that may have the pool's file, if no variable names one."""
CONFIG: Final = "condor_config"
"""The file of knobs, in each of these."""

_PREFIX: Final = "_condor_"
_LINE: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=\s*(.*)")
_TAGGED: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\s*@=\s*(\S+)\s*")
"""A value of several lines, which ends at a line with this word."""
_REFERENCE: Final = re.compile(r"\$\((\w+)\)")


def heed_token_file(environ: MutableMapping[str, str]) -> None:
    """
    Have the file that the variable `_condor_SCITOKENS_FILE` names be found as the token of the person who runs this process.

    As in HTCondor it wins over the places of the WLCG's token discovery.
    """
    for name, value in list(environ.items()):
        if name.lower() == f"{_PREFIX}scitokens_file" and value:
            environ["BEARER_TOKEN_FILE"] = value
            environ.pop("BEARER_TOKEN", None)


class SetKnob(NamedTuple):
    """A knob as somebody has set it."""

    name: str
    text: str
    source: str
    """A file, or `Environment`."""
    line: int


class CondorConfig:
    """
    HTCondor's settings as far as its clients read or set them; a variable `_condor_NAME` wins over a file.

    What is in `given`, by its name in lower case, wins over both.
    """

    def __init__(self, environ: Mapping[str, str], given: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._given: Mapping[str, str] = {} if given is None else given
        self._set = {
            name[len(_PREFIX) :].lower(): value
            for name, value in environ.items()
            if name[: len(_PREFIX)].lower() == _PREFIX
        }
        self._read: dict[str, SetKnob] | None = None

    def get(self, name: str) -> str | None:
        """The value of a knob, with the knobs in it that it names; None if nobody has set it."""
        return self._resolved(name, frozenset())

    def raw(self, name: str) -> str | None:
        """The value of a knob as it was written, whatever it names."""
        key = name.lower()
        return self._given.get(key) or self._set.get(key) or self._in_files(key)

    def flag(self, name: str, *, default: bool) -> bool:
        """The value of a knob that is true or false."""
        value = (self.get(name) or "").strip().lower()
        return (
            default
            if value not in {"true", "false", "1", "0", "yes", "no"}
            else value in {"true", "1", "yes"}
        )

    def number(self, name: str, default: float) -> float:
        """The value of a knob that is a number from 0 on."""
        try:
            value = float(self.get(name) or default)
        except ValueError:
            return default
        return value if value >= 0 else default

    def names(self) -> list[str]:
        """What is set, in order."""
        return sorted({*self._given, *self._set, *self._files()})

    def _resolved(self, name: str, within: frozenset[str]) -> str | None:
        key = name.lower()
        text = self._given.get(key)
        if text is None:
            text = self._set.get(key)
        if text is None:
            text = self._in_files(key)
        if text is None or key in within:
            return text
        return _REFERENCE.sub(lambda found: self._resolved(found[1], within | {key}) or "", text)

    def where(self, name: str) -> SetKnob | None:
        """The place where a knob was set, and its text there; None if nobody has set it."""
        key = name.lower()
        if key in self._set:
            return SetKnob(name, self._set[key], "Environment", 0)
        return self._files().get(key)

    def sources(self) -> list[str]:
        """The files that are read, the weakest first."""
        return [str(path) for path in self._paths() if path.is_file()]

    def _in_files(self, key: str) -> str | None:
        found = self._files().get(key)
        return None if found is None else found.text

    def _files(self) -> dict[str, SetKnob]:
        if self._read is None:
            self._read = {}
            for path in self._paths():
                self._read |= _read(path)
        return self._read

    def _paths(self) -> list[Path]:
        """The weakest first."""
        named = self._environ.get("CONDOR_CONFIG")
        last = [Path(named)] if named and named != "ONLY_ENV" else []
        return [place / CONFIG for place in reversed(pool_file_paths(self._environ))] + last


def _read(path: Path) -> dict[str, SetKnob]:
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found: dict[str, SetKnob] = {}
    lines = iter(enumerate(lines_of(text), 1))
    for number, line in lines:
        whole = joined(line, lambda: next(lines, (0, ""))[1], trimmed=False)
        if tagged := _TAGGED.fullmatch(whole):
            value: list[str] = []
            for _, inner in lines:
                if inner.strip() == f"@{tagged[2]}":
                    break
                value.append(inner)
            found[tagged[1].lower()] = SetKnob(tagged[1], "\n".join(value), str(path), number)
        elif match := _LINE.fullmatch(whole):
            found[match[1].lower()] = SetKnob(match[1], match[2].strip(), str(path), number)
    return found


def knobs_in(path: Path) -> dict[str, str]:
    """The knobs that a file sets, by their names in lower case; none if it cannot be read."""
    return {name: knob.text for name, knob in _read(path).items()}


def pool_file_paths(environ: Mapping[str, str]) -> list[Path]:
    """Where a pool's file is looked for: `$KETTLE_HOME` alone, if that is set."""
    if home := environ.get("KETTLE_HOME"):
        return [Path(home)]
    found: list[Path] = []
    for place in PLACES:
        try:
            found.append(Path(place).expanduser())
        except RuntimeError:  # an account that has no home
            continue
    return [*found, system_directory()]


def pool_of(
    knobs: CondorConfig, *, pool: str = "", name: str = "", environ: Mapping[str, str] = os.environ
) -> PoolFile:
    """
    The pool that is meant: by `-pool`, else by the knob COLLECTOR_HOST, else the one whose file is found.

    `name` is that of the schedd: by `-name`, else by the knobs SCHEDD_NAME and SCHEDD_HOST.

    Raises:
        PoolNotFoundError: there is none, or none is called that.
    """
    wanted = pool or (knobs.get("COLLECTOR_HOST") or "").strip()
    if wanted.startswith(("tls://", "https://")) and (authority := knobs.get("AUTH_SSL_CLIENT_CAFILE")):
        environ = {"KETTLE_NATS_CA": authority, **environ}
    found = _named(wanted, environ, knobs.get) if wanted else _usual(environ, knobs.get)
    schedd = name or knobs.get("SCHEDD_NAME") or knobs.get("SCHEDD_HOST") or ""
    return with_credential(found.at(schedd.strip()), environ, knob=knobs.get)


def _usual(environ: Mapping[str, str], knob: Knob) -> PoolFile:
    if not (environ.get("KETTLE_NATS_URL") or environ.get("KETTLE_POOL_URL")):
        for place in pool_file_paths(environ):
            if (place / FILE).exists():
                return PoolFile.load(place)
    return locate(environ, knob=knob)


def _named(wanted: str, environ: Mapping[str, str], knob: Knob) -> PoolFile:
    """A directory, an address, or the name or the address of a pool that has a file here."""
    if "://" in wanted:
        return locate(environ, nats_url=wanted, knob=knob)
    if os.path.isabs(wanted):  # noqa: PTH117 - no path is needed here else
        return PoolFile.load(Path(wanted))
    pools: list[PoolFile] = []
    for place in pool_file_paths(environ):
        with suppress(PoolNotFoundError):
            pools.append(PoolFile.load(place))
    named = {each.strip().partition("?")[0] for each in wanted.split(",")}
    for found in pools:
        if named & {found.pool, *bus_addresses(found), *_hosts(bus_addresses(found))}:
            return found
    # HTCondor's port of the collector is not the one of a bus: the host means its pool if it has one only.
    there = [found for found in pools if _hosts(named) & _hosts(bus_addresses(found))]
    if len({found.nats_url for found in there}) == 1:
        return there[0]
    known = ", ".join(str(place / FILE) for place in pool_file_paths(environ))
    raise PoolNotFoundError(f"Can't find address for pool {wanted}: none of {known} is about it")


def _hosts(addresses: Iterable[str]) -> set[str]:
    return {each.rpartition(":")[0] or each for each in addresses}


def bus_addresses(pool: PoolFile) -> list[str]:
    """Host and port of each server of the pool's bus."""
    return addresses.bus_addresses(pool.nats_url)


def user_identity(pool: PoolFile) -> str:
    """Whom the pool takes us for."""
    return pool.user or login_name()
