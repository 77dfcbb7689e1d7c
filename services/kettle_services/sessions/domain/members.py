"""A member of a session, and what the events of the session make of it."""

import msgspec

from kettle_wire.events.interactive import MemberChange
from kettle_wire.sessions import MemberRole, MemberStatus


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of a session that has not left the queue, or is to come into it."""

    role: MemberRole
    batch: int
    place: int
    """Which of the jobs of its batch."""
    job: str = ""
    """Empty: it is not in the queue yet."""
    status: MemberStatus = "ordered"
    since: float
    """When it came into this status, seconds since the epoch."""
    started: float = 0.0
    """When its program began last to run; 0: it never has."""
    site: str = ""
    machine: str = ""
    reason: str = ""
    """Of `held`, and of `idle` after it ran."""
    hold_code: int = 0
    removed_by: str = ""
    """Of `removing`."""
    releases: int = 0
    """How often it was released since it ran last."""
    replaces: list[int] = []
    """Members that go when this one runs."""
    replaced: bool = False
    """Another one was ordered in its place."""
    retiring: float = 0.0
    """Since when it is asked to hand over what it holds; 0: it is not."""
    retired: bool = False
    """It holds nothing that would be lost."""
    ending: bool = False
    """Its job is to be removed."""

    @property
    def stays(self) -> bool:
        """Whether it counts among those that are wanted."""
        return not (self.ending or self.retiring or self.replaced or self.status == "removing")

    def changed(self, change: MemberChange, at: float) -> "Member":
        """After what a frame of the schedd says of it; it is not gone."""
        begins = change.status == "running"
        return msgspec.structs.replace(
            self,
            status=change.status,
            since=at,
            reason=change.reason,
            hold_code=change.code,
            removed_by=change.removed_by,
            started=at if begins else self.started,
            site=change.site or self.site,
            machine=change.machine or self.machine,
            releases=0 if begins else self.releases,
            retired=self.retired if begins or change.status != "idle" else False,
        )
