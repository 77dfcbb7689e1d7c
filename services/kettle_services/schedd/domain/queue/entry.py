"""What the queue keeps of each of its jobs; jobs that have been through the same share it."""

from typing import Final

import msgspec

from kettle_services.schedd.domain.jobs.job import Job
from kettle_wire.ads import Ad
from kettle_wire.events import JobEdited, JobEvent, JobRouted, JobUnrouted


class RoutedChanges(msgspec.Struct, frozen=True, gc=False):
    """What a route has changed in the ad of a job that has it, so that this can be taken back."""

    removed: tuple[str, ...]
    """These are not in the ad."""
    added: tuple[str, ...]
    """These were not in it before."""
    before: Ad
    """What it said before of the others that the route has set or removed."""

    def is_of_route(self, name: str) -> bool:
        """Whether the route has set or removed an attribute."""
        folded = name.lower()
        return any(folded == each.lower() for each in (*self.removed, *self.added, *self.before))


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """A job in the queue: its state, and the attributes that its events have set since submission."""

    job: Job = Job()
    changed: Ad = {}
    by_hand: tuple[str, ...] = ()
    """The attributes among them that a user or a route has set."""
    routed: RoutedChanges | None = None
    """Of a job that has a route."""

    @property
    def edited(self) -> Ad:
        """What somebody has set, as it is now."""
        return {name: self.changed[name] for name in self.by_hand}


_SETTING: Final = frozenset({JobEdited, JobRouted, JobUnrouted})


def after(before: QueuedJob, job: Job, changed: Ad, event: JobEvent) -> QueuedJob:
    """
    What is kept after an event, which makes this state and these attributes.

    What is set again by hand is not away by a route any more, and is what is gone back to without the route.
    """
    hand, routed = before.by_hand, before.routed
    if type(event) not in _SETTING:
        return QueuedJob(job, changed, hand, routed)
    match event:
        case JobRouted(attributes=attributes, removed=removed):
            hand = tuple(sorted({*hand, *attributes, *removed}))
            routed = RoutedChanges(tuple(removed), tuple(event.added), event.before)
        case JobUnrouted(attributes=attributes, removed=removed):
            hand, routed = tuple(sorted({*hand, *attributes} - {*removed})), None
        case JobEdited(attributes=attributes):
            hand = tuple(sorted({*hand, *attributes}))
            if routed is not None:
                routed = RoutedChanges(
                    tuple(name for name in routed.removed if name not in attributes),
                    tuple(name for name in routed.added if name not in attributes),
                    {**routed.before, **attributes},
                )
        case _:
            pass
    return QueuedJob(job, changed, hand, routed)


FRESH: Final = QueuedJob()
"""Of jobs to which nothing has happened yet."""
