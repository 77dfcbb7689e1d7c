"""
What every provider has to do, whatever it makes machines of.  A module for each subclasses it with a `world`.
"""

import asyncio
import stat
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_services.provisioner.port import (
    InDoubtError,
    Provider,
    ProviderError,
    UnavailableError,
)
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, MachineState, Order
from kettle_wire.worker_pools import Offer

DEPLOYMENT: Final = "here"
OTHER: Final = "elsewhere"
TOKEN: Final = "join-token-that-nobody-sees"
_LOOK_S: Final = 0.05


@dataclass
class World:
    """A provider in front of its peer, and what the peer can be made to do."""

    open: Callable[[str], Awaitable[Provider]]
    """The provider, for a deployment."""
    offer: Offer
    bad_offer: Offer
    """One that the provider refuses when it is asked."""
    bootstraps: Path
    """Where the program of machines puts what it was told, as `LEASE.json`."""
    away: Callable[[], AbstractAsyncContextManager[None]]
    """The peer does not answer while this lasts."""
    silent: Callable[[], AbstractAsyncContextManager[None]]
    """The peer takes what it is asked, and does it, but no answer comes back while this lasts."""
    hasty: Callable[[], Awaitable[Provider]] | None = None
    """The provider with little patience, for questions that can have no answer; None: it is told at once."""
    wrong: Callable[[], Awaitable[Provider]] | None = None
    """The provider with a credential that is not accepted; None: it has none."""
    opened: list[Provider] = field(default_factory=list)

    async def provider(self, deployment: str = DEPLOYMENT) -> Provider:
        """One that is closed with the test."""
        made = await self.open(deployment)
        self.opened.append(made)
        return made

    async def hasty_provider(self) -> Provider:
        """One for questions that can have no answer."""
        if self.hasty is None:
            return await self.provider()
        made = await self.hasty()
        self.opened.append(made)
        return made


def order(offer: Offer, lease: str, attempt: int = 1) -> Order:
    """A machine that lives ten minutes."""
    return Order(lease=lease, attempt=attempt, offer=offer, life=600.0)


def bootstrap(lease: str, deployment: str = DEPLOYMENT) -> Bootstrap:
    """What it is told."""
    return Bootstrap(url="nats://127.0.0.1:1", token=TOKEN, lease=lease, deployment=deployment, life=600.0)


