"""What a job's ad asks of a batch system, in the same meaning for all of them."""

import math
import re
import shlex
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.jobs.routed_attributes import OWN_WORDS
from kettle_wire.ads import Expr
from kettle_wire.batch import BatchRequest

_NUMBERS: Final = {
    "cpus": "RequestCpus",
    "memory": "RequestMemory",
    "gpus": "RequestGPUs",
    "wall": "BatchRuntime",
    "nodes": "MachineCount",
}
_WORDS: Final = {"queue": "BatchQueue", "account": "BatchProject"}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERS: Final = re.compile(
    r"LD_|DYLD_|GLIBC_|GCONV_|MALLOC_|BASH_|BASHOPTS$|SHELLOPTS$|PS4$|ENV$|IFS$|PATH$|CDPATH$|HOME$|PYTHON|PERL5|PERLLIB$|RUBY(OPT|LIB)|NODE_"
)
"""Variables by which the loader, a shell or another interpreter does something else than its program says."""
_WHOLE: Final = ("WholeNodes", "WantWholeNode")


class RequestError(ValueError):
    """A request that no batch system can be told; the message is a sentence."""


def request_of(ad: Mapping[str, object]) -> BatchRequest:
    """
    The request of an ad, whose names are in lower case.

    Raises:
        RequestError: it asks for something that cannot be written.
    """
    asked = {field: _number(field, ad.get(name.lower()), name) for field, name in _NUMBERS.items()}
    asked |= {field: ad.get(name.lower()) for field, name in _WORDS.items()}
    asked = {
        field: value for field, value in asked.items() if value is not None and not isinstance(value, Expr)
    }
    asked["whole_node"] = any(ad.get(name.lower()) is True for name in _WHOLE)
    more = ad.get("batchextrasubmitargs")
    if isinstance(more, str) and more.strip():
        try:
            asked["arguments"] = shlex.split(more)
        except ValueError as error:
            raise RequestError(f"BatchExtraSubmitArgs of the job: {error}") from None
    asked["strict"] = ad.get(OWN_WORDS) is True
    if isinstance(extra := ad.get("cerequirements"), str):
        names = [name.strip() for name in extra.split(",") if name.strip()]
        if strange := next((name for name in names if not _VARIABLE.fullmatch(name)), None):
            raise RequestError(f"CERequirements of the job names {strange!r}, which is no attribute")
        if steering := next((name for name in names if _STEERS.match(name)), None):
            raise RequestError(
                f"CERequirements of the job names {steering}, which steers programs and is no requirement"
            )
        asked["extra"] = {name: _shown(ad.get(name.lower())) for name in names}
    try:
        request = msgspec.convert(asked, BatchRequest)
    except msgspec.ValidationError as error:
        raise RequestError(_explained(str(error), asked)) from None
    if "\0" in "".join((*request.arguments, *request.extra.values())):
        raise RequestError("the job asks with an octet 0 in a word, which no command can be told")
    return request


def _number(field: str, value: object, name: str) -> object:
    """Whole and not less than nothing; what is no literal is not given."""
    if value is None or isinstance(value, Expr):
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise RequestError(f"{name} of the job is {value!r}, which is no number")
    if field in {"cpus", "nodes"} and value < 1:
        raise RequestError(f"{name} of the job is {value}, which is less than one")
    return max(0, math.ceil(value))


def _shown(value: object) -> str:
    return "" if value is None else str(value)


def _explained(error: str, asked: Mapping[str, object]) -> str:
    field = error.rpartition("$.")[2].strip("`")
    name = {**_NUMBERS, **_WORDS}.get(field, field)
    return f"{name} of the job is {asked.get(field)!r}, which no batch system can be told"
