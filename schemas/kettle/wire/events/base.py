"""What all events share."""

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """A fact: past tense, immutable, its meaning fixed for ever by its tag `noun.verb/N`."""
