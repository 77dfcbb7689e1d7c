"""
Machines that are processes of this host: each is the worker's program, in a session of its own.

It is the provider to try pools with, and can be told to behave as clouds do: to be slow, full or unreliable. Everything that it
knows is in a directory for each machine, written before the process begins, and in the process table.
"""

import asyncio
import fcntl
import os
import shlex
import shutil
import signal
import sys
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec

from kettle.execution.system.linux import boot_id, signal_process, start_time
from kettle_services.provisioner.port import Found, InDoubtError, ProviderError, Room, UnavailableError
from kettle_services.provisioner.providers.process_ends import ProcessEnds
from kettle_services.provisioner.providers.process_files import Machine, UnreadableError, load, save
from kettle_services.provisioner.providers.process_groups import (
    kill_groups,
    make_groups,
    processes_in,
    remove_groups,
)
from kettle_services.provisioner.providers.processes import MARK, kill_tree, living, marked, tree
from kettle_services.provisioner.providers.settings import ProviderSettings, options_of
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Market, Offer

_Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Span = Annotated[float, msgspec.Meta(ge=0)]

AWAY: Final = "away"
"""While a file of this name is in its directory, the provider does not answer."""
SILENT: Final = "silent"
"""While a file of this name is in its directory, nobody hears whether a request for a machine was carried out."""
_CONSOLE: Final = "console"
_CONSOLE_BYTES: Final = 4096
_KEPT_S: Final = 600.0
"""So long the directory of a machine stays that has ended and that nobody asked to remove."""


class ProcessSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of a provider of kind `process`; what is simulated is off by default."""

    program: str = ""
    """The command `kettle`; empty: that of this installation."""
    directory: str = ""
    """Where its machines have their files; empty: `machines/NAME` in the directory of the pool."""
    grace: _Span = 10.0
    """Seconds from the request to end to the end by force."""
    capacity: _Count = 0
    """So many machines are there at most, then there is no capacity; 0: no limit."""
    quota: _Count = 0
    """So many cores may all machines have together; 0: no limit."""
    boot_delay: _Span = 0.0
    """Seconds until the program of a machine starts."""
    boot_failures: _Part = 0.0
    """Part of the machines whose program never starts."""
    refusals: _Part = 0.0
    """Part of the requests for a machine that are refused for a moment."""
    lost_answers: _Part = 0.0
    """Part of the requests for a machine of which nobody hears whether they were carried out."""
    interrupted_after: _Span = 0.0
    """Seconds after which a machine of an offer of the market `spot` is taken back; 0: never."""

    async def open(self, deployment: str) -> "Processes":
        """The provider."""
        if not self.directory:
            raise ProviderError(
                ErrorClass.CONFIG, "directory: it has to be said where machines have their files"
            )
        return Processes(self, deployment)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an offer may say otherwise than its provider."""

    capacity: _Count | None = None
    boot_delay: _Span | None = None
    boot_failures: _Part | None = None
    interrupted_after: _Span | None = None


