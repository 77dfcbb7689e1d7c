"""
What earlier decisions mean for the next one: whose turn it is, and how many jobs each route was given.

Each cluster of jobs keeps what was so after the newest decision about it, and the newest of all clusters is how it stands. A cluster
may be forgotten if others say more.
"""

from collections.abc import Iterable

import msgspec

from kettle_wire.events import RouteDecided


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided about jobs of a cluster."""

    turn: int = 0
    """The place in the turns after it."""
    version: str = ""
    """Of the routes."""
    since: int = 0
    """The turn at which these routes came into force, from which on it is counted what they are given."""
    taken: dict[str, int] = {}
    """Of the routes that its jobs got since then: how many jobs each had been given by then, those of other clusters included."""


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands after all decisions."""

    turn: int = 0
    """The place in the turns of routes that are taken one after the other."""
    version: str = ""
    """Of the routes with which `taken` was decided."""
    since: int = 0
    taken: dict[str, int] = {}
    """How many jobs each of these routes was given."""

    @classmethod
    def after(cls, decisions: Iterable[Decided]) -> "Turns":
        """How it stands after some decisions, in whichever order."""
        turns = cls()
        for each in decisions:
            turns = turns.with_decided(each)
        return turns

    def with_decided(self, decided: Decided) -> "Turns":
        """How it stands when there is one decision more."""
        turn = max(self.turn, decided.turn)
        if decided.since > self.since or (decided.since == self.since and not self.taken):
            version, since, taken = decided.version, decided.since, decided.taken
        elif decided.since == self.since:
            version, since, taken = self.version, self.since, {**self.taken}
            for route, count in decided.taken.items():
                taken[route] = max(count, taken.get(route, 0))
        else:
            version, since, taken = self.version, self.since, self.taken
        return Turns(turn=turn, version=version, since=since, taken=taken)

    def decided(self, kept: Decided | None, event: RouteDecided) -> Decided:
        """
        What a cluster keeps after a decision, of those before it has kept `kept`. Other routes begin with nothing, and decisions that are
        made together are not recorded in the order of their turns.
        """
        before = kept or Decided()
        same = event.version == self.version
        since = self.since if same else self.turn
        taken = before.taken if before.since == since else {}
        if event.route:
            count = self.taken.get(event.route, 0) if same else 0
            taken = {**taken, event.route: count + len(event.jobs)}
        return Decided(turn=max(before.turn, event.turn), version=event.version, since=since, taken=taken)

    def rest_on(self, decided: Decided) -> bool:
        """Whether there may be no other decision that says as much: it is not to be forgotten."""
        return decided.turn >= self.turn or (
            decided.since == self.since
            and any(count >= self.taken.get(route, 0) for route, count in decided.taken.items())
        )
