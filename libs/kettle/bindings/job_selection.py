"""From what HTCondor's calls take for jobs to a selection."""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from kettle import classad
from kettle.bindings.ads import ClassAd
from kettle.bindings.errors import ClassAdParseError, HTCondorValueError
from kettle.bindings.expressions import ExprTree
from kettle.client import Select
from kettle_wire.jobs import JobId

JobSpec: TypeAlias = "list[str] | list[int] | str | ExprTree | int | bool"
Constraint: TypeAlias = "str | ExprTree | bool | None"

_ID: Final = re.compile(r"\s*(\d+)(?:\.(\d+))?\s*")


def constraint_of(constraint: Constraint) -> str:
    """
    An expression as it is sent; empty: everything.

    Raises:
        ClassAdParseError: it is none.
    """
    match constraint:
        case None | True:
            return ""
        case ExprTree():
            return repr(constraint)
        case str():
            text = constraint.strip()
            try:
                return classad.unparse(classad.parse(text)) if text else ""
            except classad.ClassAdParseError as error:
                raise ClassAdParseError(f"this constraint is no expression: {error}") from error
        case _:
            return "false"


def selection(spec: Any) -> Select:
    """The jobs that a job_spec means: `C.P`, a cluster, a list of these, or a constraint."""
    match spec:
        case bool() | None | ExprTree():
            return Select(constraint=constraint_of(spec))
        case int():
            return Select(clusters=[spec])
        case str():
            return _named([spec]) if _ID.fullmatch(spec) else Select(constraint=constraint_of(spec))
        case ClassAd():
            return Select(jobs=[JobId(int(spec["ClusterId"]), int(spec["ProcId"]))])
        case Iterable():
            return _named(list(spec))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise TypeError("job_spec must be a string, a list of job ids, or an ExprTree")


def _named(specs: list[Any]) -> Select:
    jobs: list[JobId] = []
    clusters: list[int] = []
    for spec in specs:
        found = _ID.fullmatch(str(spec))
        if found is None:
            raise HTCondorValueError(f"'{spec}' is no id of a job: write CLUSTER.PROC or CLUSTER")
        if found[2] is None:
            clusters.append(int(found[1]))
        else:
            jobs.append(JobId(int(found[1]), int(found[2])))
    if not specs:
        return Select(constraint="false")
    return Select(jobs=jobs, clusters=clusters)
