"""Whose jobs an access point may look after, and with which rights."""

import asyncio
import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kettle.accounts.rights import Rights, can_become_others

_LOGIN_DEFINITIONS: Final = Path("/etc/login.defs")
_FIRST_PERSON: Final = 1000
_NOBODY: Final = 65534
_KNOWN_S: Final = 300.0
"""How long an account is remembered: who is put into a group waits so long."""
_REFUSED_S: Final = 5.0
_MOST: Final = 10_000


class StrangerError(Exception):
    """Nothing can be done with this owner's rights; the message is a sentence for the owner."""


def own_name() -> str:
    """The login name of the account that this process runs as, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class Accounts:
    """
    Accounts by name, remembered for a while, because the machine may have to ask a directory in the network.

    One's own account is always served.  Other persons' accounts are if we are root; accounts of the system never are.
    """

    def __init__(
        self,
        *,
        own: str | None = None,
        privileged: bool | None = None,
        directory: Callable[[str], pwd.struct_passwd] = pwd.getpwnam,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.own: Final = own_name() if own is None else own
        self.privileged: Final = can_become_others() if privileged is None else privileged
        """Whether others' jobs can be looked after."""
        self._directory = directory
        self._clock = clock
        self._known: dict[str, tuple[float, Rights | StrangerError]] = {}

    async def find(self, owner: str) -> Rights | None:
        """The rights of an owner; None: they are our own.  Raises StrangerError."""
        if owner == self.own:
            return None
        known = self._remembered(owner)
        if known is None:
            return await asyncio.to_thread(self.look, owner)
        if isinstance(known, StrangerError):
            raise known
        return known

    def look(self, owner: str) -> Rights | None:
        """What `find` says, from a thread: it waits for the machine's directory of accounts."""
        if owner == self.own:
            return None
        known = self._remembered(owner)
        if known is None:
            known = self._looked_up(owner)
            if len(self._known) >= _MOST:
                self._known.clear()
            lasts = _REFUSED_S if isinstance(known, StrangerError) else _KNOWN_S
            self._known[owner] = self._clock() + lasts, known
        if isinstance(known, StrangerError):
            raise known
        return known

    def _remembered(self, owner: str) -> Rights | StrangerError | None:
        until, known = self._known.get(owner, (0.0, None))
        return known if until > self._clock() else None

    def _looked_up(self, owner: str) -> Rights | StrangerError:
        if not self.privileged:
            return StrangerError(
                f"the job belongs to {owner or 'nobody'}, and the access point, which runs as {self.own}, "
                f"can use files as {self.own} only"
            )
        try:
            found = self._directory(owner)
        except (KeyError, ValueError):
            return StrangerError(
                f"the job belongs to {owner or 'nobody'}, who has no account on the access point's machine"
            )
        if found.pw_uid < first_person() or found.pw_uid == _NOBODY:
            return StrangerError(
                f"the job belongs to {owner}, which is an account of the system (number {found.pw_uid}) "
                "and not of a person"
            )
        groups = os.getgrouplist(owner, found.pw_gid)
        return Rights(found.pw_uid, found.pw_gid, tuple(sorted(groups)))


def first_person(definitions: Path = _LOGIN_DEFINITIONS) -> int:
    """Accounts with lower numbers are the system's (UID_MIN of login.defs)."""
    try:
        lines = definitions.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return _FIRST_PERSON
    found = [words[1] for line in lines if len(words := line.split()) >= 2 and words[0] == "UID_MIN"]
    return int(found[-1]) if found and found[-1].isdecimal() else _FIRST_PERSON
