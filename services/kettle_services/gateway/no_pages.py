"""What a gateway that serves no pages answers to who asks for them; it loads no web server."""

from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
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


async def _address(_request: QueryAddress, _caller: Identity) -> GatewayAddress:
    return GatewayAddress(url="")


async def _link(_request: MakeLoginLink, _caller: Identity) -> LoginLink:
    raise RefusedError(
        RefusalCode.UNSUPPORTED,
        "this gateway serves no pages: rest of [gateway] in kettle.toml switches them on",
    )


NO_PAGES: Final[list[Served[Any, Any]]] = [Served(QUERY_ADDRESS, _address), Served(MAKE_LOGIN_LINK, _link)]
