"""How the parts of a startd hang together."""

import asyncio
import hashlib
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle import VERSION
from kettle.bus.ports import Bus
from kettle.execution.attempts.job_spec import Isolation
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.download import Fetcher
from kettle.execution.input_files.kept_outputs import KeptOutputs, advertised
from kettle.execution.sandbox.directory import release_execute
from kettle.execution.system.cgroup_layout import probe_cgroups, remove_layout
from kettle.execution.system.linux import boot_id
from kettle.runtime import Runtime, SettingsError, Telemetry
from kettle.runtime.daemon_ad import daemon_facts
from kettle.runtime.duty_cycle import DutyCycle
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.lifeline import OF_JOBS, inherited
from kettle.runtime.local_startd import LocalStartd, leave_word, take_back
from kettle.runtime.pool_connections import join_bus
from kettle.transfer.plugin import Plugin
from kettle_services.startd.access_point.reports import ReportDelivery
from kettle_services.startd.advertiser import Advertiser
from kettle_services.startd.commands.handlers import Handlers
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.file_transfer.plugins import find_plugins, plugin_attributes
from kettle_services.startd.machine import host
from kettle_services.startd.machine.container_offer import ContainerTrial
from kettle_services.startd.machine.job_isolation import find_isolation
from kettle_services.startd.machine.probing import Probing
from kettle_services.startd.machine.survey import survey
from kettle_services.startd.machine_metrics import measure_machine
from kettle_services.startd.policy.load_and_keyboard import Observer
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.startd import Startd
from kettle_services.startd.starters.pool import StarterPool, ZygoteStarterPool
from kettle_services.startd.state.journal import Journal, lock_state
from kettle_services.startd.state.recorder import Recorder
from kettle_wire.ads import Ad
from kettle_wire.identity import worker
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)


async def serve(rt: Runtime, settings: StartdSettings) -> None:
    """Offer the machine until the process is asked to stop; then end what runs, say so, and withdraw."""
    watch_budgets(rt.telemetry)
    bus = await join_bus(rt, settings, identity=worker(host.machine_name(settings)))
    fd = inherited(os.environ, OF_JOBS)
    async with AsyncExitStack() as stack:
        starting = running(bus, settings, lifeline_fd=fd, telemetry=rt.telemetry)
        try:
            async with unless(rt.stopping):
                startd = await stack.enter_async_context(starting)
        except TimeoutError:
            return  # nothing has begun
        measure_machine(rt.telemetry, startd.machine)
        rt.loop(_ready(rt, startd), name="ready")
        await rt.stopping.wait()
        if rt.how == "peaceful":
            await startd.finish(rt.hurried)
        await startd.drain(fast=rt.how == "fast")


async def _ready(rt: Runtime, startd: Startd) -> None:
    """A machine that nobody sees yet would make a pool that is up look empty."""
    await startd.advertised()
    rt.ready()


@asynccontextmanager
async def unless(event: asyncio.Event) -> AsyncGenerator[None]:
    """
    What is awaited here ends with a TimeoutError when the event comes: an engine or a program of the owner's that hangs
    while the machine is looked at keeps nobody from stopping us.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        waiting = asyncio.ensure_future(event.wait())
        waiting.add_done_callback(lambda done: None if done.cancelled() else scope.reschedule(loop.time()))
        try:
            yield
        finally:
            waiting.cancel()


def _counted(cache: InputCache) -> Callable[[], Ad]:
    """What the startd's own ad says of itself that changes all the time."""
    duty = DutyCycle()
    return lambda: cache.ad() | duty.facts()


def _kept_outputs(
    cache: InputCache, machine: Machine, settings: StartdSettings, advertise: Callable[[], None]
) -> KeptOutputs:
    def changed(said: str) -> None:
        machine.kept_outputs = advertised(said)
        advertise()

    return KeptOutputs(
        cache,
        limit_bytes=settings.kept_outputs_mib << 20,
        lifetime=settings.kept_outputs_lifetime,
        changed=changed,
    )


async def _surveyed(settings: StartdSettings, execute: Path) -> tuple[Facts, list[Plugin], Isolation]:
    """What there is on this machine, and what of it is for jobs; each part waits for programs of its own most of the time."""
    facts, plugins, (isolation, isolated) = await asyncio.gather(
        asyncio.to_thread(survey, settings, execute),
        find_plugins(settings),
        find_isolation(settings, execute),
    )
    attributes = isolated | plugin_attributes(plugins, bus=settings.nats_url, ca=settings.nats_ca)
    attributes |= {"CanHibernate": True} if settings.can_hibernate else {}
    return msgspec.structs.replace(facts, attributes={**attributes, **facts.attributes}), plugins, isolation


