"""
Commands: decide, record, answer.
"""

import asyncio
import os
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle.startd.books import NotRecordedError
from kettle.startd.domain import attempts, claims
from kettle.startd.domain.claim import Begun
from kettle.startd.startd import Startd, moment
from kettle.wire.commands.startd import (
    ACTIVATE,
    ALIVE,
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    RELEASE,
    REQUEST_CLAIMS,
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
)
from kettle.wire.identity import Identity

_PIECE_BYTES: Final = 512 * 1024


class Handlers:
    """
    What schedds and shadows ask of this machine.
    """

    def __init__(self, startd: Startd) -> None:
        self._startd = startd
        self._machine = startd.machine

    def served(self) -> list[Served[Any, Any]]:
        """
        All endpoints with their handlers.
        """
        return [
            Served(REQUEST_CLAIMS, self.request_claims),
            Served(ALIVE, self.alive),
            Served(ACTIVATE, self.activate),
            Served(DEACTIVATE, self.deactivate),
            Served(RELEASE, self.release),
            Served(CONFIRM, self.confirm),
            Served(FETCH_OUTPUT, self.fetch_output),
        ]

    async def request_claims(self, command: RequestClaims, caller: Identity) -> ClaimsDecided:
        """
        Accept or refuse claims.
        """
        _only("schedd", caller)
        reply, changes = claims.request_claims(self._machine, command, moment())
        try:
            self._startd.record(changes)
        except NotRecordedError:  # the machine knows of its trouble now, and grants only what there was
            reply, _ = claims.request_claims(self._machine, command, moment())
        return reply

    async def alive(self, command: Alive, caller: Identity) -> AliveReply:
        """
        Renew leases and compare lists.
        """
        _only("schedd", caller)
        reply, changes = claims.alive(self._machine, command, moment())
        self._startd.record(changes)
        return reply

    async def release(self, command: Release, caller: Identity) -> Done:
        """
        Take claims back.
        """
        _only("schedd", caller)
        self._startd.record(claims.release(self._machine, command.claims, command.reason))
        return Done()

    async def activate(self, command: Activate, caller: Identity) -> Activated:
        """
        Start attempts; confirmations of earlier ones come along.
        """
        _only("shadow", caller)
        self._startd.reporter.confirm(command.recorded)
        results: list[ActivationResult] = []
        for activation in command.activations:
            result, changes = attempts.activate(self._machine, activation, moment())
            try:
                self._startd.record(changes)
            except NotRecordedError:
                result, changes = attempts.activate(self._machine, activation, moment())
            for change in changes:
                if isinstance(change, Begun):
                    self._startd.begin(activation, change)
            results.append(self._remembered(activation) or result)
        return Activated(results=results)

    def _remembered(self, activation: Activation) -> ActivationResult | None:
        """
        The answer to a probe for an attempt whose claim is gone, but whose final report still waits here.
        """
        claim, job, attempt = activation.key.claim, activation.job, activation.attempt
        if activation.probe and self._startd.reporter.knows(claim, job, attempt, activation.key.secret):
            return ActivationResult(claim=claim, job=job, attempt=attempt)
        return None

    async def deactivate(self, command: Deactivate, caller: Identity) -> Done:
        """
        End attempts.
        """
        _only("shadow", caller)
        for attempt in command.attempts:
            self._startd.record(attempts.deactivate(self._machine, attempt))
        return Done()

    async def confirm(self, command: Confirm, caller: Identity) -> Done:
        """
        Forget what is recorded.
        """
        _only("shadow", caller)
        self._startd.reporter.confirm(command.recorded)
        return Done()

    async def fetch_output(self, command: FetchOutput, caller: Identity) -> Piece:
        """
        Read a piece of a result.
        """
        _only("shadow", caller)
        path = self._startd.reporter.output(
            command.key.claim, command.job, command.attempt, command.key.secret, command.name
        )
        if path is None:
            raise RefusedError("not_found", f"no output {command.name} of that attempt waits here for you")
        try:
            return Piece(
                await asyncio.to_thread(_read, str(path), command.name, command.offset, command.length)
            )
        except OSError as error:
            raise RefusedError("unreadable", f"{command.name}: {error.strerror}") from error


def _read(path: str, name: str, offset: int, length: int) -> bytes:
    """
    The job is gone, so what a path leads to does not change; but what it had made may lead out of its sandbox.
    """
    inside = os.path.realpath(path.removesuffix(name))
    if offset < 0 or os.path.realpath(path) != f"{inside}/{name}":
        raise RefusedError("unreadable", f"{name} leads out of the sandbox")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.pread(fd, max(0, min(length, _PIECE_BYTES)), offset)
    finally:
        os.close(fd)


def _only(role: str, caller: Identity) -> None:
    if caller.kind != "daemon" or caller.name != role:
        raise RefusedError("denied", f"only a {role} may say this, not {caller.name}")
