"""What comes in paths, queries and bodies, as the structs that a route declares."""

import difflib
import re
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, datetime
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Protocol, TypeVar, get_args, get_origin

import msgspec
from aiohttp import hdrs, web

from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.type_refusals import misfit
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route

LARGEST: Final = 8 << 20
"""Bytes of a body."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")

Wanted = TypeVar("Wanted", bound=msgspec.Struct)


class Declared(Protocol):
    """What says which parameters it takes."""

    @property
    def parameters(self) -> type[msgspec.Struct]:
        """Their names and types."""
        ...


def parameters_of(route: Declared, request: web.Request) -> msgspec.Struct:
    """The parameters in path and query; raises RequestRefused."""
    lists = _lists(route.parameters)
    given: dict[str, Any] = dict(request.match_info)
    for name in request.query:
        if name in request.match_info or name not in lists:
            raise _unknown(name, [each for each in lists if each not in request.match_info])
        texts = request.query.getall(name)
        if lists[name]:
            given[name] = [each for text in texts for each in text.split(",") if each]
            if not given[name]:
                raise refused_field(
                    f"/query/{name}", f"the parameter {name} names nothing: leave it out if you mean all"
                )
        elif len(texts) > 1:
            raise refused_field(f"/query/{name}", f"the parameter {name} comes twice")
        else:
            given[name] = (
                {"1": True, "0": False}.get(texts[0], texts[0]) if _is_flag(route, name) else texts[0]
            )
    return given_parameters(route, given, dict.fromkeys(request.match_info, "path"))


def given_parameters(
    route: Declared, given: Mapping[str, Any], places: Mapping[str, str] = MappingProxyType({})
) -> msgspec.Struct:
    """
    The parameters of a route as they were given by their names; raises RequestRefused. `places`: those that were not in the query.
    """
    for name in _moments(route.parameters) & given.keys():
        _require_date(name, str(given[name]))
    try:
        read = msgspec.convert(given, route.parameters, strict=False)
    except msgspec.ValidationError as error:
        raise _refused(error, places, route.parameters) from error
    for name, value in msgspec.structs.asdict(read).items():
        if isinstance(value, datetime):
            _require_calendar(name, value)
    return read


async def fields_of(kind: type[Wanted], request: web.Request) -> Wanted:
    """The fields of a form that was sent, without those that were left empty; raises RequestRefused."""
    lists = _lists(kind)
    given: dict[str, Any] = {}
    for name, value in (await request.post()).items():
        if not isinstance(value, str):
            raise refused_field(f"/body/{name}", f"the field {name} is a file", code=ProblemCode.BODY_INVALID)
        if name not in lists or not value:
            continue
        if lists[name]:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        found = misfit(error, kind, texts=True)
        raise refused_field(
            f"/body{found.pointer}",
            f"the field {found.name} {found.says}" if found.name else f"the form {found.says}",
            code=ProblemCode.BODY_INVALID,
            status=422,
        ) from error


def _require_date(name: str, text: str) -> None:
    """Raises RequestRefused for a bare number, which could be seconds or a year."""
    if not _DATE.match(text):
        raise refused_field(
            f"/query/{name}", f"the parameter {name} has to be a time as in 2026-11-25T14:00:00Z"
        )


def _require_calendar(name: str, moment: datetime) -> None:
    """
    Raises RequestRefused for a time that has no date in some zone, or around which a span of time would have none.
    """
    if not MINYEAR < moment.year < MAXYEAR:
        raise refused_field(
            f"/query/{name}",
            f"the parameter {name} cannot be used: no calendar has that time, a year before and a year after it",
        )


def require_unpacked(request: web.Request) -> None:
    """
    Raises RequestRefused for a body that is packed: what is passed on stays packed, so that we do not unpack any.
    """
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise RequestRefused(
            415,
            ProblemCode.BODY_TYPE,
            "a body must not be packed: send it without the header Content-Encoding",
        )


async def body_of(route: Route, request: web.Request) -> Any:
    """
    The body: a struct, or the text where the route takes one; None if it has none. Raises RequestRefused.
    """
    if route.body is None:
        return None
    if request.content_type == "text/plain" and route.text_body:
        try:
            return (await request.read()).decode()
        except UnicodeDecodeError as error:
            raise refused_field(
                "/body", "the body is no text in UTF-8", code=ProblemCode.BODY_INVALID
            ) from error
    if request.content_type != "application/json":
        takes = "application/json or text/plain" if route.text_body else "application/json"
        raise RequestRefused(
            415, ProblemCode.BODY_TYPE, f"the body has to be {takes}; say so in the header Content-Type"
        )
    try:
        return msgspec.json.decode(await request.read(), type=route.body)
    except msgspec.ValidationError as error:
        found = misfit(error, route.body)
        where = f"the field {found.pointer} of the body" if found.pointer else "the body"
        raise refused_field(
            f"/body{found.pointer}", f"{where} {found.says}", code=ProblemCode.BODY_INVALID, status=422
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused_field(
            "/body", f"the body is no JSON: {error}", code=ProblemCode.BODY_INVALID
        ) from error


@cache
def _lists(kind: type[msgspec.Struct]) -> Mapping[str, bool]:
    """By name of the parameter, whether it is a list."""
    return {
        field.encode_name: get_origin(_bare(field.type)) is list for field in msgspec.structs.fields(kind)
    }


def _bare(kind: Any) -> Any:
    """A type without what is said about it."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


@cache
def _moments(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters that are times."""
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if any(_bare(part) is datetime for part in (field.type, *get_args(field.type)))
    )


@cache
def _flags(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if field.type is bool)


def _is_flag(route: Declared, name: str) -> bool:
    return name in _flags(route.parameters)


def _unknown(name: str, known: list[str]) -> RequestRefused:
    near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    hint = f"; the nearest is {near[0]}" if near else ""
    shown = ascii(name[:100])[1:-1]
    return refused_field(
        f"/query/{shown}", f"there is no parameter {shown}{hint}", code=ProblemCode.PARAMETER_UNKNOWN
    )


def _refused(
    error: msgspec.ValidationError, places: Mapping[str, str], kind: type[msgspec.Struct]
) -> RequestRefused:
    found = misfit(error, kind, texts=True)
    sentence = f"the parameter {found.name} {found.says}"
    return refused_field(f"/{places.get(found.name, 'query')}{found.pointer}", sentence)
