"""
What a visitor may ask a startd for: it speaks for itself and its guests alone.

A visitor is a schedd of another pool together with its shadow. It is known by its credential; whatever a message of it
names, a schedd, a submitter, a claim, has to be its own.
"""

from collections.abc import Iterable

from kettle.bus.ports import RefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.startd import Activate, Alive, Confirm, RequestClaims
from kettle_wire.flocking import domain_of, is_claim_of, is_guest
from kettle_wire.identity import Identity


def may_request(command: RequestClaims, caller: Identity) -> None:
    """A visitor asks for claims of its own, for guests of its own."""
    if caller.kind != "visitor":
        return
    _own_schedd(command.schedd, caller)
    _own_claims((key.claim for key in command.claims), caller)
    if not is_guest(command.submitter, caller.name):
        raise RefusedError(
            RefusalCode.DENIED,
            f"{caller.name} asks for users of its own, name@{domain_of(caller.name)}, not for {command.submitter}",
        )


def may_renew(command: Alive, caller: Identity) -> None:
    """A visitor asks about its own claims."""
    if caller.kind == "visitor":
        _own_schedd(command.schedd, caller)


def may_activate(command: Activate, caller: Identity) -> None:
    """The files of a visitor's jobs come from its own shadow."""
    if caller.kind != "visitor":
        return
    _own_claims((report.claim for report in command.recorded), caller)
    for activation in command.activations:
        if activation.shadow != caller.name:
            raise RefusedError(
                RefusalCode.DENIED, f"{caller.name} is its own shadow; {activation.shadow} is not"
            )


def may_confirm(command: Confirm, caller: Identity) -> None:
    """A visitor confirms reports about its own claims."""
    if caller.kind == "visitor":
        _own_claims((report.claim for report in command.recorded), caller)


def _own_schedd(schedd: str, caller: Identity) -> None:
    if schedd != caller.name:
        raise RefusedError(RefusalCode.DENIED, f"{caller.name} speaks for itself, not for {schedd}")


def _own_claims(claims: Iterable[str], caller: Identity) -> None:
    for claim in claims:
        if not is_claim_of(claim, caller.name):
            raise RefusedError(RefusalCode.DENIED, f"the claim {claim} is none of {caller.name}'s")
