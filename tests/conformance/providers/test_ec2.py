"""EC2: moto, behind a proxy that adds what it lacks."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec
import pytest
from tests.conformance.providers.ec2_machines import ENDS, Ec2Machines
from tests.conformance.providers.fault_proxy import (
    Answer,
    Asked,
    FaultProxy,
    Forward,
    Matches,
    answered,
    fault_proxy,
    lost_answers,
    sent_twice,
)
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
)

from kettle.testing.servers.files import moto
from kettle_services.provisioner.port import InDoubtError, ProviderError, Room, UnavailableError
from kettle_services.provisioner.providers.ec2 import Ec2, Ec2Settings
from kettle_wire.leases import ErrorClass, MachineState
from kettle_wire.worker_pools import Market, Offer

_OFFER = Offer(
    name="small", provider="cloud", template="ami-12c6146b", flavour="t3.micro", cpus=2, memory=1000
)

_BAD_IMAGE = "ami-00000000"


def _error(status: int, code: str) -> Answer:
    body = f"<Response><Errors><Error><Code>{escape(code)}</Code><Message>said so</Message></Error></Errors></Response>"
    return Answer(status, {"Content-Type": "text/xml"}, body.encode())


def _action(name: str) -> Matches:
    return lambda asked: asked.action == name


async def _wrong_credential(asked: Asked, forward: Forward) -> Answer:
    """Moto believes everybody."""
    if "Credential=wrong/" in asked.headers.get("Authorization", ""):
        return _error(401, "AuthFailure")
    return await forward(asked)


async def _no_such_image(asked: Asked, forward: Forward) -> Answer:
    """Moto answers a dry run before it looks at anything."""
    if asked.field("ImageId") == _BAD_IMAGE:
        return _error(400, "InvalidAMIID.NotFound")
    return await forward(asked)


class ClientTokens:
    """Moto ignores ClientToken: who asks again with the same one gets the first answer again."""

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}

    async def fault(self, asked: Asked, forward: Forward) -> Answer:
        token = asked.field("ClientToken") if asked.action == "RunInstances" else ""
        if token in self._answers:
            return self._answers[token]
        answer = await forward(asked)
        if token and answer.status == 200:
            self._answers[token] = answer
        return answer


@pytest.fixture(scope="module")
def cloud() -> Generator[str]:
    with moto() as url:
        yield url


@pytest.fixture
async def proxy(cloud: str) -> AsyncGenerator[FaultProxy]:
    async with fault_proxy(cloud) as made:
        yield made


@pytest.fixture
def settings(proxy: FaultProxy, tmp_path: Path) -> Ec2Settings:
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = right\naws_secret_access_key = very-secret\n")
    return Ec2Settings(
        region="us-east-1",
        endpoint=proxy.url,
        credentials_file=str(credentials),
        program=str(stand_in(tmp_path)),
        power_off=ENDS,
    )


@pytest.fixture
def nobody() -> str:
    return "i-0123456789abcdef0"


@pytest.fixture
async def world(
    cloud: str, proxy: FaultProxy, settings: Ec2Settings, tmp_path: Path
) -> AsyncGenerator[World]:
    place = tmp_path / "instances"
    place.mkdir()
    machines = Ec2Machines(cloud, place)
    proxy.faults.extend((_wrong_credential, _no_such_image, machines.fault))

    async def opened(deployment: str) -> Ec2:
        return await settings.open(deployment)

    async def wrong() -> Ec2:
        path = tmp_path / "wrong"
        path.write_text("[default]\naws_access_key_id = wrong\naws_secret_access_key = very-secret\n")
        return await msgspec.structs.replace(settings, credentials_file=str(path)).open("here")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        with proxy.fault(lost_answers(_action("RunInstances"))):
            yield

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=msgspec.structs.replace(_OFFER, name="elsewhere", template=_BAD_IMAGE),
        bootstraps=tmp_path,
        away=proxy.closed,
        silent=silent,
        wrong=wrong,
    )
    yield made
    for each in made.opened:
        await each.close()
    machines.end()


class TestEc2(ProviderSuite):
    """The suite, and what is EC2's own."""

    @pytest.mark.parametrize(
        ("status", "code", "error"),
        [
            (500, "InsufficientInstanceCapacity", ErrorClass.CAPACITY),
            (400, "VcpuLimitExceeded", ErrorClass.QUOTA),
            (503, "RequestLimitExceeded", ErrorClass.RATE),
            (503, "Unavailable", ErrorClass.TRANSIENT),
            (400, "InvalidParameterValue", ErrorClass.REQUEST),
        ],
    )
    async def test_refusals_have_classes(
        self, world: World, proxy: FaultProxy, status: int, code: str, error: ErrorClass
    ) -> None:
        """Each code is told as what is to be done about it, and is asked once: no library repeats it."""
        provider = await world.provider()
        refused_once = answered(_action("RunInstances"), _error(status, code), times=1)
        with proxy.fault(refused_once), pytest.raises(ProviderError) as refused:
            await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        assert (error, f"{code}: said so") == (refused.value.error, str(refused.value))
        assert [] == (await provider.find()).machines

    async def test_an_error_of_the_server_is_a_doubt(self, world: World, proxy: FaultProxy) -> None:
        """
        Nobody knows at which moment a server failed, so a create that it answers so is in doubt, and not sent again.
        """
        provider = await world.provider()
        with (
            proxy.fault(answered(_action("RunInstances"), _error(500, "InternalError"))),
            pytest.raises(InDoubtError),
        ):
            await provider.create(order(_OFFER, "crowd-8-0"), bootstrap("crowd-8-0"))
        assert 0 == sum(asked.action == "RunInstances" for asked in proxy.asked)

    async def test_what_the_network_sends_twice_is_made_once(self, world: World, proxy: FaultProxy) -> None:
        """The token of an attempt makes two requests one machine."""
        provider = await world.provider()
        with proxy.fault(sent_twice(_action("RunInstances")), ClientTokens().fault):
            handle = await provider.create(order(_OFFER, "crowd-9-0"), bootstrap("crowd-9-0"))
        assert [handle] == [each.handle for each in (await provider.find()).machines]
        await gone(provider, handle)

    async def test_a_page_that_fails_makes_a_list_incomplete(self, world: World, proxy: FaultProxy) -> None:
        """Machines of pages that came are told, and that these are not all."""
        provider = await world.provider()
        handles = [
            await provider.create(order(_OFFER, f"crowd-10-{number}"), bootstrap(f"crowd-10-{number}"))
            for number in range(6)
        ]

        async def small_pages(asked: Asked, forward: Forward) -> Answer:
            return await forward(replace(asked, body=asked.body.replace(b"MaxResults=500", b"MaxResults=5")))

        with proxy.fault(small_pages):
            whole = await provider.find()
            with proxy.fault(answered(lambda asked: b"NextToken" in asked.body, _error(503, "Unavailable"))):
                part = await provider.find()
        assert (True, sorted(handles)) == (whole.complete, sorted(each.handle for each in whole.machines))
        assert (False, 5) == (part.complete, len(part.machines))
        for each in handles:
            await gone(provider, each)

    async def test_a_credential_that_was_replaced_counts_at_once(
        self, world: World, settings: Ec2Settings
    ) -> None:
        """The file of a credential may be replaced while the provisioner runs."""
        provider = await world.provider()
        right = Path(settings.credentials_file).read_text()
        Path(settings.credentials_file).write_text(right.replace("right", "wrong"))
        with pytest.raises(ProviderError):
            await provider.find()
        Path(settings.credentials_file).write_text(right)
        assert [] == (await provider.find()).machines

    async def test_a_busy_service_is_one_that_does_not_answer(self, world: World, proxy: FaultProxy) -> None:
        """A question that is refused for the moment says nothing of any machine."""
        provider = await world.provider()
        with proxy.fault(answered(_action("DescribeInstances"), _error(503, "Unavailable"))):
            with pytest.raises(UnavailableError):
                await provider.get("i-0123456789abcdef0")
            with pytest.raises(UnavailableError):
                await provider.find()

    async def test_spot_instances_are_told_where_their_notice_is(
        self, world: World, proxy: FaultProxy
    ) -> None:
        """
        A spot instance is asked for as one that ends for good, and looks for the notice of its end by itself.
        """
        provider = await world.provider()
        spot = msgspec.structs.replace(_OFFER, market=Market.SPOT)
        handle = await provider.create(order(spot, "crowd-11-0"), bootstrap("crowd-11-0"))
        (asked,) = (each for each in proxy.asked if each.action == "RunInstances")
        assert "one-time" == asked.field("InstanceMarketOptions.SpotOptions.SpotInstanceType")
        assert "terminate" == asked.field("InstanceInitiatedShutdownBehavior")
        assert "required" == asked.field("MetadataOptions.HttpTokens")
        assert MachineState.RUNNING is (await provider.get(handle)).state
        await gone(provider, handle)

    async def test_a_service_quota_says_how_much_room_there_is(
        self, world: World, proxy: FaultProxy, settings: Ec2Settings
    ) -> None:
        """
        What the account may have less what it has, whoever made it; where no quota is named, nothing is said. Moto knows no quota of EC2.
        """
        assert Room() == await (await world.provider()).room()
        provider = await msgspec.structs.replace(settings, quota="L-1216C47A").open("here")
        world.opened.append(provider)
        body = json.dumps({"Quota": {"QuotaCode": "L-1216C47A", "Value": 32.0}}).encode()
        quota = Answer(200, {"Content-Type": "application/x-amz-json-1.1"}, body)

        def asks(asked: Asked) -> bool:
            target = asked.headers.get("X-Amz-Target", "")
            return target.endswith(".GetServiceQuota") and b"L-1216C47A" in asked.body

        with proxy.fault(answered(asks, quota)):
            empty = (await provider.room()).cpus
            handle = await provider.create(order(_OFFER, "crowd-12-0"), bootstrap("crowd-12-0"))
            full = (await provider.room()).cpus
            await gone(provider, handle)
            assert (32, 32) == (empty, (await provider.room()).cpus)
        assert full is not None
        assert 0 < full < 32
        denied = json.dumps({"__type": "AccessDeniedException", "message": "not yours"}).encode()
        refusal = replace(quota, status=400, body=denied)
        with proxy.fault(answered(asks, refusal)), pytest.raises(ProviderError) as refused:
            await provider.room()
        assert "AccessDeniedException: not yours" == str(refused.value)
