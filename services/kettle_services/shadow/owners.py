"""With whose rights the files of each job are used."""

import os
import pwd
from pathlib import Path
from typing import Final

from kettle.accounts.lookup import Accounts, StrangerError
from kettle.accounts.rights import Rights
from kettle.transfer.spooled_jobs import is_spooled
from kettle.transfer.submit_side_paths import text
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

_SPOOL: Final = Rights(65523, 65523)
"""
For spooled files of those who have no account here: numbers that belong to nobody (see `kettle.embedded.server_account`).
"""


class Owners:
    """Finds the access to files that a job has; `places` is that of our own account."""

    def __init__(self, accounts: Accounts, places: FileAccess, spooled: SpooledFiles) -> None:
        self._accounts = accounts
        self._places = places
        self._spooled = spooled

    @property
    def own(self) -> FileAccess:
        """The access of our own account."""
        return self._places

    async def access(self, job: JobId, ad: Ad) -> FileAccess:
        """
        What its owner may do with files.  Raises StrangerError if the owner has none here.

        A job whose files were sent here needs no account: it has a directory of its own, and nothing else.
        """
        owner, spooled = text(ad, "Owner"), is_spooled(ad)
        try:
            rights, stranger = await self._accounts.find(owner), False
        except StrangerError:
            if not spooled:
                raise
            rights, stranger = (_SPOOL if self._accounts.privileged else None), True
        places = self._places if rights is None else self._places.of_owner(owner, rights)
        return self._spooled.places(job, places, confined=stranger) if spooled else places

    def of_directory(self, directory: Path) -> FileAccess:
        """
        What the owner may do to whom a directory of ours was given; waits for the machine's directory.  Raises OSError.
        """
        about = directory.stat()
        if about.st_uid == os.geteuid():
            return self._places
        try:
            return self.look(pwd.getpwuid(about.st_uid).pw_name)
        except (KeyError, StrangerError):  # who had no account, or has none any more
            return self._places.of_owner(str(about.st_uid), Rights(about.st_uid, about.st_gid))

    def look(self, owner: str) -> FileAccess:
        """
        What an owner may do, with a file of no job in particular; waits for the machine's directory.  Raises StrangerError.
        """
        rights = self._accounts.look(owner)
        return self._places if rights is None else self._places.of_owner(owner, rights)
