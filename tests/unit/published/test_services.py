"""What a description says of services, and what is wrong with it."""

import pytest

from kettle.published.services import (
    Service,
    ServiceError,
    parse_services,
    services_text,
    with_service,
    without_service,
)
from kettle.published.sharing import Sharing, parse_sharing, sharing_text

WEB = Service("web", 8080, "http")
DASK = Service("dask", 8786, "tcp")


def test_services_are_read_and_written() -> None:
    """Blanks and the case of kinds do not matter; what is written is read as the same."""
    found = parse_services(" web:8080/HTTP,dask : 8786/tcp".replace("dask : ", "dask:"))
    assert (WEB, DASK) == found
    assert services_text(found) == "web:8080/http, dask:8786/tcp"
    assert parse_services(services_text(found)) == found
    assert parse_services("  ") == ()
    assert parse_services("nb:1/http-prefix") == (Service("nb", 1, "http-prefix"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("web", "'web' is no service: write name:port/kind, as in web:8080/http"),
        ("web:8080", "is no service"),
        ("Web:8080/http", "'Web' cannot be the name of a service"),
        ("8:8080/http", "cannot be the name"),
        ("a" * 33 + ":1/tcp", "cannot be the name"),
        ("web:0/http", "'0' cannot be the port of the service web: ports are 1 to 65535"),
        ("web:65536/http", "ports are 1 to 65535"),
        ("web:+80/http", "ports are 1 to 65535"),
        ("web:80/udp", "'udp' is no kind of service, which web says to be: kinds are tcp, http, http-prefix"),
        ("web:80/http,", "'' is no service"),
        ("web:80/http, web:81/http", "the service web is there twice: each needs a name of its own"),
        (", ".join(f"s{n}:{n + 1}/tcp" for n in range(17)), "at most 16 services, and these are 17"),
        ("x" * 1025, "at most 1024 are read"),
        ("w\x1b[31m:80/http", r"\x1b[31m"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    """Each sentence says what, and what to write, and no terminal obeys it."""
    with pytest.raises(ServiceError) as error:
        parse_services(text)
    assert said in str(error.value)
    assert str(error.value).isprintable()


def test_a_running_job_changes_its_list() -> None:
    """A service of the same name is replaced; there are never more than a description may have."""
    moved = Service("web", 9090, "http")
    assert with_service((WEB, DASK), moved) == (DASK, moved)
    assert without_service((WEB, DASK), "web") == (DASK,)
    with pytest.raises(ServiceError, match="there is no service 'x'"):
        without_service((WEB,), "x")
    full = tuple(Service(f"s{n}", n + 1, "tcp") for n in range(16))
    with pytest.raises(ServiceError, match="at most 16"):
        with_service(full, WEB)


def test_sharing_is_read_and_written() -> None:
    """People and groups, each once."""
    found = parse_sharing("alice, group:/atlas/prod,alice, bob@site")
    assert found == Sharing(people=("alice", "bob@site"), groups=("/atlas/prod",))
    assert sharing_text(found) == "alice, bob@site, group:/atlas/prod"
    assert parse_sharing("") == Sharing()


@pytest.mark.parametrize(
    "text", ["*", "alice,,bob", "group:", "a b", "group:a b", "-x", ", ".join("abc" * 34)]
)
def test_nobody_is_shared_with_by_mistake(text: str) -> None:
    """What is no name is refused: there is no way to say everybody."""
    with pytest.raises(ServiceError):
        parse_sharing(text)
