"""
Machines of a site that are there: none is made or removed, and they are put to sleep and woken by commands of the site, or by magic
packets.
"""

import socket
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from kettle.commands.local import LocalCommands
from kettle.commands.port import EndNotSeenError, NotStartedError
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.provisioner.domain.magic_packet import PORT, magic_packet
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import Found, InDoubtError, ProviderError, Room
from kettle_services.provisioner.providers.settings import NoOptions, ProviderSettings, options_of
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Hibernation, Offer, StaticMachine

_PLACES: Final = ("name", "address", "mac", "level")
_ENDS: Final = 300
"""So much of what a command wrote is told."""


class PowerSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    How machines are put to sleep and woken.  In the words of commands `{name}`, `{address}`, `{mac}` and `{level}` stand for what the pool
    file says of the machine; no shell reads them.
    """

    hibernate: Annotated[list[str], msgspec.Meta(max_length=64)] = []
    """The command that puts a machine to sleep, as its words."""
    wake: Annotated[list[str], msgspec.Meta(max_length=64)] = []
    """The command that wakes one; none: a magic packet does (Wake-on-LAN)."""
    broadcast: str = "255.255.255.255"
    """Where magic packets go for machines without an address of their own."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = PORT
    """The UDP port of magic packets."""

    async def open(self, deployment: str) -> "Power":
        """The provider."""
        del deployment  # it marks nothing: the machines are the site's
        for key, words in (("hibernate", self.hibernate), ("wake", self.wake)):
            if wrong := _misspelt(words):
                raise ProviderError(ErrorClass.CONFIG, f"{key}: {wrong}")
        return Power(self)


def _misspelt(words: Sequence[str]) -> str:
    """What is wrong with the places of a command; empty: nothing."""
    for word in words:
        try:
            word.format(**dict.fromkeys(_PLACES, ""))
        except KeyError as error:
            name = str(error.args[0])
            return (
                f"{word!r} names {{{name}}}, and there are {', '.join(_PLACES)}{did_you_mean(name, _PLACES)}"
            )
        except (ValueError, IndexError, AttributeError) as error:
            return f"{word!r} cannot be filled in: {error}; a brace that is meant is written twice"
    return ""


class Power:
    """Puts machines to sleep and wakes them."""

    visibility = 0.0

    def __init__(self, settings: PowerSettings) -> None:
        self._settings: Final = settings
        self._commands: Final = LocalCommands({})

    async def check(self, offer: Offer) -> list[str]:
        """What keeps machines of an offer from being put to sleep or woken."""
        try:
            options_of(offer, NoOptions)
        except ProviderError as error:
            return [str(error)]
        found: list[str] = []
        if not self._settings.hibernate:
            found.append(
                f"offer {offer.name}: its provider has no command `hibernate`, so nothing can put its machines to sleep"
            )
        deaf = [each.name for each in offer.machines if not each.mac]
        if deaf and not self._settings.wake:
            found.append(
                f"offer {offer.name}: {', '.join(deaf[:4])}{' and others' * (len(deaf) > 4)} cannot be woken:"
                " give each its mac, or the provider a command `wake`"
            )
        return found

    async def switch(self, machine: StaticMachine, to: Literal["sleep", "wake"], level: Hibernation) -> None:
        """Put a machine to sleep, or wake it, as the port says."""
        words = self._settings.hibernate if to == "sleep" else self._settings.wake
        if words:
            await self._run(words, machine, level)
        elif to == "sleep":
            raise ProviderError(ErrorClass.CONFIG, "its provider has no command `hibernate`")
        elif machine.mac:
            self._call_out(machine)
        else:
            raise ProviderError(
                ErrorClass.CONFIG, f"{machine.name} has no mac, and its provider no command `wake`"
            )

    async def _run(self, words: Sequence[str], machine: StaticMachine, level: Hibernation) -> None:
        said = {"name": machine.name, "address": machine.address, "mac": machine.mac, "level": level.value}
        try:
            ran = await self._commands.run(
                [word.format(**said) for word in words], within=self._settings.patience
            )
        except NotStartedError as error:
            raise ProviderError(ErrorClass.CONFIG, str(error)) from None
        except EndNotSeenError as error:
            raise InDoubtError(str(error)) from None
        if ran.status:
            told = cleaned(ran.errors.strip() or ran.output.strip())[-_ENDS:]
            raise ProviderError(ErrorClass.TRANSIENT, f"{words[0]} ended with {ran.status}: {told}")

    def _call_out(self, machine: StaticMachine) -> None:
        """Send the magic packet; nobody answers to it."""
        place = (machine.address or self._settings.broadcast, self._settings.port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.setblocking(False)
            try:
                sender.sendto(magic_packet(machine.mac), place)
            except OSError as error:
                raise ProviderError(
                    ErrorClass.TRANSIENT,
                    f"the magic packet for {machine.name} was not sent to {place[0]}: {error}",
                ) from None

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """It makes none."""
        del bootstrap
        raise ProviderError(
            ErrorClass.REQUEST,
            f"offer {order.offer.name}: this provider has machines that are there, and makes none",
        )

    async def find(self) -> Found:
        """It has made none."""
        return Found(machines=[], complete=True)

    async def get(self, handle: Handle) -> MachineFound:
        """It has made none."""
        return MachineFound(handle=handle, state=MachineState.GONE, proven=True)

    async def delete(self, handle: Handle) -> None:
        """There is nothing to remove."""

    async def room(self) -> Room:
        """It makes none."""
        return Room()

    async def console(self, handle: Handle) -> str:
        """There is none."""
        del handle
        return ""

    async def close(self) -> None:
        """There is nothing to give up."""