class Processes:
    """The machines of one directory."""

    visibility = 0.0

    def __init__(self, settings: ProcessSettings, deployment: str) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._top: Final = Path(settings.directory).expanduser() / deployment
        self._group: Final = f"kettle-machines-{deployment}"
        self._boot: Final = boot_id()
        self._children: Final[dict[str, int]] = {}
        """The processes that this one has started and has not waited for yet, by their machines."""
        self._ends: Final = ProcessEnds(self._remains)

    async def check(self, offer: Offer) -> list[str]:
        """What is wrong with an offer."""
        self._require_there()
        try:
            self._options(offer)
        except ProviderError as error:
            return [str(error)]
        return []

    def _options(self, offer: Offer) -> _Options:
        options = options_of(offer, _Options)
        if offer.template:
            raise ProviderError(
                ErrorClass.IMAGE,
                f"offer {offer.name}: a process is made from no template: leave out template {offer.template}",
            )
        if 0 < self._settings.quota < offer.cpus:
            raise ProviderError(
                ErrorClass.REQUEST,
                f"offer {offer.name}: {offer.cpus} cores are more than the quota of {self._settings.quota}",
            )
        return options

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Start one; what it is told reaches it by standard input."""
        try:
            self._require_there()
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from error
        options = self._options(order.offer)
        if self._happens("refusal", order, self._settings.refusals):
            raise ProviderError(ErrorClass.TRANSIENT, "simulated: it is busy")
        program = self._program()
        handle = f"{order.lease}.{order.attempt}"
        machine = await asyncio.to_thread(self._make, handle, order, options, bootstrap, program)
        self._ends.follow(handle, machine.pid, machine.start)
        silent = (self._top.parent / SILENT).exists()
        if silent or self._happens("answer", order, self._settings.lost_answers):
            raise InDoubtError("simulated: the answer was lost")
        return handle

    def _make(
        self, handle: str, order: Order, options: _Options, bootstrap: Bootstrap, program: list[str]
    ) -> Machine:
        with self._locked():
            self._require_room(order.offer, options)
            directory, machine = self._top / handle, self._planned(handle, order, options)
            try:
                directory.mkdir(mode=0o700)
            except FileExistsError:
                raise InDoubtError(f"{handle} was asked for before") from None
            groups = make_groups(self._group, handle, cpus=order.offer.cpus, memory=order.offer.memory)
            machine = msgspec.structs.replace(machine, groups=groups)
            self._save(machine)
            fails = self._happens("boot", order, _given(options.boot_failures, self._settings.boot_failures))
            told = directory / "bootstrap.json"
            told.touch(mode=0o600)
            told.write_bytes(msgspec.json.encode(bootstrap))
            pid = self._start(machine, directory, told, program, fails=fails)
            self._children[handle] = pid
            machine = msgspec.structs.replace(machine, pid=pid, start=start_time(pid) or 0)
            self._save(machine)
            return machine

    def _start(
        self, machine: Machine, directory: Path, told: Path, program: list[str], *, fails: bool
    ) -> int:
        words = [*program, "--home", str(directory / "home")]
        run = "exec sleep infinity" if fails else f"exec {shlex.join(words)}"
        delay = machine.starts - machine.created
        script = "".join(
            f"echo $$ >{shlex.quote(group)}/cgroup.procs || exit 1\n" for group in machine.groups
        )
        script += f"cd {shlex.quote(str(directory))} || exit 1\n"
        script += f"sleep {delay:.3f}\n{run}" if delay > 0 else run
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")}
        with told.open("rb") as bootstrap, (directory / _CONSOLE).open("ab") as console:
            told.unlink()  # it has a secret, and only the new process reads it
            streams = zip((bootstrap, console, console), (0, 1, 2), strict=True)
            return os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", script],
                environment | {MARK: self._mark(machine.handle)},
                file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), number) for file, number in streams],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGINT, signal.SIGPIPE, signal.SIGTERM),
            )

    def _planned(self, handle: str, order: Order, options: _Options) -> Machine:
        now = time.time()
        spot = order.offer.market is Market.SPOT
        after = _given(options.interrupted_after, self._settings.interrupted_after)
        return Machine(
            handle=handle,
            lease=order.lease,
            deployment=self._deployment,
            offer=order.offer.name,
            cpus=order.offer.cpus,
            created=now,
            starts=now + _given(options.boot_delay, self._settings.boot_delay),
            boot=self._boot,
            interrupted=now + after if spot and after else 0.0,
        )

    def _require_room(self, offer: Offer, options: _Options) -> None:
        there = [machine for machine, state in self._all() if state is not MachineState.GONE]
        of_offer = sum(machine.offer == offer.name for machine in there)
        full = 0 < self._settings.capacity <= len(there)
        if full or (options.capacity is not None and of_offer >= options.capacity):
            raise ProviderError(ErrorClass.CAPACITY, f"there is no capacity for {offer.name} now")
        if 0 < self._settings.quota < sum(machine.cpus for machine in there) + offer.cpus:
            raise ProviderError(
                ErrorClass.QUOTA, f"the quota of {self._settings.quota} cores would be exceeded"
            )

    async def find(self) -> Found:
        """All that have not ended."""
        self._require_there()
        machines = await asyncio.to_thread(self._found)
        return Found(machines=machines, complete=True)

    def _found(self) -> list[MachineFound]:
        with self._locked():
            found = [_shown(machine, state) for machine, state in self._all()]
        return [each for each in found if each.state is not MachineState.GONE]

    async def get(self, handle: Handle) -> MachineFound:
        """One; it is gone when the process table has nothing of it."""
        self._require_there()
        return await asyncio.to_thread(self._get, handle)

    def _get(self, handle: Handle) -> MachineFound:
        with self._locked():
            machine = self._load(handle)
            if machine is None:
                return MachineFound(handle=handle, state=MachineState.GONE, words="there is no such machine")
            state = self._state(machine, self._tree(machine))
            if state is MachineState.GONE and machine.asked:
                self._forget(machine)
            return _shown(machine, state)

    def _tree(self, machine: Machine) -> set[int]:
        """All living processes of a machine."""
        return tree(self._mark(machine.handle), self._root(machine)) | living(processes_in(machine.groups))

    def _forget(self, machine: Machine) -> None:
        """Nothing of a machine is left, and nothing of it is to be."""
        remove_groups(machine.groups)
        shutil.rmtree(self._top / machine.handle)

    async def delete(self, handle: Handle) -> None:
        """Ask it to end; when it was asked long enough ago, end everything of it."""
        self._require_there()
        await asyncio.to_thread(self._delete, handle)

    def _delete(self, handle: Handle) -> None:
        with self._locked():
            machine = self._load(handle)
            if machine is None:
                return
            mark, root, now = self._mark(handle), self._root(machine), time.time()
            waits = (
                root is not None
                and now >= machine.starts
                and now < (machine.asked or now) + self._settings.grace
            )
            if waits and root is not None:
                self._save(msgspec.structs.replace(machine, asked=machine.asked or now))
                signal_process(root, signal.SIGTERM, started=machine.start)
            else:
                kill_tree(mark, root)
                kill_groups(machine.groups)
            self._reap(handle)
            if not self._tree(machine):
                self._forget(machine)

    async def room(self) -> Room:
        """What capacity and quota leave."""
        self._require_there()
        return await asyncio.to_thread(self._room)

    def _room(self) -> Room:
        with self._locked():
            there = [machine for machine, state in self._all() if state is not MachineState.GONE]
        settings = self._settings
        return Room(
            machines=max(0, settings.capacity - len(there)) if settings.capacity else None,
            cpus=max(0, settings.quota - sum(each.cpus for each in there)) if settings.quota else None,
        )

    async def console(self, handle: Handle) -> str:
        """The end of what it wrote."""
        self._require_there()
        if self._load(handle) is None:
            return ""
        data = await asyncio.to_thread((self._top / handle / _CONSOLE).read_bytes)
        return data[-_CONSOLE_BYTES:].decode(errors="replace")

    async def close(self) -> None:
        """Machines stay; the next provider finds them."""
        self._ends.close()

    async def tell_of_ends(self, told: Callable[[Handle], None]) -> None:
        """Have somebody told when one has ended, also one that was there before."""
        self._ends.tell(told)
        for machine in await asyncio.to_thread(self._begun):
            self._ends.follow(machine.handle, machine.pid, machine.start)

    def _begun(self) -> list[Machine]:
        machines: list[Machine] = []
        with self._locked():
            for directory in self._top.iterdir():
                with suppress(UnreadableError):  # the next question about all machines is answered with it
                    machines += filter(None, [self._load(directory.name)])
        return [each for each in machines if each.pid and each.boot == self._boot]

    def _remains(self, handle: Handle) -> bool:
        with self._locked(), suppress(UnreadableError):
            machine = self._load(handle)
            return machine is not None and bool(self._tree(machine))
        return False  # it is looked at when its end is noticed, and then that is told

    # -- what is there ------------------------------------------------------------------------------------------------

    def _all(self) -> list[tuple[Machine, MachineState]]:
        """All machines with a directory; those that ended long ago lose it."""
        processes = marked(self._mark(""))
        found: list[tuple[Machine, MachineState]] = []
        for directory in self._top.iterdir():
            machine = self._load(directory.name)
            if machine is None:
                continue
            pids = processes.get(self._mark(machine.handle), set()) | living(processes_in(machine.groups))
            root = self._root(machine)
            state = self._state(machine, pids | ({root} if root is not None else set()))
            found.append((machine, state))
            if state is MachineState.GONE and time.time() - directory.stat().st_mtime > _KEPT_S:
                self._forget(machine)
        return found

    def _state(self, machine: Machine, pids: set[int]) -> MachineState:
        now = time.time()
        if not pids:
            return MachineState.GONE
        if machine.interrupted and now >= machine.interrupted and not machine.asked:
            root = self._root(machine)
            if root is not None:
                signal_process(root, signal.SIGTERM, started=machine.start)
            self._save(msgspec.structs.replace(machine, asked=now, why="simulated: it was taken back"))
            return MachineState.STOPPING
        if machine.asked:
            return MachineState.STOPPING
        return MachineState.PENDING if now < machine.starts else MachineState.RUNNING

    def _root(self, machine: Machine) -> int | None:
        """The process that was started, if it is still that one."""
        self._reap(machine.handle)
        same = machine.boot == self._boot and machine.pid and start_time(machine.pid) == machine.start
        return machine.pid if same else None

    def _reap(self, handle: str) -> None:
        pid = self._children.get(handle)
        if pid is not None and os.waitpid(pid, os.WNOHANG)[0]:
            del self._children[handle]

    def _mark(self, handle: str) -> str:
        return f"{self._top}/{handle}"

    def _load(self, handle: str) -> Machine | None:
        if not handle or "/" in handle or handle.startswith("."):
            return None
        return load(self._top / handle)

    def _save(self, machine: Machine) -> None:
        save(self._top / machine.handle, machine)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One of all processes that look after this directory, so that nobody sees half of a machine."""
        self._top.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._top / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _require_there(self) -> None:
        if (self._top.parent / AWAY).exists():
            raise UnavailableError("simulated: it does not answer")

    def _program(self) -> list[str]:
        """
        What is run for a machine, but for its directory: of this installation what `kettle worker run` would become.
        """
        if not self._settings.program:
            return [sys.executable, "-P", "-m", "kettle_services.worker", "-"]
        found = shutil.which(self._settings.program)
        if found is None:
            raise ProviderError(
                ErrorClass.CONFIG, f"{self._settings.program} cannot be run here: set program"
            )
        return [found, "worker", "run", "--bootstrap", "-"]

    def _happens(self, what: str, order: Order, part: float) -> bool:
        """Whether something is simulated for an attempt: always the same, however often it is asked."""
        return zlib.crc32(f"{what} {order.lease} {order.attempt}".encode()) < part * 2**32


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _shown(machine: Machine, state: MachineState) -> MachineFound:
    return MachineFound(
        handle=machine.handle,
        state=state,
        lease=machine.lease,
        deployment=machine.deployment,
        words=machine.why,
        created=machine.created,
        proven=state is MachineState.GONE,  # by the process table, of which nothing can be hidden from us
    )
