"""Documents of jobs, read: all faults at once, or the job in the form of today."""

from decimal import Decimal
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from kettle.prominence.faults import DocumentRefused, Fault, require_none
from kettle.prominence.job_rules import PLACES, RULES
from kettle.prominence.shapes import Shapes
from kettle_wire.prominence.job import Artifact, Job

_SHAPES: Final = Shapes(PLACES, RULES)


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(float_hook=Decimal)


@cache
def _encoder() -> msgspec.json.Encoder:
    return msgspec.json.Encoder(decimal_format="number")


def parsed(text: bytes | str) -> object:
    """
    The JSON of a document; numbers that are not whole are as exact as they are written.

    Raises DocumentRefused: it is no JSON.
    """
    try:
        return cast("object", _decoder().decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentRefused(
            [Fault("", f"the document is no JSON: {str(error) or 'it is too deep'}")]
        ) from error


def encoded(value: object) -> bytes:
    """The JSON of a document, or of a part of one; numbers are what they were read from."""
    return _encoder().encode(value)


def read_job(text: bytes | str) -> Job:
    """
    The job that a document describes, without older forms.

    Raises DocumentRefused with every fault.
    """
    document = parsed(text)
    require_none(_SHAPES.faults(document, Job))
    return current(msgspec.convert(document, Job))


def current(job: Job) -> Job:
    """The job, its policies where they are today."""
    policies = job.policies
    return replace(
        job,
        policies=replace(
            policies,
            maximum_retries=policies.maximum_retries or job.number_of_retries or None,
            preemptible=policies.preemptible or job.preemptible,
            ignore_task_failures=policies.ignore_task_failures or policies.ignore_task_tailures,
            ignore_task_tailures=False,
        ),
        number_of_retries=0,
        preemptible=False,
    )


def artifact_of(one: Artifact | str) -> Artifact:
    """An artifact of a job, whose older form is its URL alone."""
    return Artifact(url=one) if isinstance(one, str) else one
