"""Processes of this host."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.conformance.providers.suite import ProviderSuite, World, stand_in

from kettle_services.provisioner.providers.process import AWAY, SILENT, ProcessSettings
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
