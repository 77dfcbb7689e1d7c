"""The tokens of programs of HTCondor: having one, asking for one, and approving what others ask for."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from kettle.auth.mapping.levels import SCOPE, Level
from kettle.bus.ports import Rep, Req
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import ClientError
from kettle.client.iam_http import IamHttp
from kettle.client.join_tokens import PATIENCE_S, new_secret
from kettle.client.rights import RightsClient
from kettle_wire.commands import token_requests as wire
from kettle_wire.commands.token_requests import FetchedToken, TokenRequestShown
from kettle_wire.endpoint import Endpoint
from kettle_wire.iam_http import COLLECT, TOKEN_REQUESTS

T = TypeVar("T")
_ORDINARY: Final = Level.WRITE.implied()
"""The levels that everybody may put into a token."""


class OpenRequest(msgspec.Struct, frozen=True):
    """A request that waits, and the secret with which its token is collected."""

    request: str
    secret: str
    expires: float


class TokenRequestClient:
    """Asks iam over the bus: an administrator for everything, others for what is their own."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def fetch(self, *, levels: Sequence[str] = (), lifetime: int = 0, key: str = "") -> FetchedToken:
        """A token for us, limited to READ and WRITE unless other levels are named."""
        endpoint = wire.FETCH_TOKEN if _ORDINARY.issuperset(levels) else wire.FETCH_ANY_TOKEN
        request = wire.FetchToken(levels=list(levels), lifetime=lifetime, key=key)
        return await self._ask(endpoint, request)

    async def request(
        self, *, client: str, identity: str = "", levels: Sequence[str] = (), lifetime: int = 0
    ) -> OpenRequest:
        """Ask for a token of an identity, by default of the pool's daemons."""
        secret, hash_ = new_secret()
        request = wire.RequestToken(
            id=new_id(),
            hash=hash_,
            client=client,
            identity=identity or None,
            levels=list(levels),
            lifetime=lifetime,
        )
        made = await self._ask(wire.REQUEST_TOKEN, request)
        return OpenRequest(made.request, secret, made.expires)

    async def collect(self, request: OpenRequest) -> str:
        """The token of a request; empty as long as nobody has approved it."""
        asked = wire.CollectToken(request=request.request, secret=request.secret)
        return (await self._ask(wire.COLLECT_TOKEN, asked)).token

    async def waiting(self) -> list[TokenRequestShown]:
        """The requests that wait: all, for an administrator, else those for a token of us."""
        everything = await self._may(wire.LIST_TOKEN_REQUESTS)
        endpoint = wire.LIST_TOKEN_REQUESTS if everything else wire.LIST_OWN_TOKEN_REQUESTS
        return (await self._ask(endpoint, wire.ListTokenRequests())).requests

    async def approve(self, request: TokenRequestShown) -> None:
        """Have the token of a request be given."""
        approval = wire.ApproveTokenRequest(id=new_id(), request=request.request, client=request.client)
        everything = await self._may(wire.APPROVE_TOKEN_REQUEST)
        await self._ask(
            wire.APPROVE_TOKEN_REQUEST if everything else wire.APPROVE_OWN_TOKEN_REQUEST, approval
        )

    async def auto_approve(self, netblock: str, *, lifetime: int) -> list[str]:
        """Approve what daemons of a network ask for themselves; the requests that were approved at once."""
        request = wire.AutoApprove(id=new_id(), netblock=netblock, lifetime=lifetime)
        return (await self._ask(wire.AUTO_APPROVE, request)).approved

    async def _may(self, endpoint: Endpoint[Req, Rep]) -> bool:
        """Asked first, because who just tries is recorded as somebody who was refused."""
        return (await RightsClient(self._requests).may(f"{endpoint.role}.{endpoint.verb}")).allowed

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        patience = min(self._requests.transport.patience, PATIENCE_S)
        return await self._requests.ask(endpoint, request, patience=patience)


class _Made(msgspec.Struct, frozen=True):
    request: str
    expires: float


class _Collected(msgspec.Struct, frozen=True):
    token: str


class TokenRequestHttp:
    """Asks iam over HTTP, for who has nothing to show."""

    def __init__(self, iam: IamHttp) -> None:
        self._iam = iam

    def request(
        self, *, client: str, identity: str = "", levels: Sequence[str] = (), lifetime: int = 0
    ) -> OpenRequest:
        """As `TokenRequestClient.request`."""
        secret, hash_ = new_secret()
        form = {
            "secret_sha256": hash_,
            "client": client,
            "identity": identity,
            "scope": " ".join(f"{SCOPE}{level}" for level in levels),
            "lifetime": str(lifetime),
        }
        made = self._decoded(self._iam.post(TOKEN_REQUESTS, form), _Made)
        return OpenRequest(made.request, secret, made.expires)

    def collect(self, request: OpenRequest) -> str:
        """As `TokenRequestClient.collect`."""
        form = {"request": request.request, "secret": request.secret}
        return self._decoded(self._iam.post(COLLECT, form), _Collected).token

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise ClientError(f"{self._iam.host} does not answer as an iam does") from error
