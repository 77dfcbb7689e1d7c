"""Machines that are there: commands of a site, and magic packets, put them to sleep and wake them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from kettle_services.provisioner.domain.magic_packet import magic_packet
from kettle_services.provisioner.port import InDoubtError, ProviderError, SwitchesMachines
from kettle_services.provisioner.providers import catalogue
from kettle_services.provisioner.providers.power import Power
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Order
from kettle_wire.worker_pools import Hibernation, Offer, StaticMachine

DESK: Final = StaticMachine(name="desk1.example.org", mac="52:54:00:12:34:56", address="10.9.8.7")
OFFER: Final = Offer(name="desk", provider="power", cpus=4, memory=8192, machines=[DESK])
IN_A_NAMESPACE: Final = """
import asyncio, socket, sys
from kettle_services.provisioner.providers.power import PowerSettings
from kettle_wire.worker_pools import Hibernation, StaticMachine

async def main():
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.bind(("0.0.0.0", 9))
    heard.settimeout(60)
    power = await PowerSettings(broadcast="10.9.8.255").open("here")
    before = b""
    for mac, address in (("52:54:00:12:34:56", ""), ("52:54:00:12:34:57", "10.9.8.1")):
        await power.switch(StaticMachine(name="desk", mac=mac, address=address), "wake", Hibernation.S5)
        while (packet := heard.recv(2048)) == before:
            pass  # the network may have brought it twice
        print(packet.hex())
        before = packet

asyncio.run(main())
"""


async def power(**table: Any) -> Power:
    made = await catalogue.read("power", {"kind": "power", **table}).open("here")
    assert isinstance(made, Power)
    assert isinstance(made, SwitchesMachines)
    return made


async def test_commands_of_the_site_are_told_which_machine(tmp_path: Path) -> None:
    """Its name, address, hardware address and level stand in the words, and no shell reads them."""
    told = tmp_path / "told"
    note = [
        sys.executable,
        "-c",
        "import json, sys; json.dump(sys.argv[2:], open(sys.argv[1], 'w'))",
        str(told),
    ]
    one = await power(
        hibernate=[*note, "off", "{name}", "{level}"], wake=[*note, "on", "{address}", "{mac}; true {{}}"]
    )
    await one.switch(DESK, "sleep", Hibernation.S4)
    assert ["off", DESK.name, "S4"] == json.loads(told.read_text())
    await one.switch(DESK, "wake", Hibernation.S4)
    assert ["on", DESK.address, f"{DESK.mac}; true {{}}"] == json.loads(told.read_text())


async def test_what_a_command_complains_of_is_told() -> None:
    """It refuses, and nothing was done."""
    one = await power(hibernate=["sh", "-c", "echo 'no route\033 to {name}' >&2; exit 3"])
    with pytest.raises(ProviderError, match=f"sh ended with 3: no route to {DESK.name}"):
        await one.switch(DESK, "sleep", Hibernation.S3)
    with pytest.raises(ProviderError, match="is not installed here"):
        await (await power(wake=["no-such-program"])).switch(DESK, "wake", Hibernation.S3)


async def test_nobody_knows_what_a_command_does_that_does_not_end() -> None:
    """The machine is looked at."""
    one = await power(wake=["sleep", "600"], patience=0.2)
    with pytest.raises(InDoubtError):
        await one.switch(DESK, "wake", Hibernation.S3)


async def test_offers_whose_machines_could_not_be_switched_are_told() -> None:
    """Before anything depends on it."""
    one = await power()
    bare = OFFER.machines[0].__class__(name="desk2")
    offer = Offer(name="desk", provider="power", cpus=1, memory=512, machines=[DESK, bare])
    first, second = await one.check(offer)
    assert "has no command `hibernate`" in first
    assert "desk2 cannot be woken" in second
    assert [] == await (await power(hibernate=["true"], wake=["true"])).check(offer)
    with pytest.raises(ProviderError, match="no command `hibernate`"):
        await one.switch(DESK, "sleep", Hibernation.S3)
    with pytest.raises(ProviderError, match="desk2 has no mac"):
        await one.switch(bare, "wake", Hibernation.S3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ipmi", "{nmae}"], "names {nmae}.*did you mean name"),
        (["awk", "{print}"], "names {print}"),
        (["sh", "a { b"], "cannot be filled in"),
    ],
    ids=["misspelt", "braces of a program", "half a brace"],
)
async def test_a_command_that_cannot_be_filled_in_is_refused(words: list[str], sentence: str) -> None:
    """When the provider is opened."""
    with pytest.raises(ProviderError, match=sentence) as refused:
        await power(wake=words)
    assert ErrorClass.CONFIG is refused.value.error


async def test_it_makes_no_machines() -> None:
    """And has none that it could remove."""
    one = await power()
    order = Order(lease="lab-1-1", attempt=1, offer=OFFER, life=60.0)
    with pytest.raises(ProviderError, match="makes none") as refused:
        await one.create(order, Bootstrap(url="", token="", lease="lab-1-1", deployment="here", life=60.0))
    assert ErrorClass.REQUEST is refused.value.error
    found = await one.find()
    assert ([], True) == (found.machines, found.complete)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network namespaces")
def test_a_magic_packet_is_heard_on_its_network() -> None:
    """Sent to all, and to one address: six times ff, and the hardware address sixteen times."""
    unshare = shutil.which("unshare")
    assert unshare, "unshare is not installed (Debian: util-linux)"
    script = 'ip link set lo up && ip link add k0 type veth peer name k1 && ip addr add 10.9.8.1/24 brd + dev k0 && ip link set k0 up && ip link set k1 up && exec "$@"'
    done = subprocess.run(
        [unshare, "--net", "sh", "-c", script, "sh", sys.executable, "-c", IN_A_NAMESPACE],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    packets = ["ff" * 6 + f"5254001234{last}" * 16 for last in ("56", "57")]
    assert packets[0] == magic_packet(DESK.mac).hex()
    assert (packets, "") == (done.stdout.split(), done.stderr)
