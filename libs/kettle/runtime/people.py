"""What a service knows of people: what iam has made of their tokens, and who is banned."""

import asyncio
from functools import partial
from typing import Final

from kettle.auth.mapping.findings import Because, Place
from kettle.auth.mapping.levels import Level
from kettle.bus.ports import BucketSpec, Bus, BusError, Learn, RefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.people import PersonSaid, Shown, decode_person, person_key
from kettle_wire.subjects import Subjects

_NOBODY: Final = PersonSaid(owner="")


def people_bucket(subjects: Subjects) -> BucketSpec:
    """Where iam says it; it is on the disk, because iam says a thing again only hours later."""
    return BucketSpec(name=subjects.people, memory=False)


class People:
    """
    People of whom iam has said something.

    A service of the pool follows all of it (`follow`), and reads what it may have missed before it refuses somebody.  An access
    point that has joined hears nothing by itself: it reads about a person with each of his commands.
    """

    def __init__(self) -> None:
        self._said: dict[str, PersonSaid] = {}
        self._follows = False
        self.learn: Learn | None = None
        """Brings up to date what is known of a person; None where nobody says anything."""
        self.heard = asyncio.Event()
        """Set when all that was said before `follow` began is known."""

    def on(self, bus: Bus, subjects: Subjects, *, follows: bool) -> Learn:
        """Have `learn` ask this bus; `follows`: whether `follow` runs as well."""
        self._follows = follows
        self.learn = partial(self._learn, bus, subjects)
        return self.learn

    async def follow(self, bus: Bus, subjects: Subjects) -> None:
        """Read what iam says; never returns."""
        await bus.ensure_bucket(people_bucket(subjects))
        async for change in bus.watch(subjects.people):
            if change is None:
                self.heard.set()
                continue
            if change.value is None:
                self._said = {
                    owner: said for owner, said in self._said.items() if person_key(owner) != change.key
                }
            else:
                said = decode_person(change.value)
                self._said[said.owner] = said

    async def _learn(self, bus: Bus, subjects: Subjects, owner: str, *, refused: bool) -> None:
        """
        Have what iam has said of somebody by now: it says so before it lets him in, and `follow` hears it a moment later.

        Raises:
            RefusedError: it cannot be read at the moment (`unavailable`).
        """
        if refused is not self._follows:  # what was not followed has been read before the decision
            return
        try:
            found = await bus.get(subjects.people, person_key(owner))
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE,
                f"what the pool knows of {owner} cannot be read at the moment: {error}",
            ) from error
        if found is None:
            self._said.pop(owner, None)
        else:
            self._said[owner] = decode_person(found)

    async def accounting_group(self, owner: str) -> str:
        """
        Who is charged for jobs of somebody that name no group; empty: the owner.  Raises RefusedError as `learn` does.
        """
        if self.learn is not None and owner not in self._said:
            await self.learn(owner, refused=self._follows)
        return self._said.get(owner, _NOBODY).accounting_group

    async def shown(self, owner: str) -> Shown | None:
        """
        What the credential says with which somebody has come last; None: nothing was said of it. Raises RefusedError as `learn`
        does.

        It is read and not remembered: who comes again with another one has been told of before, and is heard of a moment later.
        """
        if self.learn is not None:
            await self.learn(owner, refused=self._follows)
        return self._said.get(owner, _NOBODY).shown

    def groups(self, owner: str) -> frozenset[str]:
        """
        The groups that the credential names with which somebody has come last, where rules of the site look at them.
        """
        shown = self._said.get(owner, _NOBODY).shown
        return frozenset(shown.groups) if shown is not None else frozenset()

    def banned(self, owner: str) -> str:
        """That somebody is banned, as the end of a sentence; empty: he is not."""
        return self._said.get(owner, _NOBODY).banned

    def levels(self, owner: str) -> dict[Level, Because]:
        """The levels that a rule gives somebody, and which."""
        said = self._said.get(owner, _NOBODY).levels
        return {Level(level): Because(Place(""), rule) for level, rule in said.items()}
