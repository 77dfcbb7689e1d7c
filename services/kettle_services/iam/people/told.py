"""Tells the services what they need of people who have come with a token; see `kettle_wire.people`."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final

from kettle.bus.jetstream import entry_subject
from kettle.bus.nats import NatsBus
from kettle.runtime.people import people_bucket
from kettle_services.iam.domain.persons import Person
from kettle_wire.people import PersonSaid, decode_person, encode_person, person_key
from kettle_wire.subjects import Subjects

_MOST: Final = 100_000
_LONGEST_S: Final = 86_400.0
_PASSING_S: Final = 1.0
_RENEWED: Final = 0.5
"""An entry is written again when so much of its life has passed."""


class ToldPeople:
    """Of whom something was said that goes beyond the name."""

    def __init__(self, bus: NatsBus, subjects: Subjects) -> None:
        self._bus = bus
        self._spec = people_bucket(subjects)
        self._bucket = self._spec.name
        self._told: OrderedDict[str, tuple[PersonSaid, float]] = OrderedDict()
        """By owner: what was said, and until when that need not be said again. Of others nobody knows what an iam has said before."""
        self._banned: dict[str, str] = {}
        """By owner: why nothing is to be done for him, as the bucket says."""
        bus.on_return(self._told.clear)  # what was said while the server was away is lost

    async def open(self) -> None:
        """Have the bucket, and know of whom it says that he is banned; again when it may have been lost."""
        self._banned.clear()
        await self._bus.ensure_bucket(self._spec)
        async with aclosing(self._bus.watch(self._bucket)) as changes:
            async for change in changes:
                if change is None:
                    return
                if change.value and (said := decode_person(change.value)).banned:
                    self._banned[said.owner] = said.banned

    async def ban(self, banned: Mapping[str, str]) -> None:
        """
        Have services do nothing for these and for nobody else, each with the reason: also those hear it who come with an account
        of an access point, whose connection is not ours to end.
        """
        for owner in self._banned.keys() - banned.keys():
            # An entry that says nothing, and goes by itself: a deletion would not be confirmed.
            await self._say(PersonSaid(owner=owner), _PASSING_S)
            del self._banned[owner]
        for owner, why in banned.items():
            if self._banned.get(owner) != why:
                self._told.pop(owner, None)
                self._banned[owner] = why  # from now on nobody takes back what is said of him
                try:
                    await self._say(PersonSaid(owner=owner, banned=why), None)
                except BaseException:
                    del self._banned[owner]
                    raise

    async def tell(self, person: Person) -> None:
        """Say what the services need of somebody, if that is new."""
        said = PersonSaid(
            owner=person.owner,
            accounting_group=person.accounting_group,
            levels=dict(person.given),
            shown=person.shown,
        )
        now = time.time()
        before, until = self._told.get(person.owner, (None, 0.0))
        if person.owner in self._banned or (
            said == before and (now < until or said == PersonSaid(owner=said.owner))
        ):
            return
        lifetime = max(1.0, min((person.expires or now + _LONGEST_S) - now, _LONGEST_S))
        await self._say(said, lifetime)
        self._told[person.owner] = said, now + lifetime * _RENEWED
        if len(self._told) > _MOST:
            self._told.popitem(last=False)

    async def forget(self, owner: str) -> None:
        """What was said of somebody holds no longer."""
        self._told.pop(owner, None)
        if owner not in self._banned:
            await self._bus.delete(self._bucket, person_key(owner))

    async def _say(self, said: PersonSaid, lifetime: float | None) -> None:
        """Confirmed by the bus: who is let in after this is known to every service that looks."""
        subject = entry_subject(self._bucket, person_key(said.owner))
        await self._bus.append(subject, encode_person(said), ttl=lifetime)
