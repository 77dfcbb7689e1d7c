"""
The table `[authorization]` of the settings: which commands people may send to the services of a pool, and who is who.

    [authorization.allow]
    WRITE = ["*@physics.example.org", "ada@*"]
    ADMINISTRATOR = ["ada@*"]
    [authorization.deny]
    WRITE_SCHEDD = ["eve@*"]

`kettle.runtime.authorizer` decides by it.
"""

import socket
from collections.abc import Iterator
from typing import Final

import msgspec

TABLE: Final = "authorization"
_Lists = dict[str, tuple[str, ...]]
"""By LEVEL, or LEVEL_SERVICE for the lists of one service."""


class Authorization(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The table `[authorization]`."""

    allow: _Lists = {}
    """Who has a level (ALLOW_<LEVEL>): `user@domain`, `user@domain/host`, a host or a network, each with `*`."""
    deny: _Lists = {}
    """Who has it not, whatever else is said (DENY_<LEVEL>)."""
    domain: str = ""
    """The domain of names that bring none (UID_DOMAIN); empty: this host's name."""
    map_files: tuple[str, ...] = ()
    """Map files of HTCondor (CERTIFICATE_MAPFILE), asked one after the other."""
    rules: str = ""
    """The file with the site's rules over what credentials say, with accounting groups and bans."""

    @property
    def own_domain(self) -> str:
        """The domain of names that bring none."""
        return self.domain or socket.gethostname()

    def complaints(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What cannot be used, by the keys that lead to it."""
        if not (self.allow or self.deny):
            return
        from kettle.auth.mapping.access_lists import entry_problem, key_problem

        for kind, lists in (("allow", self.allow), ("deny", self.deny)):
            for key, entries in lists.items():
                if why := key_problem(key):
                    yield (kind, key), why
                for text in entries:
                    if why := entry_problem(text):
                        yield (kind, key), why
