"""
Many submissions in one command, for programs that make clusters by the hundred: the nodes of a DAG, or what a portal passes on.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.queue import Submit, Submitted
from kettle_wire.endpoint import Caller, Endpoint, Refusal, Repeat

MOST_TOGETHER: Final = 500
"""Submissions of one command."""


class SubmitMany(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Each of them is what it would be alone, with an id of its own by which a repeat is known; they are recorded together.
    """

    submissions: Annotated[list[Submit], msgspec.Meta(min_length=1, max_length=MOST_TOGETHER)]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one: exactly one of the two."""

    submitted: Submitted | None = None
    refusal: Refusal | None = None
    """Nothing of it was recorded, and the others are as if it had not been there."""


class ManySubmitted(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the command."""

    outcomes: list[Outcome]


SUBMIT_MANY: Final = Endpoint(
    "schedd",
    "submit_many",
    SubmitMany,
    ManySubmitted,
    callers=(Caller.USER,),
    repeat=Repeat.HARMLESS,
)


SUBMIT_MANY_FROM_JOB: Final = Endpoint(
    "schedd",
    "submit_many_from_job",
    SubmitMany,
    ManySubmitted,
    callers=(Caller.USER,),
    repeat=Repeat.HARMLESS,
)
"""`submit_many` for the token of a running job: each of them is what it would be to `submit_from_job`."""
