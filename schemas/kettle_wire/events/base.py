"""What all events share."""

from abc import abstractmethod

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """A fact: past tense, immutable, its meaning fixed for ever by its tag `noun.verb/N`."""


class Superseded(Event, frozen=True):
    """
    A type that was published, and is read but not written any more.

        class JobHeldV1(Superseded, frozen=True, tag="job.held/1"):
            ...
            def upcast(self) -> JobHeld: ...
    """

    @abstractmethod
    def upcast(self) -> Event:
        """
        The same fact as its successor says it, one step newer.

        A function of the fields alone: whoever reads the log, and whenever, gets the same.
        The annotation names the successor, which may itself be superseded.
        """
        raise NotImplementedError
