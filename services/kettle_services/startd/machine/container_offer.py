"""How containers run on this machine, which may be found out while it takes jobs already."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.policy import ContainerPolicy
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.machine.container_runtimes import find_containers, tidy_containers
from kettle_services.startd.settings import StartdSettings

TRYING: Final = "TryingContainers"
"""Attribute of slots whose machine has not found out yet."""
_CONTAINERS: Final = ("has", "containerruntimes")
"""What attributes begin with that may say what containers a machine runs, in lower case."""


class ContainerOffer(msgspec.Struct):
    """What is known of it: jobs that ask for a container are matched when it is advertised."""

    policy: ContainerPolicy | None = None
    """None: no containers run here, or it is not known yet."""


class ContainerTrial:
    """Finds it out."""

    def __init__(self, machine: Machine, settings: StartdSettings, execute: Path) -> None:
        self.offer: Final = ContainerOffer()
        self._machine = machine
        self._settings = settings
        self._execute = execute
        self._known = False

    async def begin(self) -> None:
        """
        Find out, unless the machine may take jobs before that and has none of an earlier startd, whose containers it would not know.

        Raises:
            SettingsError: a bind mount makes no sense here, or jobs are to run in containers only and none work.
        """
        self._machine.tried = {TRYING: True}
        if self._machine.claims or not can_wait(self._settings):
            await self._find()

    async def _find(self) -> None:
        self.offer.policy, self._machine.tried = await find_containers(self._settings, self._execute)
        self._known = True

    async def run(self, changed: Callable[[], None]) -> None:
        """
        Find out if that is still to be done, and say so by `changed`; then remove what is left of containers, again and again.
        """
        if not self._known:
            await self._find()
            changed()
        await tidy_containers(self.offer.policy, self._execute)


def can_wait(settings: StartdSettings) -> bool:
    """
    Whether a machine may take jobs before it has tried its containers: that of a lease, which was made because jobs wait, if none of
    them is put into a container that it did not ask for, nothing is promised of containers, and nothing can be wrong with what is set.
    """
    wrapped = settings.container_always or str(settings.singularity_image_expr) != "undefined"
    promised = any(name.lower().startswith(_CONTAINERS) for name in settings.attributes)
    return bool(settings.lease_ends) and not (wrapped or promised or settings.container_bind)
