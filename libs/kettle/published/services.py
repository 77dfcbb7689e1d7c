"""
What a job publishes: `services = dask:8786/tcp, dashboard:8787/http` in its description, `Services` in its ad. Pure.

    tcp          bytes, as they are
    http         HTTP and WebSockets of a server that knows nothing of the path under which people see it
    http-prefix  the same of a server that expects the whole path, /jobs/ID/NAME/...
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec

from kettle_wire.session_attributes import SERVICES

ATTRIBUTE: Final = SERVICES
"""Of a job: what it publishes, as `services_text` writes it."""
MOST: Final = 16
"""Services of one job."""
LONGEST: Final = 1024
"""Characters of the whole list."""
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")

ServiceKind: TypeAlias = Literal["tcp", "http", "http-prefix"]
_KINDS: Final[tuple[ServiceKind, ...]] = get_args(ServiceKind)
_PORT: Final = re.compile(r"[0-9]{1,5}")
_FORM: Final = "name:port/kind, as in web:8080/http"


class ServiceError(ValueError):
    """A list of services, or one of them, says something else than services; the text is one sentence."""


class Service(msgspec.Struct, frozen=True):
    """A port of a job that people reach through the gateway."""

    name: str
    port: int
    """On which a process of the job listens."""
    kind: ServiceKind

    def __str__(self) -> str:
        return f"{self.name}:{self.port}/{self.kind}"


def parse_service(text: str) -> Service:
    """One service; raises ServiceError."""
    word = text.strip()
    name, colon, rest = word.partition(":")
    port, slash, kind = rest.partition("/")
    if not colon or not slash:
        raise ServiceError(f"{_shown(word)} is no service: write {_FORM}")
    if not NAME.fullmatch(name):
        raise ServiceError(
            f"{_shown(name)} cannot be the name of a service: names have 1 to 32 small letters, digits and hyphens, and begin with a letter"
        )
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise ServiceError(f"{_shown(port)} cannot be the port of the service {name}: ports are 1 to 65535")
    if kind.lower() not in _KINDS:
        raise ServiceError(
            f"{_shown(kind)} is no kind of service, which {name} says to be: kinds are {', '.join(_KINDS)}"
        )
    return Service(name, int(port), cast("ServiceKind", kind.lower()))


def parse_services(text: str) -> tuple[Service, ...]:
    """
    What is listed with commas between; none for an empty text.

    Raises ServiceError: what is wrong, and what to write.
    """
    if len(text) > LONGEST:
        raise ServiceError(f"the list of services has {len(text)} characters, and at most {LONGEST} are read")
    if not text.strip():
        return ()
    services = tuple(parse_service(word) for word in text.split(","))
    check_services(services)
    return services


def check_services(services: Sequence[Service]) -> None:
    """Raises ServiceError: together they are no list of services of one job."""
    if len(services) > MOST:
        raise ServiceError(f"a job publishes at most {MOST} services, and these are {len(services)}")
    seen: set[str] = set()
    for each in services:
        if each.name in seen:
            raise ServiceError(f"the service {each.name} is there twice: each needs a name of its own")
        seen.add(each.name)


def services_text(services: Sequence[Service]) -> str:
    """The list as the attribute has it, in the order in which it was written."""
    return ", ".join(str(each) for each in services)


def with_service(services: Sequence[Service], new: Service) -> tuple[Service, ...]:
    """The list with one more, in the place of that of the same name; raises ServiceError."""
    rest = [each for each in services if each.name != new.name]
    changed = (*rest, new)
    check_services(changed)
    return changed


def without_service(services: Sequence[Service], name: str) -> tuple[Service, ...]:
    """The list without one; raises ServiceError: it is not in it."""
    rest = tuple(each for each in services if each.name != name)
    if len(rest) == len(services):
        raise ServiceError(f"there is no service {_shown(name)}: {services_text(services) or 'none'}")
    return rest


def _shown(text: str) -> str:
    cut = text if len(text) <= 40 else f"{text[:40]}..."
    return ascii(cut)
