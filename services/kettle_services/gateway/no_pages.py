"""What a gateway that serves no pages answers to who asks for them; it loads no web server."""

from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import (
    ADMIT_MEMBER,
    ADMIT_SERVICES,
    MAKE_ACCESS,
    MAKE_LOGIN_LINK,
    QUERY_ADDRESS,
    AccessMade,
    AdmitMember,
    AdmitServices,
    GatewayAddress,
    LoginLink,
    MakeAccess,
    MakeLoginLink,
    QueryAddress,
    ServicesAdmitted,
)
from kettle_wire.identity import Identity

_NOT_PUBLISHED: Final = (
    "the services of jobs are not published: rest of [gateway] in kettle.toml switches that on"
)


async def _address(_request: QueryAddress, _caller: Identity) -> GatewayAddress:
    return GatewayAddress(url="")


async def _link(_request: MakeLoginLink, _caller: Identity) -> LoginLink:
    raise RefusedError(
        RefusalCode.UNSUPPORTED,
        "this gateway serves no pages: rest of [gateway] in kettle.toml switches them on",
    )


async def _access(_request: MakeAccess, _caller: Identity) -> AccessMade:
    raise RefusedError(RefusalCode.UNSUPPORTED, _NOT_PUBLISHED)


async def _member(_request: AdmitMember, _caller: Identity) -> AccessMade:
    raise RefusedError(RefusalCode.UNSUPPORTED, _NOT_PUBLISHED)


async def _admit(_request: AdmitServices, _caller: Identity) -> ServicesAdmitted:
    raise RefusedError(RefusalCode.UNSUPPORTED, _NOT_PUBLISHED)


NO_PAGES: Final[list[Served[Any, Any]]] = [
    Served(QUERY_ADDRESS, _address),
    Served(MAKE_LOGIN_LINK, _link),
    Served(MAKE_ACCESS, _access),
    Served(ADMIT_MEMBER, _member),
    Served(ADMIT_SERVICES, _admit),
]
