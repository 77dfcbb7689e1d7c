"""What the status of an answer over HTTP means for something that was asked once."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, cast

from kettle_wire.leases import ErrorClass

_CLASSES: Final = {
    HTTPStatus.UNAUTHORIZED: ErrorClass.AUTH,
    HTTPStatus.FORBIDDEN: ErrorClass.AUTH,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ErrorClass.RATE,
    HTTPStatus.TOO_MANY_REQUESTS: ErrorClass.RATE,
    HTTPStatus.REQUEST_TIMEOUT: ErrorClass.TRANSIENT,
    HTTPStatus.CONFLICT: ErrorClass.TRANSIENT,
    HTTPStatus.SERVICE_UNAVAILABLE: ErrorClass.TRANSIENT,
}


def error_of(status: int) -> ErrorClass:
    """The class of a status that says that nothing was done."""
    for known, error in _CLASSES.items():
        if status == known:
            return error
    return ErrorClass.TRANSIENT if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ErrorClass.REQUEST


def is_in_doubt(status: int) -> bool:
    """
    Whether something may have been made although the answer is an error.

    503 is how servers refuse work before they begin it; of every other error of a server, or of a proxy before it, nobody
    knows when it happened.
    """
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.SERVICE_UNAVAILABLE


def seconds_of(retry_after: str | None) -> float:
    """Of a header `Retry-After`; 0: it names none."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0


def part(said: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object within one that came as JSON; empty: there is none."""
    value: object = said.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
