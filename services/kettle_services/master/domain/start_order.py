"""Which service is started and stopped when, and which needs what."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle_services.master.domain.daemon import How

DAEMON_LIST: Final = (
    "collector", "negotiator", "schedd", "shadow", "startd", "dagman", "sessions", "accounting", "gateway",
)  # fmt: skip
"""HTCondor's name for what a master runs; here a pool of one machine."""

NEEDS_DATABASE: Final = frozenset(
    {
        "accounting",
        "ce",
        "collector",
        "dagman",
        "gateway",
        "iam",
        "negotiator",
        "scaler",
        "schedd",
        "sessions",
    }
)
"""The others learn everything over the bus, so they are not given a way into the database."""

READ_ACCESS_POINTS: Final = frozenset({"accounting", "collector", "gateway"})
"""
Those that read the events of access points, or have the server make what these read: their credentials name each, and are shown
when they connect.
"""

_WORK_ENDS: Final = ("startd", "shadow", "schedd")
"""Each of these can finish cleanly only while the later ones still listen to it."""

_SHARDS: Final[Mapping[str, str]] = {"iam": "identity"}
"""The shards that have another name than the role that owns them."""

_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {"shadow": ("NAME", "SCHEDD")}
"""A shadow has the name of the schedd whose jobs it looks after."""


class Instance(msgspec.Struct, frozen=True):
    """
    One entry of the daemon list: `schedd`, `schedd.ap1`, or `schedd.ap1#2` for a second process that stands by.
    """

    role: str
    name: str = ""
    """Empty: the one name that the role has by default."""
    copy: int = 1

    @classmethod
    def parse(cls, text: str) -> "Instance":
        """Read an entry; ValueError for what is none."""
        place, hash_, copy = text.partition("#")
        role, dot, name = place.partition(".")
        if not role or bool(dot) != bool(name) or (hash_ and not (copy.isdecimal() and int(copy) > 1)):
            raise ValueError(
                f"daemon_list: '{text}' is not ROLE, ROLE.NAME or ROLE.NAME#2 for one that stands by"
            )
        return cls(role, name, int(copy or 1))

    def variables(self) -> dict[str, str]:
        """The settings by which the process learns its name."""
        if not self.name:
            return {}
        return {
            f"KETTLE_{self.role.upper()}_{field}": self.name for field in _NAMED_BY.get(self.role, ("NAME",))
        }


def role_of(daemon: str) -> str:
    """The role of an entry of the daemon list."""
    return Instance.parse(daemon).role


def shards(daemons: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The shards of the log that the services of each role own."""
    owned: dict[str, dict[str, None]] = {}
    for instance in map(Instance.parse, daemons):
        role = instance.role
        of_schedd = role in {"schedd", "dagman", "ce", "sessions"}  # each access point has its own
        name = f"{role}.{instance.name or 'schedd'}" if of_schedd else _SHARDS.get(role, role)
        owned.setdefault(role, {})[name] = None
    return {role: tuple(names) for role, names in owned.items()}


def manner(daemon: str, how: How) -> How:
    """
    How a service ends: only a startd has jobs to wait for, every other one has done its part when these have ended.
    """
    return "graceful" if how == "peaceful" and role_of(daemon) != "startd" else how


def stop_stages(daemons: Sequence[str]) -> list[list[str]]:
    """
    The services in the order in which they are stopped; those of one stage together.

    First the machine ends its work and reports, then the submit side records it, then all others.
    """
    stages = [[name for name in daemons if role_of(name) == role] for role in _WORK_ENDS]
    rest = [name for name in reversed(daemons) if role_of(name) not in _WORK_ENDS]
    return [stage for stage in [*stages, rest] if stage]
