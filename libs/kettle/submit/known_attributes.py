"""Which attributes an expression may name: those that some ad of a pool has, and the site's own."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from kettle.jobs.ad import KEPT
from kettle.submit.commands import NAMES as SUBMIT

_IN_POLICIES: Final = frozenset({
    "SubmitterUserPrio", "SubmitterUserResourcesInUse", "SubmitterGroup", "SubmitterGroupQuota",
    "SubmitterGroupResourcesInUse", "RemoteUserPrio", "RemoteUserResourcesInUse", "RemoteUserFloor", "RemoteGroupQuota",
    "RemoteGroupResourcesInUse", "AccountingGroup", "GroupQuota", "GroupResourcesInUse", "GroupResourcesAllocated",
    "CurrentTime", "GPUs", "Request<resource>", "Require<resource>",
})  # fmt: skip
"""What ads have only while the negotiator looks at them, and what they have of any resource."""


class KnownAttributes:
    """A set of names in lower case, some of which have a part that may be any word."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """`more` are those that the configuration itself makes."""
        spelt = {name.lower(): name for name in (*KEPT, *more, *_IN_POLICIES, *_documented())}.values()
        self.names: Final = sorted(name for name in spelt if "<" not in name)
        """As they are spelt, for the nearest one."""
        self._lower = {name.lower() for name in self.names}
        patterns = (
            r"\w+".join(re.escape(part) for part in re.split(r"<[^>]*>", name.lower()))
            for name in spelt
            if "<" in name and not name.startswith("<")
        )
        self._pattern = re.compile("|".join(patterns))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._lower or self._pattern.fullmatch(name) is not None)


def _documented() -> Iterator[str]:
    text = files("kettle_wire.ads").joinpath("attributes.toml").read_text(encoding="utf-8")
    for part in tomllib.loads(text).values():
        yield from part["attributes"]
    for names in SUBMIT.values():
        yield from names
