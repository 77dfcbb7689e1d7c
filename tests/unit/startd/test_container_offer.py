"""
A machine of a lease takes jobs before it knows how containers run on it, unless one of them could be harmed by that.
"""

from pathlib import Path

import pytest

from kettle.execution.containers.policy import ContainerPolicy, FoundRuntime
from kettle_services.startd.machine import container_offer
from kettle_services.startd.machine.container_offer import ContainerTrial, can_wait
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

from .hosts import claimed, machine

FOUND = ContainerPolicy(runtimes=[FoundRuntime("crun", "/usr/bin/crun")], images="/images", limit=0)


def settings(home: Path, **fields: object) -> StartdSettings:
    return StartdSettings(pool="p", home=str(home), job_account="own", **fields)  # type: ignore[arg-type]  # of any field


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories for which containers were tried."""
    seen: list[Path] = []

    async def find(_: StartdSettings, execute: Path) -> tuple[ContainerPolicy | None, Ad]:
        seen.append(execute)
        return FOUND, {"HasContainer": True}

    async def tidy(_: ContainerPolicy | None, execute: Path) -> None:
        del execute

    monkeypatch.setattr(container_offer, "find_containers", find)
    monkeypatch.setattr(container_offer, "tidy_containers", tidy)
    return seen


async def test_a_machine_of_a_lease_tries_its_containers_while_it_takes_jobs(
    tmp_path: Path, asked: list[Path]
) -> None:
    """Its slots say that it is trying, then what it has found, and who advertises them is told once."""
    host, told = machine(), list[Ad]()
    trial = ContainerTrial(host, settings(tmp_path, lease_ends=1e9), tmp_path)
    await trial.begin()
    assert ([], {"TryingContainers": True}, None) == (asked, host.tried, trial.offer.policy)
    await trial.run(lambda: told.append(host.tried))
    assert ([tmp_path], [{"HasContainer": True}], FOUND) == (asked, told, trial.offer.policy)


async def test_other_machines_know_it_before_they_are_seen(tmp_path: Path, asked: list[Path]) -> None:
    """Nobody is told of a change, for there is none."""
    host, told = machine(), list[Ad]()
    trial = ContainerTrial(host, settings(tmp_path), tmp_path)
    await trial.begin()
    assert ([tmp_path], {"HasContainer": True}) == (asked, host.tried)
    await trial.run(lambda: told.append(host.tried))
    assert ([tmp_path], []) == (asked, told)


async def test_a_startd_that_has_claims_of_an_earlier_one_tries_first(
    tmp_path: Path, asked: list[Path]
) -> None:
    """It could not clean up after containers that it does not know."""
    claimed(host := machine())
    await ContainerTrial(host, settings(tmp_path, lease_ends=1e9), tmp_path).begin()
    assert [tmp_path] == asked


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"lease_ends": 1e9, "container_always": True},
        {"lease_ends": 1e9, "attributes": {"HasDocker": True}},
        {"lease_ends": 1e9, "attributes": {"ContainerRuntimes": "crun"}},
        {"lease_ends": 1e9, "container_bind": ["/cvmfs"]},
    ],
    ids=["no lease", "always in containers", "promised", "runtimes promised", "binds"],
)
def test_what_is_promised_or_needed_is_tried_first(tmp_path: Path, fields: dict[str, object]) -> None:
    """Jobs would be matched that cannot run, or run as their owner does not want them to."""
    assert not can_wait(settings(tmp_path, **fields))
    assert can_wait(settings(tmp_path, lease_ends=1e9, attributes={"Site": "north"}))
