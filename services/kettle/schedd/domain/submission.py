"""Whether a submission may enter the queue."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from kettle.classad import ClassAdError, parse
from kettle.schedd.domain.universes import CARRIED_OUT
from kettle.wire.ads import Ad, Expr, Scalar

SET_BY_SCHEDD: Final = frozenset(
    name.lower()
    for name in ("ClusterId", "ProcId", "Owner", "User", "QDate", "GlobalJobId", "JobStatus", "MyType")
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
JOB_BYTES: Final = 256 * 1024
"""A job ad travels in many messages, and with other ads in one."""
_encode = msgspec.msgpack.Encoder().encode


class Unacceptable(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """Why a submission is refused, in one sentence."""


def check(ad: Ad, columns: list[str], rows: list[list[Scalar]], *, limit: int) -> None:
    """Raise `Unacceptable` for what must not be recorded."""
    if not rows:
        raise Unacceptable("the submission has no jobs: the queue statement yields no items")
    if len(rows) > limit:
        raise Unacceptable(
            f"the submission has {len(rows)} jobs, but at most {limit} may be submitted at once"
        )
    if any(len(row) != len(columns) for row in rows):
        raise Unacceptable(
            f"a row of the submission does not have {len(columns)} values, one for each column"
        )
    if len({name.lower() for name in columns}) != len(columns):
        raise Unacceptable("a column stands twice in the submission")
    if (size := len(_encode(ad)) + max(len(_encode(row)) for row in rows)) > JOB_BYTES:
        raise Unacceptable(
            f"the ad of a job would take {size:,} bytes, and at most {JOB_BYTES:,} are allowed"
        )
    _names((*ad, *columns))
    _expressions(ad.values())
    for row in rows:
        _expressions(row)
    if not isinstance(ad.get("Cmd", ""), str) or not (ad.get("Cmd") or "Cmd" in columns):
        raise Unacceptable("the submission names no executable (attribute Cmd)")
    _universes([ad["JobUniverse"]] if "JobUniverse" in ad else [])
    if "JobUniverse" in columns:
        _universes(row[columns.index("JobUniverse")] for row in rows)


def _universes(values: Iterable[Scalar]) -> None:
    if any(type(value) is not int or value not in CARRIED_OUT for value in values):
        raise Unacceptable(
            "only jobs of the vanilla, local and scheduler universes (JobUniverse 5, 12 and 7) can be run here"
        )


def _names(names: Iterable[str]) -> None:
    for name in names:
        if not _NAME.match(name):
            raise Unacceptable(f"'{name}' is not the name of an attribute")
        if name.lower() in SET_BY_SCHEDD:
            raise Unacceptable(f"the attribute {name} is set by the schedd, not by a submission")


def _expressions(values: Iterable[Scalar]) -> None:
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise Unacceptable("a value has a NUL in it, which no file, argument or variable can have")
        if isinstance(value, float) and not math.isfinite(value):
            raise Unacceptable("a value is no finite number")
        if isinstance(value, Expr) and (complaint := _complaint(value.expr)):
            raise Unacceptable(f"the expression '{value.expr}' cannot be read: {complaint}")


@lru_cache(maxsize=4096)
def _complaint(text: str) -> str:
    try:
        parse(text)
    except ClassAdError as error:
        return str(error)
    return ""
