"""
Which jobs a form is about: those that are ticked, or all that the filters of a list are true of.

Pure.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from kettle_services.gateway.rest.job_rows import NUMBERS
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.jobs import Filter, JobSelection, State
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Moment

Action = Literal["hold", "release", "remove", "vacate", "suspend", "continue"]


class JobsForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done to which jobs."""

    action: Action
    ids: list[str] = []
    """Of jobs that are ticked; one field may have several, with commas between them."""
    all: bool = False
    """Not those, but all that the fields below are true of."""
    state: str = ""
    owner: str = ""
    schedd: str = ""
    cluster: str = ""
    since: Moment | None = None
    until: Moment | None = None
    filter: Filter = ""
    reason: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    expect: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many were shown to who confirms it."""
    confirmed: bool = False
    back: Annotated[
        str, msgspec.Meta(max_length=4096, pattern=r"^(/jobs(/[^/?#\\\x00-\x20]+)?(\?[^#\x00-\x20]*)?)?$")
    ] = ""
    """The address, below the prefix, of the page where it was sent, to which it leads back."""


class _Lists(msgspec.Struct, frozen=True):
    state: list[State]
    owner: list[Name]
    schedd: list[Name]
    cluster: list[Number]


def selection(form: JobsForm, own: str) -> JobSelection:
    """
    These jobs as the interface takes them; `own`: who asks, whose jobs a filter is about if it names nobody. Raises
    RequestRefused.
    """
    if not form.all:
        ids = [each for field in form.ids for each in field.split(",") if each]
        if not ids:
            raise refused_field(
                "/body/ids", "no job is ticked: tick some, or choose all that match", status=422
            )
        return JobSelection(ids=ids, expect=form.expect, reason=form.reason)
    try:
        lists = msgspec.convert(
            {
                name: [each for each in getattr(form, name).split(",") if each]
                for name in _Lists.__struct_fields__
            },
            _Lists,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise refused_field("/body", f"the filters cannot be used: {error}", status=422) from error
    if len(lists.schedd) > 1:
        raise RequestRefused(
            422,
            ProblemCode.BODY_INVALID,
            "something can be done to all jobs of one access point at once, and not of several: filter by one",
        )
    parts = [
        _any("JobStatus", [NUMBERS[state] for state in lists.state]),
        _any("ClusterId", lists.cluster),
        f"QDate >= {int(form.since.timestamp())}" if form.since else "",
        f"QDate < {int(form.until.timestamp())}" if form.until else "",
        f"({form.filter})" if form.filter else "",
    ]
    return JobSelection(
        filter=" && ".join(part for part in parts if part) or "true",
        owner=lists.owner or [own],
        schedd=lists.schedd[0] if lists.schedd else "",
        expect=form.expect,
        reason=form.reason,
    )


def _any(name: str, values: Sequence[int]) -> str:
    said = " || ".join(f"{name} == {value}" for value in values)
    return f"({said})" if said else ""
