"""Accounts of this machine that use the pool, and the credentials that the pool has made for them."""

from pathlib import Path
from typing import Final

from kettle.accounts.lookup import own_name


class LocalAccounts:
    """
    Which there are now: the pool's master makes a credential for each, and sets it aside with the account's right to come.
    """

    def __init__(self, home: Path) -> None:
        """`home`: the pool's directory."""
        self._credentials: Final = home / "credentials"

    def key_of(self, name: str) -> Path | None:
        """
        The file of an account's credential; None: this account may not use the pool, or we may not read it.
        """
        path = self._credentials / f"account-{name}.creds"
        return path if name and "/" not in name and path.is_file() else None

    def may_come(self, name: str) -> bool:
        """Whether an account may use the pool: the one that it runs as may."""
        return name == own_name() or self.key_of(name) is not None
