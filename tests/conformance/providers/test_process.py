"""Processes of this host."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
    until,
)

from kettle.execution.system.cgroup_layout import groups_of, probe_cgroups, remove_layout
from kettle.execution.system.linux import start_time
from kettle.testing.patience import PATIENCE_S
from kettle_services.provisioner.port import ProviderError, TellsOfEnds
from kettle_services.provisioner.providers.process import AWAY, SILENT, ProcessSettings
from kettle_services.provisioner.providers.processes import kill_tree, marked
from kettle_wire.leases import ErrorClass, MachineState
from kettle_wire.worker_pools import Offer

_OFFER = Offer(name="here", provider="process", cpus=2, memory=1000)


@pytest.fixture
def nobody() -> str:
    return "crowd-9-9.1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    place, machines = tmp_path / "told", tmp_path / "machines"
    place.mkdir()
    settings = ProcessSettings(directory=str(machines), program=str(stand_in(place)), grace=1.0)
    return World(
        open=settings.open,
        offer=_OFFER,
        bad_offer=Offer(name="elsewhere", provider="process", template="nowhere", cpus=1, memory=100),
        bootstraps=place,
        away=partial(_there_is, machines / AWAY),
        silent=partial(_there_is, machines / SILENT),
    )


@asynccontextmanager
async def _there_is(path: Path) -> AsyncGenerator[None]:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    try:
        yield
    finally:
        path.unlink()


class TestProcess(ProviderSuite):
    """The claims of every provider."""

    async def test_a_machine_has_what_it_offers_and_no_more(self, world: World) -> None:
        """
        Where control groups can be made a machine is one: it is bounded, and what hides from the process tree ends with it.
        """
        layout = probe_cgroups("kettle-test-of-machines")
        if layout is None:
            pytest.skip("this machine lets nobody make control groups")
        remove_layout(layout)
        provider = await world.provider()
        hidden = world.bootstraps / "hidden"
        program = world.bootstraps / "kettle"
        begins = "#!/bin/sh\n"
        hides = f"(env -i setsid sh -c 'echo $$ >{hidden}; exec sleep 600' &)\n"
        program.write_text(program.read_text().replace(begins, begins + hides, 1))
        handle = await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        await until((world.bootstraps / "crowd-7-0.json").exists, "it does not start")
        await until(lambda: hidden.exists() and hidden.read_text().endswith("\n"), "nothing hides")
        pid = int(hidden.read_text())
        groups = [Path(group) for group in groups_of(pid) if group.name == handle]
        assert groups
        bounds = {
            name: (group / name).read_text().split()[0]
            for group in groups
            for name in ("memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max")
            if (group / name).exists()
        }
        assert {str(1512 << 20)} == {bounds[name] for name in bounds if name.startswith("memory")}
        assert {"200000"} >= {bounds[name] for name in bounds if name.startswith("cpu")}
        await gone(provider, handle)
        assert start_time(pid) is None
        assert not any(map(Path.exists, groups))

    async def test_a_machine_that_was_killed_is_gone_for_certain(self, world: World) -> None:
        """
        Its directory and the process table say together that nothing is left, and nobody has to ask twice.
        """
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-8-0"), bootstrap("crowd-8-0"))
        await until((world.bootstraps / "crowd-8-0.json").exists, "it does not start")
        assert not (await provider.get(handle)).proven
        (mark,) = marked(f"{world.bootstraps.parent}/machines/")
        kill_tree(mark, None)

        async def is_gone() -> bool:
            return (await provider.get(handle)).state is MachineState.GONE

        await until(is_gone, "it lives")
        assert (await provider.get(handle)).proven
        assert [] == (await provider.find()).machines
        assert not (await provider.get("crowd-9-9.1")).proven

    async def test_an_end_is_noticed(self, world: World) -> None:
        """By the provider that has made the machine, and by one that has found it."""
        maker, finder = await world.provider(), await world.provider()
        assert isinstance(maker, TellsOfEnds)
        assert isinstance(finder, TellsOfEnds)
        told = [asyncio.Queue[str](), asyncio.Queue[str]()]
        await maker.tell_of_ends(told[0].put_nowait)
        handle = await maker.create(order(_OFFER, "crowd-9-0"), bootstrap("crowd-9-0"))
        await finder.tell_of_ends(told[1].put_nowait)
        await until((world.bootstraps / "crowd-9-0.json").exists, "it does not start")
        assert all(queue.empty() for queue in told)
        (mark,) = marked(f"{world.bootstraps.parent}/machines/")
        kill_tree(mark, None)
        async with asyncio.timeout(PATIENCE_S):
            assert [handle, handle] == [await queue.get() for queue in told]
        assert (await maker.get(handle)).proven

    async def test_a_file_that_cannot_be_read_closes_the_provider(self, world: World) -> None:
        """
        Which machines there are is not known then: it says which file that is, ends nobody, and works again when the file is back.
        """
        provider = await world.provider()
        assert isinstance(provider, TellsOfEnds)
        handle = await provider.create(order(_OFFER, "crowd-7-1"), bootstrap("crowd-7-1"))
        (file,) = (world.bootstraps.parent / "machines").glob(f"*/{handle}/machine.json")
        kept = file.read_bytes()
        file.write_bytes(kept[:10])
        await provider.tell_of_ends(lambda ended: None)
        for asked in (provider.find(), provider.get(handle), provider.delete(handle), provider.room()):
            with pytest.raises(ProviderError, match=re.escape(str(file))) as refused:
                await asked
            assert ErrorClass.CONFIG is refused.value.error
        file.write_bytes(kept)
        assert [handle] == [each.handle for each in (await provider.find()).machines]
        await gone(provider, handle)
