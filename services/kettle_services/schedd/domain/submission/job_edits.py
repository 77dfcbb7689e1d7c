"""Edits of jobs' ads in the queue: whether they are allowed, and what is recorded."""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.jobs.editable_attributes import MOST_ATTRIBUTES, refusal
from kettle_services.schedd.domain.submission import validation
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Scalar
from kettle_wire.events import JobEdited

PRIORITY: Final = "JobPrio"
EDITED_BYTES: Final = 64 * 1024
"""What events may have added to the ad of a job: a quarter of what a submission may be."""
_MOST: Final = (1 << 31) - 1
_encode: Final = msgspec.msgpack.Encoder().encode


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Set these attributes, and add to the job's priority."""

    attributes: Ad
    add_to_priority: int = 0
    by: str


def check(edit: Edit) -> None:
    """Raise `Unacceptable` for what can be done with no job."""
    attributes = edit.attributes
    if not attributes and not edit.add_to_priority:
        raise Unacceptable("say which attribute is to have which value")
    if len(attributes) > MOST_ATTRIBUTES:
        raise Unacceptable(f"at most {MOST_ATTRIBUTES} attributes are set at once, not {len(attributes)}")
    folded: dict[str, str] = {}
    for name in attributes:
        if why := refusal(name):
            raise Unacceptable(why)
        if (other := folded.setdefault(name.lower(), name)) != name:
            raise Unacceptable(f"{name} and {other} are the same attribute: say once what it is to be")
    validation.check_values(attributes)
    for lower, name in folded.items():
        _check_value(lower, name, attributes[name])
    if edit.add_to_priority and PRIORITY.lower() in folded:
        raise Unacceptable(f"{PRIORITY} is either set or changed by a number, not both")
    if abs(edit.add_to_priority) > _MOST:
        raise Unacceptable(f"a priority is a whole number from {-_MOST} to {_MOST}")
    if len(_encode(attributes)) > EDITED_BYTES:
        raise Unacceptable(f"the values take more than {EDITED_BYTES:,} bytes")


def _check_value(folded: str, name: str, value: Scalar) -> None:
    if folded == PRIORITY.lower() and (type(value) is not int or abs(value) > _MOST):
        raise Unacceptable(f"{name} is a whole number from {-_MOST} to {_MOST}")
    if folded in {"cmd", "iwd"} and not (isinstance(value, str) and value):
        raise Unacceptable(f"{name} is a path in quotes, as in '{name}=\"/bin/true\"'")


def decide(
    edit: Edit, before: Mapping[str, Scalar], known: Mapping[str, str], priority: int, size: int
) -> JobEdited | None:
    """
    What is to be recorded of a job; None: it has these values already. Raises Unacceptable for what this job cannot take.

    `before`: its ad; `known`: how this spells its attributes, by their names in lower case; `size`: bytes that events
    have added to it.
    """
    wanted = {known.get(name.lower(), name): value for name, value in edit.attributes.items()}
    if edit.add_to_priority:
        wanted[PRIORITY] = max(-_MOST, min(_MOST, priority + edit.add_to_priority))
    new = {name: value for name, value in wanted.items() if not _same(before.get(name), value)}
    if not new:
        return None
    if size + len(_encode(new)) > EDITED_BYTES:
        raise Unacceptable(f"what was set in its ad would take more than {EDITED_BYTES:,} bytes")
    return JobEdited(attributes=wanted, by=edit.by)


def _same(one: Scalar | None, other: Scalar) -> bool:
    return type(one) is type(other) and one == other
