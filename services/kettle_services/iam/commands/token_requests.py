"""Tokens of programs of HTCondor, over the bus."""

from typing import Any, Final

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain.state import TokenRequest
from kettle_services.iam.domain.token_requests import ORDINARY, require_ordinary
from kettle_services.iam.token_requests import TokenRequests, Wish
from kettle_wire.commands import token_requests as wire
from kettle_wire.commands.iam import Recorded
from kettle_wire.endpoint import Position
from kettle_wire.identity import Identity


class TokenRequestCommands:
    """Gives tokens, takes requests for them, and has them approved."""

    def __init__(self, requests: TokenRequests) -> None:
        self._requests: Final = requests

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        anybody = pipeline.query(wire.LIST_OWN_TOKEN_REQUESTS, self.list_own)
        administrators = anybody.administrators
        return [
            Served(wire.FETCH_TOKEN, self.fetch, administrators),
            Served(wire.FETCH_ANY_TOKEN, self.fetch_any, administrators),
            pipeline.command(wire.REQUEST_TOKEN, self.request),
            Served(wire.COLLECT_TOKEN, self.collect, administrators),
            anybody,
            pipeline.query(wire.LIST_TOKEN_REQUESTS, self.list_all),
            pipeline.command(wire.APPROVE_OWN_TOKEN_REQUEST, self.approve_own),
            pipeline.command(wire.APPROVE_TOKEN_REQUEST, self.approve),
            pipeline.command(wire.AUTO_APPROVE, self.auto_approve),
        ]

    async def fetch(self, request: wire.FetchToken, caller: Identity) -> wire.FetchedToken:
        """A token with READ and WRITE, or one of them."""
        wanted = wire.FetchToken(
            levels=request.levels or sorted(ORDINARY), lifetime=request.lifetime, key=request.key
        )
        with refusing():
            require_ordinary(wanted.levels, whose=caller.name)
            return await self._requests.fetch(caller.name, wanted)

    async def fetch_any(self, request: wire.FetchToken, caller: Identity) -> wire.FetchedToken:
        """A token with any levels, or without limits."""
        with refusing():
            return await self._requests.fetch(caller.name, request)

    async def request(self, request: wire.RequestToken, caller: Identity) -> Decision[wire.TokenRequestMade]:
        """Ask for a token of any identity."""
        with refusing():
            asked = self._requests.request(
                Wish(
                    hash=request.hash,
                    client=request.client,
                    identity=request.identity or "",
                    levels=request.levels,
                    lifetime=request.lifetime,
                    requester=self._requests.identity_of(caller.name),
                )
            )

        def reply(position: Position) -> wire.TokenRequestMade:
            return wire.TokenRequestMade(
                request=asked.request.request, expires=asked.request.expires, position=position
            )

        return Decision(reply, asked.changes)

    async def collect(self, request: wire.CollectToken, caller: Identity) -> wire.CollectedToken:
        """The token of an approved request."""
        with refusing():
            token = await self._requests.collect(request.request, request.secret, address="")
        return wire.CollectedToken(token=token)

    async def list_own(self, request: wire.ListTokenRequests, caller: Identity) -> wire.TokenRequests:
        """The requests for tokens of who asks."""
        return _shown(self._requests.waiting(self._requests.identity_of(caller.name)))

    async def list_all(self, request: wire.ListTokenRequests, caller: Identity) -> wire.TokenRequests:
        """All requests that wait."""
        return _shown(self._requests.waiting())

    async def approve_own(self, request: wire.ApproveTokenRequest, caller: Identity) -> Decision[Recorded]:
        """Approve a request for a token of who approves it, with no more than WRITE."""
        own = self._requests.identity_of(caller.name)
        with refusing():
            return recorded(self._requests.approve(request.request, request.client, by=caller.name, own=own))

    async def approve(self, request: wire.ApproveTokenRequest, caller: Identity) -> Decision[Recorded]:
        """Approve any request."""
        with refusing():
            return recorded(self._requests.approve(request.request, request.client, by=caller.name))

    async def auto_approve(self, request: wire.AutoApprove, caller: Identity) -> Decision[wire.AutoApproved]:
        """Approve what daemons of a network ask for themselves."""
        with refusing():
            changes, approved = self._requests.auto_approve(
                request.netblock, lifetime=request.lifetime, by=caller.name
            )
        return Decision(lambda position: wire.AutoApproved(approved=approved, position=position), changes)


def _shown(requests: list[TokenRequest]) -> wire.TokenRequests:
    return wire.TokenRequests(
        requests=[
            wire.TokenRequestShown(
                request=each.request,
                client=each.client,
                address=each.address,
                requester=each.requester,
                identity=each.identity,
                levels=list(each.levels),
                lifetime=each.wanted,
                made=each.made,
                expires=each.expires,
            )
            for each in requests
        ]
    )
