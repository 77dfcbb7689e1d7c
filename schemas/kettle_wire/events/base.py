"""What all events share."""

from abc import abstractmethod

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """A fact: past tense, immutable. Its tag `noun.verb/N` fixes its meaning, which never changes."""


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
        Convert to an event of the next newer type.

        It is a function of the fields alone: every reader of the log gets the same result at any time. The annotation
        names the newer type, which may itself be superseded.
        """
        raise NotImplementedError
