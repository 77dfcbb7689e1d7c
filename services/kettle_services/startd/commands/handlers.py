"""Commands: decide, record, answer."""

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Final

import msgspec

from kettle.bus.ports import RefusedError, Served
from kettle.classad import ClassAdParseError, parse
from kettle.execution.sandbox.kept_results import read_kept
from kettle_services.startd.commands.authorization import (
    may_activate,
    may_confirm,
    may_renew,
    may_request,
)
from kettle_services.startd.commands.job_access import JobAccess
from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.policy.draining import DrainRefused, require_idle
from kettle_services.startd.domain.state.changes import AttemptAccepted
from kettle_services.startd.domain.state.claim import DrainInForce as Wish
from kettle_services.startd.startd import Startd, moment
from kettle_services.startd.state.recorder import NotRecordedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.startd import (
    ACTIVATE,
    ALIVE,
    CANCEL_DRAIN,
    CONFIRM,
    DEACTIVATE,
    DRAIN,
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
    CancelDrain,
    ClaimsDecided,
    Confirm,
    Deactivate,
    Done,
    Drain,
    FetchOutput,
    Piece,
    Release,
    RequestClaims,
    Suspend,
)
from kettle_wire.identity import Identity

_log: Final = logging.getLogger(__name__)
_PIECE_BYTES: Final = 512 * 1024


