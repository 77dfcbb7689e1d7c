"""
What somebody has shown when a session began, and by which that person is believed at each of its requests.
"""

from typing import Final

from kettle_services.gateway.rest.persons import Person, Persons


class Credential:
    """
    A token, or the name of an account that the bus has vouched for; it has no text, so that no log has it.
    """

    __slots__ = ("account", "token")

    def __init__(self, *, token: str = "", account: str = "") -> None:
        """One of the two."""
        self.token: Final = token
        self.account: Final = account

    async def believed(self, persons: Persons, address: str) -> Person:
        """Whose it is, by what is in force now; raises RequestRefused: nobody's."""
        if self.account:
            return persons.of_account(self.account, address)
        return await persons.of(self.token, address)
