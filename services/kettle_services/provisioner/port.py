"""
What a provider has to be able to do. Each passes the same conformance suite.

A provider is asked by one caller at a time for one machine, and by many for different ones; it is given a time limit from
outside, and may be cancelled at any moment. It keeps nothing that matters: what it made it finds again by the lease and
the deployment that it wrote into it.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, Order
from kettle_wire.worker_pools import Hibernation, Offer, StaticMachine


class ProviderError(Exception):
    """It refuses, and nothing was made; the text is the provider's own, without secrets."""

    def __init__(self, error: ErrorClass, words: str, *, retry_after: float = 0.0) -> None:
        """`retry_after`: seconds, if it said so."""
        super().__init__(words)
        self.error = error
        self.retry_after = retry_after


class UnavailableError(Exception):
    """It does not answer, which says nothing about any machine."""


class InDoubtError(Exception):
    """It was asked to make a machine, and nobody knows whether it did."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider has of us."""

    machines: list[MachineFound]
    complete: bool
    """Whether these are all, as far as it can be known: only then may absence mean anything."""


class Room(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much more we may have; None: it is not said."""

    machines: int | None = None
    cpus: int | None = None
    memory: int | None = None
    """MB."""


@runtime_checkable
class TellsOfEnds(Protocol):
    """Some providers notice by themselves that a machine has ended."""

    async def tell_of_ends(self, told: Callable[[Handle], None]) -> None:
        """Have somebody told; it is a reason to look at the machine, and no proof of anything."""
        ...


@runtime_checkable
class SwitchesMachines(Protocol):
    """Some providers put machines that are there to sleep, and wake them."""

    async def switch(self, machine: StaticMachine, to: Literal["sleep", "wake"], level: Hibernation) -> None:
        """
        Put a machine to sleep, or wake it; whether it follows is seen at the machine.

        Raises:
            ProviderError: it refuses; nothing was done.
            InDoubtError, UnavailableError: nobody knows.  Cancelled, it is in doubt as well.
        """
        ...


class Provider(Protocol):
    """Makes machines and removes them."""

    visibility: float
    """Seconds after its creation in which a machine may not be shown yet by `find` and `get`."""

    async def check(self, offer: Offer) -> Sequence[str]:
        """
        What is wrong with an offer, each in one sentence, found without making anything; empty: nothing.

        Raises:
            ProviderError: it cannot be asked so (credential, set-up).
            UnavailableError: it does not answer.
        """
        ...

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """
        Make one machine. It is never called twice for the same attempt of the same lease.

        Raises:
            ProviderError: it refuses; there is no machine.
            InDoubtError: it may have made one.  Cancelled, it is in doubt as well.
        """
        ...

    async def find(self) -> Found:
        """
        All machines of this deployment.  Raises UnavailableError, or ProviderError for a credential that it does not accept:
        an empty list is never the answer to a wrong one.
        """
        ...

    async def get(self, handle: Handle) -> MachineFound:
        """One machine; one that is not there is `gone`.  Raises UnavailableError, ProviderError."""
        ...

    async def delete(self, handle: Handle) -> None:
        """
        Have a machine removed; one that is not there is no error.  That it is gone is proven by `get`, not by this.

        Raises UnavailableError, ProviderError.
        """
        ...

    async def room(self) -> Room:
        """How much more there may be.  Raises UnavailableError, ProviderError."""
        ...

    async def console(self, handle: Handle) -> str:
        """
        The end of what the machine wrote while it started; empty: there is nothing.  Raises UnavailableError, ProviderError.
        """
        ...

    async def close(self) -> None:
        """Give up connections; machines stay."""
        ...
