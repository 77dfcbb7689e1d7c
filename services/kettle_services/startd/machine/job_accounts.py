"""
Whom a job runs as: the account of its slot or our own; and a job of the local slot as its owner, if we are root.

Such a job was submitted here, where its owner has an account, and its files are used with that account's rights.
"""

import asyncio
import pwd
from typing import Final

from kettle.accounts.lookup import Accounts, own_name
from kettle.accounts.rights import can_become_others
from kettle.classad import unparse
from kettle.execution.attempts.job_spec import Account
from kettle_services.startd.domain.state.claim import Claim
from kettle_services.startd.machine import host
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad


class JobAccounts:
    """The accounts of one machine, as far as jobs get them."""

    def __init__(self, settings: StartdSettings) -> None:
        self._settings = settings
        self._accounts: Final = Accounts()

    def are_asked(self, claim: Claim) -> bool:
        """Whether the machine's directory of accounts has to say whom the jobs on a claim run as."""
        return claim.local and self._accounts.privileged

    async def find(self, claim: Claim, job: Ad) -> Account | None:
        """
        The account of a job on a claim; None: it runs as we do.  Root's own jobs get the slot's account, as all others do.

        Raises:
            StrangerError: its owner has no account of a person here.
        """
        if self.are_asked(claim):
            rights = await self._accounts.find(str(job.get("Owner", "")))
            if rights is not None:
                home = (await asyncio.to_thread(pwd.getpwuid, rights.uid)).pw_dir
                return Account(rights.uid, rights.gid, rights.groups, home=home or "/")
        return host.account(self._settings, claim.slot)


def local_account() -> str:
    """`JobAccount` of a local slot: an expression that asks the job (TARGET); empty: the machine's."""
    if not can_become_others():
        return ""
    return f"ifThenElse(TARGET.Owner == {unparse(own_name())}, undefined, TARGET.Owner)"
