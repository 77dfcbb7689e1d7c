"""
Hosts reached by SSH: a machine is a process of an account there, which is ended by `timeout` whatever happens to us.
"""

import asyncio
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

import asyncssh
import msgspec

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.provisioner.domain import ssh_scripts
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import worker_script
from kettle_services.provisioner.providers.settings import NoOptions, ProviderSettings, options_of
from kettle_services.provisioner.providers.ssh_connections import Host, address
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

_CONSOLE_BYTES: Final = 16_384
_GRACE_S: Final = 60


class SshSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts on which one account is ours."""

    hosts: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10_000)]
    """Each as `host`, `user@host` or `user@host:port`."""
    key_file: str
    """The private key, in a form of OpenSSH without a passphrase."""
    known_hosts_file: str
    """The keys of the hosts, as OpenSSH keeps them: a host that cannot prove itself is told nothing."""
    per_host: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """So many machines on one host."""
    directory: str = ".kettle-machines"
    """Where machines have their files, below the home of the account."""
    sessions: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    """So many commands at the same time on a host: fewer than MaxSessions of its sshd, which is 10."""

    async def open(self, deployment: str) -> "Ssh":
        """The provider; hosts are connected when they are needed."""
        try:
            key = asyncssh.read_private_key(self.key_file)
        except (OSError, asyncssh.KeyImportError) as error:
            raise ProviderError(
                ErrorClass.CONFIG, f"key_file {self.key_file} cannot be used: {error}"
            ) from None
        hosts = {
            name: Host(
                address(name),
                key,
                self.known_hosts_file,
                sessions=self.sessions,
                patience=self.patience,
            )
            for name in self.hosts
        }
        return Ssh(self, deployment, hosts)


class Ssh:
    """Processes on hosts."""

    visibility = 0.0

    def __init__(self, settings: SshSettings, deployment: str, hosts: Mapping[str, Host]) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._hosts: Final = hosts

    async def check(self, offer: Offer) -> list[str]:
        """What no host that the offer means has."""
        try:
            options_of(offer, NoOptions)
            names = self._meant(offer)
        except ProviderError as error:
            return [str(error)]
        script = ssh_scripts.examine(self._settings.program)
        answers = await asyncio.gather(
            *(self._hosts[name].run(script) for name in names), return_exceptions=True
        )
        sentences: list[str] = []
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            lacks = list(ssh_scripts.shortcomings(answer, cpus=offer.cpus, memory=offer.memory))
            sentences += [f"offer {offer.name}: host {name} {each}" for each in lacks]
        return sentences

    def _meant(self, offer: Offer) -> list[str]:
        """The hosts of an offer: that of its template, or all."""
        if not offer.template:
            return list(self._hosts)
        if offer.template in self._hosts:
            return [offer.template]
        near = did_you_mean(offer.template, self._hosts)
        raise ProviderError(
            ErrorClass.IMAGE, f"offer {offer.name}: no host {offer.template} is set for this provider{near}"
        )

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Start a machine on the first host with room; each lease begins its search at another host."""
        options_of(order.offer, NoOptions)
        started = worker_script(bootstrap, self._settings.program, self._settings.before, place="$machine")
        passed: list[Exception] = []
        full = 0
        for name in _from(self._meant(order.offer), zlib.crc32(order.lease.encode())):
            try:
                await self._hosts[name].connect()
            except (UnavailableError, ProviderError) as error:  # nothing was sent
                passed.append(error)
                continue
            try:
                said = (await self._hosts[name].run(self._creation(name, order, started))).strip()
            except UnavailableError as error:
                raise InDoubtError(str(error)) from None
            if said == ssh_scripts.MADE:
                return ssh_scripts.handle(name, order.lease)
            if said != ssh_scripts.FULL:
                raise InDoubtError(
                    f"host {name}: {cleaned(said, [bootstrap.token]) or 'it did not say that it was made'}"
                )
            full += 1
        if full:
            raise ProviderError(ErrorClass.CAPACITY, f"{full} hosts have as many machines as they may")
        refused = [each for each in passed if isinstance(each, ProviderError)]
        raise (
            refused[0] if len(refused) == len(passed) else ProviderError(ErrorClass.TRANSIENT, str(passed[0]))
        )

    def _base(self, host: str) -> str:
        """Of the machines of a host: a home may be shared by many."""
        return f"{self._settings.directory}/{self._deployment}/{host}"

    def _creation(self, host: str, order: Order, script: str) -> str:
        return ssh_scripts.create(
            self._base(host), order.lease, script, life=math.ceil(order.life), most=self._settings.per_host
        )

    async def find(self) -> Found:
        """All machines on hosts that answer; it is complete if each did."""
        answers = await asyncio.gather(
            *(host.run(ssh_scripts.list_machines(self._base(name))) for name, host in self._hosts.items()),
            return_exceptions=True,
        )
        machines: list[MachineFound] = []
        errors: list[BaseException] = []
        for name, answer in zip(self._hosts, answers, strict=True):
            if isinstance(answer, BaseException):
                errors.append(answer)
            else:
                machines += ssh_scripts.machines(name, self._deployment, answer)
        if len(errors) == len(self._hosts):
            raise errors[0]
        there = [each for each in machines if each.state is not MachineState.GONE]
        return Found(machines=there, complete=not errors)

    async def get(self, handle: Handle) -> MachineFound:
        """One machine: gone if no process with its number, its beginning and its boot is there."""
        host, name, lease = self._split(handle)
        said = await host.run(ssh_scripts.look(self._base(name), lease))
        for machine in ssh_scripts.machines(name, self._deployment, said):
            return machine
        raise UnavailableError(f"host {name} said nothing that can be read")

    async def delete(self, handle: Handle) -> None:
        """End a machine."""
        host, name, lease = self._split(handle)
        await host.run(ssh_scripts.delete(self._base(name), lease, _GRACE_S))

    async def room(self) -> Room:
        """What the hosts that answer have left."""
        found = await self.find()
        return Room(machines=max(0, len(self._hosts) * self._settings.per_host - len(found.machines)))

    async def console(self, handle: Handle) -> str:
        """The end of what it wrote."""
        host, name, lease = self._split(handle)
        return await host.run(ssh_scripts.console(self._base(name), lease, _CONSOLE_BYTES))

    def _split(self, handle: Handle) -> tuple[Host, str, str]:
        name, _, lease = handle.rpartition("/")
        if name not in self._hosts:
            raise UnavailableError(f"machine {handle}: its host is not set for this provider any more")
        return self._hosts[name], name, lease

    async def close(self) -> None:
        """Leave the hosts."""
        for host in self._hosts.values():
            await host.close()


def _from(names: list[str], number: int) -> Iterator[str]:
    start = number % len(names)
    yield from names[start:]
    yield from names[:start]
