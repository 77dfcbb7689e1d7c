"""Pilot jobs of a real Slurm."""

from collections.abc import AsyncGenerator

import pytest
from tests.conformance.providers.suite import (
    DEPLOYMENT,
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
    until,
)

from kettle.testing.servers.slurm import PARTITION, SlurmCluster
from kettle_services.provisioner.providers.slurm import Slurm, SlurmSettings
from kettle_wire.leases import ErrorClass, MachineState, Order
from kettle_wire.worker_pools import Offer

_OFFER = Offer(name="pilot", provider="cluster", template=PARTITION, cpus=2, memory=1000)


@pytest.fixture
def nobody() -> str:
    return "999999"


@pytest.fixture
async def world(cluster: SlurmCluster) -> AsyncGenerator[World]:
    place = cluster.place / "machines"
    place.mkdir(exist_ok=True)
    program = stand_in(place)
    logs = str(cluster.place)

    async def opened(deployment: str) -> Slurm:
        settings = SlurmSettings(configuration=str(cluster.configuration), program=str(program), logs=logs)
        return await settings.open(deployment)

    async def hasty() -> Slurm:
        settings = SlurmSettings(configuration=str(cluster.hasty_configuration), program=str(program))
        return await settings.open(DEPLOYMENT)

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=Offer(name="elsewhere", provider="cluster", template="nowhere", cpus=1, memory=100),
        bootstraps=place,
        away=cluster.away,
        silent=cluster.silent,
        hasty=hasty,
    )
    yield made
    for each in made.opened:
        await each.close()


class TestSlurm(ProviderSuite):
    """The suite, and what is Slurm's own."""

    async def test_a_pilot_is_told_before_it_is_ended(self, world: World, cluster: SlurmCluster) -> None:
        """SIGTERM reaches the worker's program itself, so that it drains; what it wrote is its console."""
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        await until((world.bootstraps / "crowd-7-0.json").exists, "it does not start")
        cluster.run("scancel", "--signal=TERM", "--full", handle)
        await until((world.bootstraps / "crowd-7-0.term").exists, "it is not told")
        await gone(provider, handle)
        assert (await provider.console(handle)).startswith("the worker of crowd-7-0 begins\n")

    async def test_the_time_limit_is_the_life_of_the_lease(self, world: World, cluster: SlurmCluster) -> None:
        """The cluster ends a pilot when its lease is over, whatever else happens; nobody runs it again."""
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-8-0"), bootstrap("crowd-8-0"))
        said = cluster.run("scontrol", "--oneliner", "show", "job", handle)
        assert "TimeLimit=00:10:00" in said
        assert "Requeue=0" in said
        assert f"Comment=kettle:{DEPLOYMENT}:crowd-8-0" in said
        await provider.delete(handle)
        await gone(provider, handle)

    async def test_why_a_pilot_waits_is_said(self, world: World) -> None:
        """A pilot that waits for a node says so, and one that can never run is broken."""
        provider = await world.provider()
        large = Offer(name="large", provider="cluster", template=PARTITION, cpus=8, memory=1000)
        first = await provider.create(order(large, "crowd-9-0"), bootstrap("crowd-9-0"))
        second = await provider.create(order(large, "crowd-9-1"), bootstrap("crowd-9-1"))
        long = await provider.create(
            Order(lease="crowd-9-2", attempt=1, offer=_OFFER, life=7200.0), bootstrap("crowd-9-2")
        )

        async def is_said() -> bool:
            waits, never = await provider.get(second), await provider.get(long)
            return (MachineState.PENDING, ErrorClass.CAPACITY) == (waits.state, waits.error) and (
                MachineState.BROKEN,
                ErrorClass.REQUEST,
            ) == (never.state, never.error)

        await until(is_said, "no reason is said")
        assert "PartitionTimeLimit" in (await provider.get(long)).words
        for each in (second, long, first):
            await provider.delete(each)
            await gone(provider, each)
