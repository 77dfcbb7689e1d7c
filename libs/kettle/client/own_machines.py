"""What people ask of iam about machines that run their own jobs only."""

from kettle.client.connections.transport import Requests, new_id
from kettle.client.join_tokens import MadeJoinToken, iam_patience, new_secret
from kettle_wire.commands import own_machines as own
from kettle_wire.commands.iam import JoinTokenShown, WorkerShown
from kettle_wire.iam_http import join_token


class OwnMachinesClient:
    """Asks it; what is an administrator's is refused, with a `CommandRefusedError`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def create_join_token(self, *, lifetime: float = 1800.0, max_uses: int = 1) -> MadeJoinToken:
        """
        Let machines join; who comes with a token shows it once more, and the machines go when that is good no more.
        """
        secret, hash_ = new_secret()
        request: own.CreateOwnJoinToken | own.CreateBearersJoinToken
        if credential := await self._requests.transport.token():
            request = own.CreateBearersJoinToken(
                id=new_id(), hash=hash_, credential=credential, lifetime=lifetime, max_uses=max_uses
            )
            made = await self._requests.ask(
                own.CREATE_BEARERS_JOIN_TOKEN, request, patience=iam_patience(self._requests)
            )
        else:
            request = own.CreateOwnJoinToken(id=new_id(), hash=hash_, lifetime=lifetime, max_uses=max_uses)
            made = await self._requests.ask(
                own.CREATE_OWN_JOIN_TOKEN, request, patience=iam_patience(self._requests)
            )
        return MadeJoinToken(token=join_token(made.token, secret, made.pin), made=made)

    async def join_tokens(self) -> list[JoinTokenShown]:
        """Those that one has made and that can be used."""
        answer = await self._requests.ask(
            own.LIST_OWN_JOIN_TOKENS, own.ListOwnJoinTokens(), patience=iam_patience(self._requests)
        )
        return answer.tokens

    async def revoke_join_token(self, token: str) -> None:
        """Withdraw one of these, by its id."""
        request = own.RevokeOwnJoinToken(id=new_id(), token=token)
        await self._requests.ask(own.REVOKE_OWN_JOIN_TOKEN, request, patience=iam_patience(self._requests))

    async def workers(self) -> list[WorkerShown]:
        """The machines that run one's own jobs only."""
        answer = await self._requests.ask(
            own.LIST_OWN_WORKERS, own.ListOwnWorkers(), patience=iam_patience(self._requests)
        )
        return answer.workers

    async def remove_worker(self, worker: str) -> None:
        """Have the credential of a machine be invalid that one has let in."""
        request = own.RemoveOwnWorker(id=new_id(), worker=worker)
        await self._requests.ask(own.REMOVE_OWN_WORKER, request, patience=iam_patience(self._requests))
