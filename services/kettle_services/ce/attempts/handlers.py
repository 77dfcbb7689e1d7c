"""What the schedd and the shadow ask, as they ask a startd: decide, record, answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError, Served
from kettle.routes.targets import named
from kettle_services.ce.attempts.book import Book, now
from kettle_services.ce.attempts.follower import Follower
from kettle_services.ce.attempts.reports import Reporting
from kettle_services.ce.domain.attempts import activation as jobs
from kettle_services.ce.domain.attempts import claims
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run, Stage
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.startd import (
    ACTIVATE,
    ALIVE,
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    RELEASE,
    REQUEST_CLAIMS,
    SUSPEND,
    Activate,
    Activated,
    Activation,
    ActivationResult,
    Alive,
    AliveReply,
    ClaimsDecided,
    Confirm,
    Deactivate,
    Done,
    FetchOutput,
    Piece,
    Release,
    RequestClaims,
    Suspend,
)
from kettle_wire.identity import Identity

Req = TypeVar("Req")
Rep = TypeVar("Rep")
_PIECE_BYTES: Final = 512 * 1024


class Handlers:
    """The answers of one entrypoint, which serves one access point."""

    def __init__(
        self,
        book: Book,
        followers: Mapping[str, Follower],
        reporting: Reporting,
        accounts: Accounts,
        *,
        schedd: str,
        pool: str,
    ) -> None:
        self._book: Final = book
        self._followers: Final = followers
        self._reporting: Final = reporting
        self._accounts: Final = accounts
        self._schedd: Final = schedd
        self._pool: Final = pool

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        return [
            Served(REQUEST_CLAIMS, self._for_ours(self.request_claims)),
            Served(ALIVE, self._for_ours(self.alive)),
            Served(ACTIVATE, self._for_ours(self.activate)),
            Served(DEACTIVATE, self._for_ours(self.deactivate)),
            Served(SUSPEND, self._for_ours(self.suspend)),
            Served(RELEASE, self._for_ours(self.release)),
            Served(CONFIRM, self._for_ours(self.confirm)),
            Served(FETCH_OUTPUT, self._for_ours(self.fetch_output)),
        ]

    def _for_ours(
        self, handler: Callable[[Req, Identity], Awaitable[Rep]]
    ) -> Callable[[Req, Identity], Awaitable[Rep]]:
        """
        The handler for daemons of our access point alone: they say under whose account a job runs, and nobody else is believed that.
        """

        async def checked(command: Req, caller: Identity) -> Rep:
            if caller.kind != "daemon" or caller.access_point not in {"", self._schedd}:
                raise RefusedError(
                    RefusalCode.DENIED,
                    f"this entrypoint is for jobs of {self._schedd}, and does not listen to {caller.name}",
                )
            return await handler(command, caller)

        return checked

    async def request_claims(self, command: RequestClaims, caller: Identity) -> ClaimsDecided:
        """Grant places at a batch system, or say why not."""
        if command.schedd != self._schedd:
            raise RefusedError(
                RefusalCode.DENIED, f"this entrypoint is for jobs of {self._schedd}, not of {command.schedd}"
            )
        systems = {name: each.settings.kind.value for name, each in self._followers.items()}
        reply, changes = claims.request_claims(
            self._book.claims,
            command,
            named(command.slot, systems),
            {name: each.trouble for name, each in self._followers.items()},
            now(),
        )
        await self._book.record(changes)
        return reply

    async def alive(self, command: Alive, caller: Identity) -> AliveReply:
        """Renew leases and compare lists."""
        reply, changes = claims.alive(self._book.claims, command, now())
        await self._book.record(changes)
        return reply

    async def release(self, command: Release, caller: Identity) -> Done:
        """Take claims back."""
        await self._book.record(claims.release(self._book.claims, command.claims, command.reason, now()))
        return Done()

    async def activate(self, command: Activate, caller: Identity) -> Activated:
        """Begin with jobs; confirmations of earlier ones come along."""
        await self._confirm(Confirm(recorded=command.recorded))
        results: list[ActivationResult] = []
        changes: claims.Changes = []
        begun: list[Activation] = []
        for activation in command.activations:
            claim = self._book.claims.get(activation.key.claim)
            result, more = jobs.activate(
                self._book.claims, activation, now(), pool=self._pool, owner=self._owner(claim, activation)
            )
            results.append(result)
            changes += more
            begun += [activation] if more else []
        await self._book.record(changes)
        for activation in begun:
            claim = self._book.claims.get(activation.key.claim)
            if claim is not None and claim.run is not None and claim.run.stage is Stage.STAGING:
                self._followers[claim.system].begin(claim.claim, activation)
        return Activated(results=results)

    def _owner(self, claim: BatchClaim | None, activation: Activation) -> str:
        """The account that runs it; empty: ours, or the one that the batch system's host lets in."""
        if claim is None or self._followers[claim.system].settings.is_one_login:
            return ""
        owner = jobs.owner_of(activation.ad)
        return "" if owner == self._accounts.own else owner

    async def deactivate(self, command: Deactivate, caller: Identity) -> Done:
        """End jobs."""
        changes = [
            change for each in command.attempts for change in jobs.deactivate(self._book.claims, each, now())
        ]
        await self._book.record(changes)
        return Done()

    async def suspend(self, command: Suspend, caller: Identity) -> Done:
        """Stop jobs, or have them go on."""
        changes = [change for each in command.orders for change in jobs.suspend(self._book.claims, each)]
        await self._book.record(changes)
        return Done()

    async def confirm(self, command: Confirm, caller: Identity) -> Done:
        """Forget what is recorded."""
        await self._confirm(command)
        return Done()

    async def _confirm(self, command: Confirm) -> None:
        for key in command.recorded:
            self._reporting.confirmed(key)
        await self._book.record(claims.confirm(self._book.claims, command.recorded))

    async def fetch_output(self, command: FetchOutput, caller: Identity) -> Piece:
        """Read a piece of a result."""
        claim = claims.proven(self._book.claims, command.key)
        run = claim.run if claim is not None else None
        if claim is None or run is None or not _ended(run, command):
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"no output {command.name} of that attempt waits here for you"
            )
        length = min(command.length, _PIECE_BYTES)
        sandboxes = self._followers[claim.system].sandboxes
        try:
            return Piece(await sandboxes.read(run, command.name, command.offset, length))
        except OSError as error:
            raise RefusedError(
                RefusalCode.UNREADABLE, f"{command.name}: {error.strerror or error}"
            ) from error


def _ended(run: Run, command: FetchOutput) -> bool:
    return run.stage is Stage.ENDED and (run.job, run.attempt) == (command.job, command.attempt)