def stand_in(place: Path) -> Path:
    """
    A program in the place of `kettle` on machines: it keeps its bootstrap as `LEASE.json` and the word `term` as `LEASE.term` once
    SIGTERM has reached it.
    """
    program = place / "kettle"
    program.write_text(f"""\
#!/bin/sh
[ "$1 $2 $3 $4 $5" = "worker run --bootstrap - --home" ] || exit 64
mkdir "$6" || exit 65
told=$(cat)
lease=$(printf %s "$told" | sed 's/.*"lease":"\\([^"]*\\)".*/\\1/')
trap 'echo term >{place}/$lease.term; kill $sleeper 2>/dev/null; exit 0' TERM
echo "the worker of $lease begins"
printf %s "$told" >{place}/$lease.part && mv {place}/$lease.part {place}/$lease.json
sleep 600 &
sleeper=$!
wait $sleeper
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return program


async def until(is_so: Callable[[], Awaitable[bool]] | Callable[[], bool], otherwise: str) -> None:
    """Wait for what other processes do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(_LOOK_S)
    raise AssertionError(otherwise)


async def gone(provider: Provider, handle: str) -> None:
    """Wait until a machine is not there; it is asked to go again as often as it takes."""

    async def is_gone() -> bool:
        if (await provider.get(handle)).state is MachineState.GONE:
            return True
        await provider.delete(handle)
        return False

    await until(is_gone, f"{handle} does not go")


class ProviderSuite:
    """The claims.  Each leaves no machine behind."""

    async def test_a_machine_comes_is_found_and_goes(self, world: World) -> None:
        """
        A machine is found by its lease as soon as it is made, runs the worker's program with its bootstrap, and is proven gone after
        it was removed; to remove it again is no error.
        """
        provider = await world.provider()
        handle = await provider.create(order(world.offer, "crowd-1-0"), bootstrap("crowd-1-0"))

        async def is_listed() -> bool:
            return handle in [each.handle for each in (await provider.find()).machines]

        await until(is_listed, "it is not found")
        found = await provider.find()
        assert found.complete
        (machine,) = found.machines
        assert ("crowd-1-0", DEPLOYMENT) == (machine.lease, machine.deployment)
        assert machine.state in {MachineState.PENDING, MachineState.RUNNING}
        kept = world.bootstraps / "crowd-1-0.json"
        await until(kept.exists, "its program does not start")
        assert bootstrap("crowd-1-0") == msgspec.json.decode(kept.read_bytes(), type=Bootstrap)
        same = await provider.get(handle)
        assert (handle, "crowd-1-0", MachineState.RUNNING) == (same.handle, same.lease, same.state)

        await provider.delete(handle)
        await gone(provider, handle)
        assert [] == (await provider.find()).machines
        await provider.delete(handle)

    async def test_deployments_leave_each_other_alone(self, world: World) -> None:
        """What another installation made on the same account is not found, and not removed."""
        theirs = await world.provider(OTHER)
        ours = await world.provider()
        handle = await theirs.create(order(world.offer, "crowd-2-0"), bootstrap("crowd-2-0", OTHER))

        async def is_listed() -> bool:
            return [handle] == [each.handle for each in (await theirs.find()).machines]

        await until(is_listed, "it is not found")
        assert [] == (await ours.find()).machines
        await ours.delete(handle)
        assert MachineState.GONE is not (await theirs.get(handle)).state
        await theirs.delete(handle)
        await gone(theirs, handle)

    async def test_an_offer_is_checked_without_making_anything(self, world: World) -> None:
        """
        A good offer has nothing against it, a bad one is told apart by the provider, an unknown option gets the nearest.
        """
        provider = await world.provider()
        assert [] == await provider.check(world.offer)
        (sentence,) = await provider.check(world.bad_offer)
        assert world.bad_offer.name in sentence
        (unknown,) = await provider.check(msgspec.structs.replace(world.offer, options={"nonsense": 1}))
        assert "unknown option nonsense" in unknown
        assert [] == (await provider.find()).machines

    async def test_a_refusal_makes_nothing(self, world: World) -> None:
        """A provider that refuses to make a machine says so, in words without the token."""
        provider = await world.provider()
        with pytest.raises(ProviderError) as refused:
            await provider.create(order(world.bad_offer, "crowd-3-0"), bootstrap("crowd-3-0"))
        assert refused.value.error in {ErrorClass.REQUEST, ErrorClass.IMAGE}
        assert str(refused.value)
        assert TOKEN not in str(refused.value)
        assert [] == (await provider.find()).machines

    async def test_one_that_does_not_answer_says_nothing_of_machines(self, world: World) -> None:
        """While a provider is away nothing is known of any machine, and what was not sent was not made."""
        provider = await world.provider()
        handle = await provider.create(order(world.offer, "crowd-4-0"), bootstrap("crowd-4-0"))
        hasty = await world.hasty_provider()
        async with world.away():
            for ask in (hasty.find(), hasty.get(handle), hasty.delete(handle)):
                with pytest.raises(UnavailableError):
                    await ask
            with pytest.raises(ProviderError) as refused:
                await hasty.create(order(world.offer, "crowd-4-1"), bootstrap("crowd-4-1"))
            assert ErrorClass.TRANSIENT is refused.value.error
        assert [handle] == [each.handle for each in (await provider.find()).machines]
        await provider.delete(handle)
        await gone(provider, handle)

    async def test_a_lost_answer_is_a_doubt_that_looking_ends(self, world: World) -> None:
        """
        When the answer to a create is lost, nobody claims to know; the machine is found by its lease, and is there once.
        """
        provider = await world.provider()
        hasty = await world.hasty_provider()
        async with world.silent():
            with pytest.raises(InDoubtError) as doubt:
                await hasty.create(order(world.offer, "crowd-5-0"), bootstrap("crowd-5-0"))
        assert TOKEN not in str(doubt.value)

        async def is_found() -> bool:
            return bool((await provider.find()).machines)

        await until(is_found, "it is not found")
        (machine,) = (await provider.find()).machines
        assert "crowd-5-0" == machine.lease
        await provider.delete(machine.handle)
        await gone(provider, machine.handle)
        assert [] == (await provider.find()).machines

    async def test_a_wrong_credential_is_never_an_empty_list(self, world: World) -> None:
        """Who is not known is told so, for every question."""
        if world.wrong is None:
            return
        provider = await world.wrong()
        world.opened.append(provider)
        with pytest.raises(ProviderError) as refused:
            await provider.find()
        assert ErrorClass.AUTH is refused.value.error
        with pytest.raises(ProviderError) as refused:
            await provider.create(order(world.offer, "crowd-6-0"), bootstrap("crowd-6-0"))
        assert ErrorClass.AUTH is refused.value.error
        right = await world.provider()
        assert [] == (await right.find()).machines

    async def test_a_machine_that_never_was_is_gone(self, world: World, nobody: str) -> None:
        """A handle of no machine is gone, and removing it is no error."""
        provider = await world.provider()
        assert MachineState.GONE is (await provider.get(nobody)).state
        await provider.delete(nobody)
