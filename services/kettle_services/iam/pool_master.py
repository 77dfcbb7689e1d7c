"""What iam asks of the master that runs the pool's NATS server."""

import logging
import socket
from typing import Final

from kettle.bus.ports import Bus
from kettle_services.iam.settings import IamSettings
from kettle_wire.commands.master import (
    ADMIT_ACCESS_POINT,
    FORGET_ACCESS_POINT,
    REVOKE_MEMBERS,
    AdmitAccessPoint,
    ForgetAccessPoint,
    RevokeMembers,
)
from kettle_wire.events.iam import Joins

_log: Final = logging.getLogger(__name__)


def master_name(settings: IamSettings) -> str:
    """The name of that master."""
    return settings.bus_master or socket.gethostname()


class BusMaster:
    """See `PoolMaster`."""

    def __init__(self, bus: Bus, settings: IamSettings) -> None:
        self._bus = bus
        self._settings = settings
        self._name: Final = master_name(settings)

    async def cut_off(self, joins: Joins, key: str) -> None:
        """See `PoolMaster`."""
        if self._settings.workers_signing_key:
            _log.warning(
                "the operator of the bus has to revoke a key: its server is not ours", extra={"key": key}
            )
            return
        await self._bus.call(REVOKE_MEMBERS, self._name, RevokeMembers(kind=joins, keys=[key]))

    async def admit(self, access_point: str, people: str) -> str:
        """See `PoolMaster`."""
        request = AdmitAccessPoint(name=access_point, people=people)
        return (await self._bus.call(ADMIT_ACCESS_POINT, self._name, request)).people_account

    async def forget(self, access_point: str) -> None:
        """See `PoolMaster`."""
        await self._bus.call(FORGET_ACCESS_POINT, self._name, ForgetAccessPoint(name=access_point))
