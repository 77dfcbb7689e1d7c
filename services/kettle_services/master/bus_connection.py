"""
The master's line to the bus: its ad goes out, commands come in.

A master does its work without a bus, which may be a server that it is yet to start.  So nothing that happens to the
line ends the master: it is opened again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.bus.credentials import Credential, service_identity
from kettle.bus.ports import BucketSpec, Bus, BusError, Served
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits
from kettle.runtime import leaves
from kettle.runtime.authorization import Authorization
from kettle.runtime.authorizer import Authorizer
from kettle.runtime.deeds import Outbox
from kettle.runtime.duty_cycle import DutyCycle
from kettle.runtime.people import People
from kettle.runtime.rights import answer_about_rights
from kettle_services.master.credential_renewal import keep_renewed
from kettle_wire.ads import Ad
from kettle_wire.identity import Identity, worker
from kettle_wire.subjects import Subjects, ad_key

if TYPE_CHECKING:
    from kettle.bus.nats import NatsBus

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_AGAIN_S: Final = 5.0
_CALM_S: Final = 0.2
"""Between two ads: what changes meanwhile goes out together."""
_WITHDRAW_S: Final = 2.0
_LIFETIMES: Final = 3
"""How many ads may be lost before the last one expires."""
_CLASSAD_LIFETIME_S: Final = 900.0
"""The collector's default; the bucket has the settings of the first service that makes it."""


class BusConnection:
    """Publishes the state of the host, and answers requests."""

    def __init__(
        self,
        *,
        name: str,
        version: str,
        ad: Callable[[], Ad],
        interval: Callable[[], float],
        served: Sequence[Served[Any, Any]],
        authorization: Callable[[], Authorization],
        deeds: Outbox,
    ) -> None:
        """`ad` is the host's ad as it is now; `interval` the seconds between repeats."""
        self._people = People()
        self._authorization = authorization
        self._authorizer = Authorizer.of_service("master", authorization, people=self._people)
        self._deeds = deeds
        self._name = name
        self._version = version
        self._ad = ad
        self._interval = interval
        self._served = served
        self._changed = asyncio.Event()
        self._sequence = 0

    def changed(self) -> None:
        """The ad is no longer true."""
        self._changed.set()

    async def hold(self, url: str, *, subjects: Subjects, credentials: str, ca: str, replicas: int) -> None:
        """Hold the line until cancelled; the ad is then withdrawn."""
        from kettle.bus.nats import NatsBus  # loaded when the services run: they need not wait for it

        waits = Waits(steady(1.2 * _AGAIN_S, spread=1 / 3))
        while True:
            try:
                async with NatsBus.connect(
                    url,
                    subjects=subjects,
                    identity=self._identity(credentials),
                    credentials=credentials,
                    ca=ca,
                    name=f"master {self._name}",
                    replicas=replicas,
                ) as bus:
                    _end_if_cancelled()
                    bus.audit_by(self._deeds)
                    await self._speak(bus, subjects, credentials)
            except Exception as error:  # noqa: BLE001 - whatever it is, the daemons need their master
                _log.warning("the line to the bus is broken, opening it again: %s", leaves(error)[0])
            _end_if_cancelled()
            await waits.wait()

    def _identity(self, credentials: str) -> Identity:
        """
        On a machine that has joined, the master shares the credential of its startd, which has its name.
        """
        shared = bool(credentials) and Credential.read(credentials).of_machine
        return worker(self._name) if shared else service_identity("master", credentials)

    async def _speak(self, bus: "NatsBus", subjects: Subjects, credentials: str) -> None:
        bus.on_return(self.changed)
        # A machine shares the credential of its startd, which hears nothing of people.
        joined = bool(bus.identity.access_point)
        follows = bus.identity.kind == "daemon" and not joined and bool(self._authorization().rules)
        learn = self._people.on(bus, subjects, follows=follows) if follows or joined else None
        bus.authorize_by(self._authorizer, partial(answer_about_rights, self._authorizer, learn), learn=learn)
        async with asyncio.TaskGroup() as group:
            group.create_task(bus.failure(), name="bus")
            beside = [group.create_task(self._deeds.deliver(bus), name="deeds")]
            if bus.identity.kind == "worker":
                renewed = keep_renewed(bus, Path(credentials))
                beside.append(group.create_task(renewed, name="credential"))
            if follows:
                beside.append(group.create_task(self._people.follow(bus, subjects), name="people"))
            try:
                await bus.serve("master", self._name, self._served, version=self._version)
                await self._advertise(bus, subjects)
            finally:
                for task in beside:
                    task.cancel()
                await self._withdraw(bus, subjects)

    async def _advertise(self, bus: Bus, subjects: Subjects) -> None:
        duty = DutyCycle()
        while True:
            _end_if_cancelled()
            self._changed.clear()
            interval = self._interval()
            lifetime = _LIFETIMES * interval
            self._sequence += 1
            ad = self._ad() | {
                "UpdateSequenceNumber": self._sequence,
                "ClassAdLifetime": int(lifetime) or 1,
                **duty.facts(),
            }
            try:
                # An ad that is put into no bucket is lost until its next repeat.
                await bus.ensure_bucket(BucketSpec(name=subjects.ads, ttl=_CLASSAD_LIFETIME_S))
                await bus.put(subjects.ads, ad_key("DaemonMaster", self._name), _encode(ad), ttl=lifetime)
            except BusError as error:
                _log.info("the ad waits: %s", error)
                interval = min(interval, _AGAIN_S)
            _end_if_cancelled()
            await asyncio.sleep(_CALM_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await self._changed.wait()

    async def _withdraw(self, bus: Bus, subjects: Subjects) -> None:
        try:
            async with asyncio.timeout(_WITHDRAW_S):
                await bus.delete(subjects.ads, ad_key("DaemonMaster", self._name))
        except (BusError, TimeoutError) as error:
            _log.info("the ad is not withdrawn, it expires: %s", error)


def _end_if_cancelled() -> None:
    """
    The client of the bus forgets a cancellation that comes while it flushes, or in the moment in which an answer comes:
    a master that is stopped as soon as it is ready would wait for this line without end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
