"""Devices that claims have while what the machine knows of them changes over restarts."""

from pathlib import Path

from kettle.execution.attempts.job_spec import Isolation, JobSpec
from kettle_services.startd.domain.claims.requests import request_claims
from kettle_services.startd.domain.slots.layout import lay_out
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import device
from kettle_services.startd.domain.state.changes import Claimed
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters.orders import StarterOrders
from kettle_services.startd.state.journal import Journal
from kettle_services.startd.state.recorder import Recorder
from kettle_wire.commands.startd import ClaimKey

from .hosts import NOW, activation, request


def started(
    path: Path, *ids: str, gpus: str = "GPUs", licences: str = "Licences"
) -> tuple[Machine, Recorder]:
    """A machine with these devices and two licences that has read what its predecessor wrote."""
    total = Resources(cpus=4, memory=4096, disk=100_000, custom={gpus: len(ids), licences: 2} if ids else {})
    slots = lay_out([], total, {gpus: ids} if ids else {})
    devices = {gpus: {each: device(each, {}) for each in ids}} if ids else {}
    facts = Facts(name="host", total=total, detected=total, slots=slots, devices=devices)
    machine = Machine(facts, capability="right")
    recorder = Recorder(machine, Journal(path / "journal", "boot"), places=[path])
    recorder.open()
    return machine, recorder


def claim(machine: Machine, recorder: Recorder, name: str, **wants: int) -> str:
    asked = request(ClaimKey(name, "s"), ad=dict(wants))
    reply, changes = request_claims(machine, asked, NOW)
    recorder.record(changes)
    return reply.reason


def spec(machine: Machine, name: str, path: Path) -> JobSpec:
    specs = StarterOrders(
        machine, StartdSettings(job_account="own"), path, None, ContainerOffer(), [], Isolation()
    )
    what = activation(key=ClaimKey(name, "s"))
    return specs.of(machine.claims[name], what, None, [], NOW)


def test_what_is_spelt_in_another_way_is_not_given_twice(tmp_path: Path) -> None:
    """A claim that recorded gpus and licences has GPUs and Licences, devices and numbers."""
    before, recorder = started(tmp_path, "GPU-a", "GPU-b", gpus="gpus", licences="licences")
    assert not claim(before, recorder, "c1", RequestGPUs=1, RequestLicences=1)
    recorder.close()
    after, recorder = started(tmp_path, "GPU-a", "GPU-b")

    assert "not enough left" in claim(after, recorder, "c2", RequestGPUs=2)
    assert "not enough left" in claim(after, recorder, "c3", RequestLicences=2)
    assert not claim(after, recorder, "c4", RequestGPUs=1, RequestLicences=1)
    assert [["GPU-a"], ["GPU-b"]] == [each.devices["GPUs"] for each in after.claims.values()]
    assert ["GPU-a"] == spec(after, "c1", tmp_path).devices["GPUs"]
    assert isinstance(after.snapshot()[0], Claimed)
    recorder.close()


def test_devices_in_use_that_are_not_found_again_are_hidden_from_others(tmp_path: Path) -> None:
    """A job without a GPU does not see that of another job, also where the machine knows of none any more."""
    before, recorder = started(tmp_path, "GPU-a")
    assert not claim(before, recorder, "c1", RequestGPUs=1)
    recorder.close()
    after, recorder = started(tmp_path)
    assert not claim(after, recorder, "c2")

    assert {"GPUs": []} == spec(after, "c2", tmp_path).devices
    assert {"GPUs": ["GPU-a"]} == spec(after, "c1", tmp_path).devices
    recorder.close()
