"""The providers that are set up here."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from kettle_services.provisioner.pace import Pace
from kettle_services.provisioner.port import Provider, ProviderError
from kettle_services.provisioner.providers import catalogue
from kettle_services.provisioner.settings import ProvisionerSettings
from kettle_wire.leases import ErrorClass

DEFAULT: Final[Mapping[str, dict[str, Any]]] = {"process": {"kind": "process"}}
"""What is set up if nothing is."""

_log: Final = logging.getLogger(__name__)


class Hosted(msgspec.Struct, frozen=True):
    """One provider."""

    name: str
    kind: str
    pace: Pace
    provider: Provider | None
    """None: it cannot be used."""
    trouble: str = ""
    """Why."""

    def use(self) -> Provider:
        """The provider; raises ProviderError if it cannot be used."""
        if self.provider is None:
            raise ProviderError(ErrorClass.CONFIG, self.trouble)
        return self.provider


@asynccontextmanager
async def hosted(settings: ProvisionerSettings, deployment: str) -> AsyncGenerator[dict[str, Hosted]]:
    """
    All that are set up, by name; what is wrong with one is said when it is asked for something, and leaves the others alone.
    """
    known: dict[str, Hosted] = {}
    try:
        for name, table in (settings.providers or DEFAULT).items():
            known[name] = await _opened(name, table, settings, deployment)
        yield known
    finally:
        for each in known.values():
            if each.provider is not None:
                await each.provider.close()


async def _opened(
    name: str, table: Mapping[str, Any], settings: ProvisionerSettings, deployment: str
) -> Hosted:
    pace = Pace(at_once=settings.at_once, rate=settings.rate)
    kind = str(table.get("kind", ""))
    if kind == "process":  # it keeps its machines on this host
        table = {"directory": str(settings.home_path / "machines" / name), **table}
    try:
        provider = await catalogue.read(name, table).open(deployment)
    except (ValueError, ProviderError) as error:
        _log.error("a provider cannot be used", extra={"provider": name, "cause": str(error)})
        return Hosted(name, kind, pace, None, str(error))
    return Hosted(name, kind, pace, provider)
