"""A real Infrastructure Manager, whose Dummy cloud has machines that do not run: processes run in their place."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sysconfig
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from tests.conformance.providers.fault_proxy import (
    Answer,
    Asked,
    FaultProxy,
    Forward,
    fault_proxy,
    lost_answers,
)
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
)
from tests.scenario.client_environments import python_with

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.files import serving
from kettle.testing.servers.held_port import held_port
from kettle_services.provisioner.port import ProviderError
from kettle_services.provisioner.providers.im import Im, ImSettings
from kettle_wire.leases import ErrorClass
from kettle_wire.worker_pools import Offer

_OFFER = Offer(name="vm", provider="im", template="dummy://cloud/image", flavour="small", cpus=1, memory=512)


def _creates(asked: Asked) -> bool:
    return asked.method == "POST" and "async" in asked.path


class Machines:
    """Runs what each infrastructure was told."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    async def fault(self, asked: Asked, forward: Forward) -> Answer:
        """As a fault of the proxy."""
        answer = await forward(asked)
        if _creates(asked) and answer.status == 200:
            self._start(json.loads(answer.body)["uri"].rpartition("/")[2], asked.body.decode())
        if asked.method == "DELETE" and answer.status == 200:
            self._end(asked.path.rpartition("/")[2].partition("?")[0])
        return answer

    def _start(self, number: str, radl: str) -> None:
        (file,) = json.loads(radl.partition("@begin")[2].partition("@end")[0])["write_files"]
        script = base64.b64decode(file["content"])
        assert b"shutdown -" not in script, "it would switch this machine off"
        path = self._place / number
        path.write_bytes(script)
        quiet = subprocess.DEVNULL
        self._processes[number] = subprocess.Popen(
            ["sh", path], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def _end(self, number: str) -> None:
        process = self._processes[number]
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def end(self) -> None:
        """End every process."""
        for number, process in self._processes.items():
            self._end(number)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def service_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("im")


@pytest.fixture(scope="module")
def manager(service_place: Path) -> Generator[str]:
    python = asyncio.run(python_with(["IM"], "IM", service_place))
    port = held_port()
    (service_place / "im.cfg").write_text(
        f"[im]\nREST_ADDRESS=127.0.0.1\nREST_PORT={port}\nDATA_DB=sqlite:///{service_place}/im.db\n"
        f"LOG_FILE={service_place}/im.log\nVM_INFO_UPDATE_FREQUENCY=1\n"
    )
    library = Path(sysconfig.get_path("purelib", vars={"base": str(Path(python).parents[1])}))
    (library / "im.cfg").symlink_to(service_place / "im.cfg")
    with serving([python, str(Path(python).with_name("im_service"))], port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def proxy(manager: str) -> AsyncGenerator[FaultProxy]:
    async with fault_proxy(manager) as made:
        yield made


@pytest.fixture
def nobody() -> str:
    return "0f0f0f0f-0000-0000-0000-000000000000"


@pytest.fixture
async def world(proxy: FaultProxy, tmp_path: Path) -> AsyncGenerator[World]:
    place = tmp_path / "machines"
    place.mkdir()
    machines = Machines(place)
    proxy.faults.append(machines.fault)
    for name, text in (
        ("password", "a-password"),
        ("wrong", "another"),
        ("clouds", "id = dummy; type = Dummy; host = d.local"),
    ):
        (tmp_path / name).write_text(text)
    settings = ImSettings(
        url=proxy.url,
        user="kettle",
        password_file=str(tmp_path / "password"),
        clouds_file=str(tmp_path / "clouds"),
        witness_file=str(tmp_path / "witness"),
        program=str(stand_in(tmp_path)),
        power_off="true",
    )

    async def opened(deployment: str) -> Im:
        return await settings.open(deployment)

    async def wrong() -> Im:
        right = await settings.open("here")
        await right.find()
        await right.close()
        return await msgspec.structs.replace(settings, password_file=str(tmp_path / "wrong")).open("here")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        with proxy.fault(lost_answers(_creates)):
            yield

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=msgspec.structs.replace(_OFFER, name="elsewhere", flavour="it's"),
        bootstraps=tmp_path,
        away=proxy.closed,
        silent=silent,
        wrong=wrong,
    )
    yield made
    for each in made.opened:
        await each.close()
    machines.end()


class TestIm(ProviderSuite):
    """The suite, and what is the Infrastructure Manager's own."""

    async def test_a_machine_is_not_gone_because_a_password_is_wrong(self, world: World) -> None:
        """Who asks with another password is not told that a machine is not there."""
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        assert world.wrong is not None
        stranger = await world.wrong()
        world.opened.append(stranger)
        for ask in (stranger.get(handle), stranger.delete(handle), stranger.get("nobody")):
            with pytest.raises(ProviderError) as refused:
                await ask
            assert ErrorClass.AUTH is refused.value.error
        await gone(provider, handle)
