"""Login links for who asks over the bus, whose server says as whom somebody asks."""

import time
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.links import LIFE_S, Links
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import (
    MAKE_LOGIN_LINK,
    QUERY_ADDRESS,
    GatewayAddress,
    LoginLink,
    MakeLoginLink,
    QueryAddress,
)
from kettle_wire.identity import Identity


class LinksByBus:
    """Makes them."""

    def __init__(self, links: Links, persons: Persons, url: str) -> None:
        """`url`: where browsers find this gateway."""
        self._links: Final = links
        self._persons: Final = persons
        self._url: Final = url

    def served(self) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [Served(QUERY_ADDRESS, self.address), Served(MAKE_LOGIN_LINK, self.link)]

    async def address(self, _request: QueryAddress, _caller: Identity) -> GatewayAddress:
        """See `QueryAddress`."""
        return GatewayAddress(url=self._url)

    async def link(self, _request: MakeLoginLink, caller: Identity) -> LoginLink:
        """See `MakeLoginLink`; refused for who could not sign in by it."""
        try:
            self._persons.of_account(caller.name, "")
        except RequestRefused as refusal:
            raise RefusedError(RefusalCode.DENIED, str(refusal)) from refusal
        now = time.time()
        code = self._links.make(caller.name, Credential(account=caller.name), now)
        return LoginLink(url=f"{self._url}/login?link={code}", expires=now + LIFE_S)