@asynccontextmanager
async def running(
    bus: Bus,
    settings: StartdSettings,
    *,
    lifeline_fd: int | None = None,
    telemetry: Telemetry | None = None,
    starters: StarterPool | None = None,
) -> AsyncGenerator[Startd]:
    """
    A startd that answers on the bus while the context lasts.  Jobs that have not been ended before go on after it.

    `starters` may be others than those that this machine forks: a simulated machine has simulated ones.
    """
    subjects = Subjects(settings.pool)
    execute = host.make_execute(settings)
    state = settings.state_path
    try:
        lock = lock_state(state)
    except BlockingIOError as error:
        raise SettingsError(f"{state}: another startd works with this directory.") from error
    journal = Journal(state / "journal", boot_id())
    facts, plugins, isolation = await _surveyed(settings, execute)
    machine = Machine(
        facts, capability=secrets.token_hex(16), local_capability=secrets.token_hex(16) if facts.local else ""
    )
    recorder = Recorder(machine, journal, places=(state, execute))
    recorder.open()
    trial = ContainerTrial(machine, settings, execute)
    await trial.begin()
    mark = hashlib.sha256(str(execute).encode()).hexdigest()[:12]
    cgroups = probe_cgroups(f"kettle-{mark}") if settings.cgroups else None
    starter_pool = starters or ZygoteStarterPool(state, execute, lifeline_fd=lifeline_fd)
    try:
        async with asyncio.TaskGroup() as tasks:
            cache = InputCache(
                state / "cache",
                Fetcher(bus, subjects, patience=settings.input_patience),
                limit_bytes=settings.input_cache_mib << 20,
            )

            kept_outputs = _kept_outputs(
                cache,
                machine,
                settings,
                lambda: advertiser.now(),  # noqa: PLW0108 - it is made below
            )
            reporter = ReportDelivery(
                bus,
                subjects,
                tasks,
                startd=machine.facts.name,
                state=state,
                execute=execute,
                repeat=settings.report_repeat,
                kept_outputs=kept_outputs if settings.kept_outputs_mib else None,
            )
            advertiser = Advertiser(
                bus,
                subjects,
                machine,
                advertised_names=state / "advertised",
                interval=settings.update_interval,
                delay=settings.activity_delay,
                version=VERSION,
                facts=daemon_facts("startd", machine.facts.name, settings.nats_url),
                counted=_counted(cache),
                unconfirmed=lambda: reporter.unconfirmed,
            )
            startd = Startd(
                machine,
                settings,
                execute=execute,
                recorder=recorder,
                starter_pool=starter_pool,
                cgroups=cgroups,
                containers=trial.offer,
                plugins=plugins,
                isolation=isolation,
                reporter=reporter,
                advertiser=advertiser,
                cache=cache,
                bus=bus,
                observer=Observer(
                    facts.policy, console=settings.console_devices, accounts=host.accounts(settings)
                ),
                tasks=tasks,
                telemetry=telemetry or Telemetry(),
            )
            try:
                await startd.take_over()
                handlers = Handlers(
                    startd,
                    administrators=host.administrators(settings),
                    scaled=bool(settings.lease_ends) or settings.can_hibernate,
                )
                await bus.serve("startd", machine.facts.name, handlers.served(), version=VERSION)
                _offer_local_slot(machine, settings)
                # Clients that wait for the answer of the previous process do not need to wait longer.
                await bus.publish(subjects.notice("startd", machine.facts.name), machine.facts.name.encode())
                loops = (
                    trial.run(startd.probed),
                    starter_pool.keep(),
                    reporter.repeat(),
                    kept_outputs.watch(),
                    startd.watch_leases(),
                    startd.watch_disk(),
                    startd.overseer.evaluate_forever(),
                    advertiser.run(),
                    *([startd.health.tell()] if settings.lease_ends else []),
                    *([Probing(machine, settings, execute, startd.probed).run()] if settings.probes else []),
                )
                running_loops = [tasks.create_task(loop) for loop in loops]
                yield startd
                for task in running_loops:
                    task.cancel()
                take_back(settings.home_path)
                await advertiser.withdraw()
            finally:
                startd.close()
                reporter.close()
    finally:
        starter_pool.close()
        if cgroups is not None:
            remove_layout(cgroups)
        release_execute(str(execute))
        os.close(lock)


def _offer_local_slot(machine: Machine, settings: StartdSettings) -> None:
    """Without room on the disk local jobs wait, as all others do: nothing would be accepted."""
    facts = machine.facts
    if facts.local is None:
        return
    word = LocalStartd(
        startd=facts.name, slot=facts.slot_name(facts.local.number), capability=machine.local_capability
    )
    try:
        leave_word(settings.home_path, word)
    except OSError as error:
        _log.warning("local jobs have to wait", extra={"cause": str(error)})
