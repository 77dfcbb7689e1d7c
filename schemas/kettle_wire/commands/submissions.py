"""
Many submissions in one command, for programs that make clusters by the hundred: the nodes of a DAG, or what a portal passes on.
"""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Submit, Submitted
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Refusal, Repeat

MOST_TOGETHER: Final = 500
"""Submissions of one command."""


class SubmitAlike(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clusters of one job each: that of `ids[i]` is `ad` plus `columns[j] = rows[i][j]`."""

    ids: Annotated[list[CommandId], msgspec.Meta(min_length=1, max_length=MOST_TOGETHER)]
    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    """As many as there are ids, each with as many values as there are columns."""

    def __post_init__(self) -> None:
        """Raises ValueError: one has no id, or not a value for each column."""
        if len(self.ids) != len(self.rows):
            raise ValueError(f"{len(self.ids)} ids for {len(self.rows)} submissions")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a row has not as many values as there are columns")

    def some(self, places: Sequence[int]) -> "SubmitAlike":
        """Some of them, by their places."""
        if len(places) == len(self.ids):
            return self
        ids, rows = [self.ids[place] for place in places], [self.rows[place] for place in places]
        return SubmitAlike(ids=ids, ad=self.ad, columns=self.columns, rows=rows)

    def one(self, place: int) -> Submit:
        """One of them, as it would be alone."""
        own = dict(zip(self.columns, self.rows[place], strict=True))
        return Submit(id=self.ids[place], ad={**self.ad, **own}, columns=[], rows=[[]])


class SubmitMany(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """
    Each of them is what it would be alone, with an id of its own by which a repeat is known; they are recorded together.
    """

    submissions: Annotated[list[Submit], msgspec.Meta(max_length=MOST_TOGETHER)] = []
    alike: Annotated[list[SubmitAlike], msgspec.Meta(max_length=MOST_TOGETHER)] = []
    """Those that have most in common, which is said once."""

    def __post_init__(self) -> None:
        """Raises ValueError: there are none, or too many."""
        count = len(self.submissions) + sum(len(each.ids) for each in self.alike)
        if not 1 <= count <= MOST_TOGETHER:
            raise ValueError(f"one command has 1 to {MOST_TOGETHER} submissions, and this one {count}")


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one: exactly one of the two."""

    submitted: Submitted | None = None
    refusal: Refusal | None = None
    """Nothing of it was recorded, and the others are as if it had not been there."""


class ManySubmitted(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the command: first those of `submissions`, then those of `alike`."""

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
