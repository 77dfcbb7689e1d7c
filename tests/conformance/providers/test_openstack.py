"""Servers of an OpenStack."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.conformance.providers.fault_proxy import Asked, FaultProxy, fault_proxy, lost_answers
from tests.conformance.providers.openstack_cloud import IMAGE, PASSWORD, Cloud, openstack_cloud
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
)

from kettle_services.provisioner.port import ProviderError, Room
from kettle_services.provisioner.providers.openstack import OpenStack, OpenStackSettings
from kettle_wire.leases import ErrorClass, MachineState
from kettle_wire.worker_pools import Offer

_OFFER = Offer(name="server", provider="cloud", template=IMAGE, flavour="m1.small", cpus=2, memory=4000)


def _creates(asked: Asked) -> bool:
    return (asked.method, asked.path) == ("POST", "/v2.1/servers")


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncGenerator[Cloud]:
    place = tmp_path / "servers"
    place.mkdir()
    async with openstack_cloud(place) as made:
        yield made


@pytest.fixture
async def proxy(cloud: Cloud) -> AsyncGenerator[FaultProxy]:
    async with fault_proxy(cloud.url) as made:
        cloud.seen_at = made.url
        yield made


@pytest.fixture
def nobody() -> str:
    return "8f3f0a3e-0000-0000-0000-00000000ffff"


@pytest.fixture
async def world(cloud: Cloud, proxy: FaultProxy, tmp_path: Path) -> AsyncGenerator[World]:
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    settings = OpenStackSettings(
        auth_url=f"{proxy.url}/v3",
        user="kettle",
        project="pool",
        password_file=str(password),
        program=str(stand_in(tmp_path)),
        power_off="true",
    )

    async def opened(deployment: str) -> OpenStack:
        return await settings.open(deployment)

    async def wrong() -> OpenStack:
        path = tmp_path / "wrong"
        path.write_text("another")
        return await msgspec.structs.replace(settings, password_file=str(path)).open("here")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        with proxy.fault(lost_answers(_creates)):
            yield

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=msgspec.structs.replace(_OFFER, name="elsewhere", template="no-such-image"),
        bootstraps=tmp_path,
        away=proxy.closed,
        silent=silent,
        wrong=wrong,
    )
    yield made
    for each in made.opened:
        await each.close()


class TestOpenStack(ProviderSuite):
    """The suite, and what is OpenStack's own."""

    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            ("No valid host was found. There are not enough hosts available.", ErrorClass.CAPACITY),
            ("Quota exceeded for resources: cores", ErrorClass.QUOTA),
            ("Image 8f3f could not be found.", ErrorClass.IMAGE),
            ("Build of instance aborted", ErrorClass.TRANSIENT),
        ],
    )
    async def test_a_server_that_was_accepted_may_never_come(
        self, world: World, cloud: Cloud, fault: str, error: ErrorClass
    ) -> None:
        """It is there, uses the quota, and says why it will never work; so it has to be deleted."""
        provider = await world.provider()
        cloud.fault = fault
        handle = await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        (found,) = (await provider.find()).machines
        assert (handle, MachineState.BROKEN, error, f"ERROR: {fault}") == (
            found.handle,
            found.state,
            found.error,
            found.words,
        )
        assert Room(machines=9, cpus=18) == await provider.room()
        await gone(provider, handle)
        assert Room(machines=10, cpus=20) == await provider.room()

    async def test_a_quota_is_told_from_a_wrong_credential(self, world: World, cloud: Cloud) -> None:
        """Both are answered with 403."""
        provider = await world.provider()
        cloud.quota = 0
        with pytest.raises(ProviderError) as refused:
            await provider.create(order(_OFFER, "crowd-8-0"), bootstrap("crowd-8-0"))
        assert ErrorClass.QUOTA is refused.value.error

    async def test_a_token_that_is_over_is_replaced(
        self, world: World, cloud: Cloud, proxy: FaultProxy
    ) -> None:
        """
        Tokens of Keystone last for hours: a refusal for that reason makes nothing, and is not told to anybody.
        """
        provider = await world.provider()
        await provider.find()
        cloud.tokens.clear()
        handle = await provider.create(order(_OFFER, "crowd-9-0"), bootstrap("crowd-9-0"))
        assert [handle] == [each.handle for each in (await provider.find()).machines]
        assert f"console of {handle}" == await provider.console(handle)
        await gone(provider, handle)

    async def test_an_offer_says_what_its_flavour_has(self, world: World) -> None:
        """A flavour that is smaller than the offer, or that is not there, is told before anything is made."""
        provider = await world.provider()
        (sentence,) = await provider.check(msgspec.structs.replace(_OFFER, cpus=4))
        assert "offer server: flavour m1.small has 2 cores, and the offer says 4" == sentence
        (sentence,) = await provider.check(msgspec.structs.replace(_OFFER, flavour="m1.smalls"))
        assert "offer server: there is no flavour m1.smalls; did you mean m1.small?" == sentence