class Handlers:
    """What schedds, shadows and administrators ask of this machine."""

    def __init__(self, startd: Startd, *, administrators: Collection[str] = (), scaled: bool = False) -> None:
        """`administrators` may drain it; `scaled`: the pool's scaler may, too."""
        self._scaled = scaled
        self._administrators = lambda: administrators
        self._startd = startd
        self._machine = startd.machine

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        return [
            Served(REQUEST_CLAIMS, self.request_claims),
            Served(ALIVE, self.alive),
            Served(ACTIVATE, self.activate),
            Served(DEACTIVATE, self.deactivate),
            Served(SUSPEND, self.suspend),
            Served(RELEASE, self.release),
            Served(CONFIRM, self.confirm),
            Served(FETCH_OUTPUT, self.fetch_output),
            Served(DRAIN, self.drain, self._administrators),
            Served(CANCEL_DRAIN, self.cancel_drain, self._administrators),
            *JobAccess(self._startd).served(),
        ]

    async def request_claims(self, command: RequestClaims, caller: Identity) -> ClaimsDecided:
        """Accept or refuse claims."""
        may_request(command, caller)
        reply, changes = requests.request_claims(self._machine, command, moment())
        try:
            self._startd.record(changes)
        except NotRecordedError:  # the machine knows of its trouble now, and grants only what there was
            reply, _ = requests.request_claims(self._machine, command, moment())
        return reply

    async def alive(self, command: Alive, caller: Identity) -> AliveReply:
        """Renew leases and compare lists."""
        may_renew(command, caller)
        reply, changes = requests.alive(self._machine, command, moment())
        self._startd.record(changes)
        reported = self._startd.reporter.claims_of(command.claims)
        self._startd.note_awaited(reported, command.deadline)
        if reply.unknown:
            # A claim may be gone before how its job ended is on record: its schedd must not take it for lost meanwhile.
            return msgspec.structs.replace(
                reply, unknown=[claim for claim in reply.unknown if claim not in reported]
            )
        return reply

    async def release(self, command: Release, caller: Identity) -> Done:
        """Take claims back."""
        self._startd.record(requests.release(self._machine, command.claims, command.reason, moment()))
        return Done()

    async def activate(self, command: Activate, caller: Identity) -> Activated:
        """Start attempts; confirmations of earlier ones come along."""
        may_activate(command, caller)
        self._startd.confirm(command.recorded)
        results: list[ActivationResult] = []
        for activation in command.activations:
            result, changes = attempts.activate(self._machine, activation, moment())
            try:
                self._startd.record(changes)
            except NotRecordedError:
                result, changes = attempts.activate(self._machine, activation, moment())
            for change in changes:
                if isinstance(change, AttemptAccepted):
                    self._startd.begin(activation, change)
            if not (changes or result.code):
                self._startd.repeat_begun(activation)
            results.append(self._remembered(activation) or result)
        return Activated(results=results)

    def _remembered(self, activation: Activation) -> ActivationResult | None:
        """
        The answer to a query about an attempt whose claim has ended, but whose final report still waits here.
        """
        claim, job, attempt = activation.key.claim, activation.job, activation.attempt
        if activation.probe and self._startd.reporter.knows(claim, job, attempt, activation.key.secret):
            return ActivationResult(claim=claim, job=job, attempt=attempt)
        return None

    async def deactivate(self, command: Deactivate, caller: Identity) -> Done:
        """End attempts."""
        for attempt in command.attempts:
            self._startd.record(attempts.deactivate(self._machine, attempt, moment()))
        return Done()

    async def suspend(self, command: Suspend, caller: Identity) -> Done:
        """Suspend attempts, or continue them."""
        for order in command.orders:
            self._startd.record(attempts.suspend(self._machine, order, moment()))
        return Done()

    async def drain(self, command: Drain, caller: Identity) -> Done:
        """Empty the machine."""
        self._may_drain(caller)
        for name, text in (("check", command.check), ("start", command.start)):
            _expression(name, text)
        wish = Wish(
            id=command.id,
            speed=command.speed,
            at=0.0,
            by=caller.name,
            reason=command.reason,
            start=command.start or "false",
            resume=command.resume,
        )
        try:
            if command.idle:
                require_idle(self._machine, wish, results=self._startd.reporter.unconfirmed)
            self._startd.overseer.drain(wish, command.check)
        except DrainRefused as refusal:
            raise RefusedError(RefusalCode.REFUSED, str(refusal)) from refusal
        _log.info("draining", extra={"by": caller.name, "speed": command.speed, "request": command.id})
        return Done()

    def _may_drain(self, caller: Identity) -> None:
        if caller.kind == "daemon" and not self._scaled:
            raise RefusedError(
                RefusalCode.DENIED,
                "this machine is of no lease and may not hibernate (can_hibernate): its administrators drain it, no service does",
            )

    async def cancel_drain(self, command: CancelDrain, caller: Identity) -> Done:
        """Take work again."""
        self._may_drain(caller)
        try:
            self._startd.overseer.cancel(command.request)
        except DrainRefused as refusal:
            raise RefusedError(RefusalCode.REFUSED, str(refusal)) from refusal
        _log.info("draining is cancelled", extra={"by": caller.name})
        return Done()

    async def confirm(self, command: Confirm, caller: Identity) -> Done:
        """Forget what is recorded."""
        may_confirm(command, caller)
        self._startd.confirm(command.recorded)
        return Done()

    async def fetch_output(self, command: FetchOutput, caller: Identity) -> Piece:
        """Read a piece of a result."""
        wanted = (command.key.claim, command.job, command.attempt, command.key.secret, command.name)
        startd = self._startd
        sandbox = startd.reporter.sandbox_with(*wanted) or startd.checkpoints.sandbox_with(*wanted)
        if sandbox is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"no output {command.name} of that attempt waits here for you"
            )
        length = min(command.length, _PIECE_BYTES)
        try:
            return Piece(
                await asyncio.to_thread(read_kept, str(sandbox), command.name, command.offset, length)
            )
        except OSError as error:
            raise RefusedError(
                RefusalCode.UNREADABLE, f"{command.name}: {error.strerror or error}"
            ) from error


def _expression(name: str, text: str) -> None:
    try:
        if text:
            parse(text)
    except ClassAdParseError as error:
        raise RefusedError(RefusalCode.MALFORMED, f"{name}: {error}") from error
