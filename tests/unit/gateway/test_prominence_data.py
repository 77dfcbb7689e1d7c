"""Which address permits what, and whose area a path is in."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import Principal
from kettle.prominence.addresses import Place, file_name, signature
from kettle_services.gateway.prominence.application import PREFIX, as_errors
from kettle_services.gateway.prominence.data import Data, group_of, place_of
from kettle_services.gateway.prominence.job_lists import Written
from kettle_services.gateway.prominence.object_directory import Limits, ObjectDirectory
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.prominence.submitting import Submitting
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused

SIGNER = Signer(bytes(32), "https://pool.example.org")
PLACE = Place("uploads", "ada", "results of/1.txt")


def query_of(url: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}


def person(*groups: str, said: tuple[str, ...] = ()) -> Person:
    return Person(
        Principal(method="SCITOKENS", text="ada", groups=said),
        Mapped(owner="ada", domain="pool", groups=groups),
    )


def test_an_address_permits_what_it_was_made_for() -> None:
    """It has the place, the method, the end and the digest, and permits until its end."""
    query = query_of(SIGNER.url("POST", PLACE, expires=100.0, sha256="ab" * 32))
    assert "ab" * 32 == SIGNER.permitted("POST", PLACE, query, now=99.0)
    with pytest.raises(RequestRefused, match="is over"):
        SIGNER.permitted("POST", PLACE, query, now=100.0)


@given(
    st.sampled_from(["GET", "PUT", "POST"]),
    st.builds(Place, st.sampled_from(["uploads", "groups"]), st.text(), st.text()),
    st.dictionaries(st.sampled_from(["expires", "sha256", "signature"]), st.text(max_size=80)),
)
def test_a_changed_address_permits_nothing(method: str, place: Place, changed: dict[str, str]) -> None:
    """Whatever somebody changes about it, it is refused, and nothing else happens."""
    original = query_of(SIGNER.url("GET", PLACE, expires=100.0))
    query = {**original, **changed}
    if (method, place, query) == ("GET", PLACE, original):
        return
    with pytest.raises(RequestRefused):
        SIGNER.permitted(method, place, query, now=1.0)


def test_a_permit_is_for_what_it_says() -> None:
    """
    Addresses that are made with it are good below its beginning, for its method, area and owner, and until its end.
    """
    permit = SIGNER.permit("PUT", "scratch", "ada", within="secret/", expires=100.0)
    made = Place("scratch", "ada", "secret/1/results")
    query = query_of(permit.url(made.name))
    assert "" == SIGNER.permitted("PUT", made, query, now=99.0)
    with pytest.raises(RequestRefused, match="is over"):
        SIGNER.permitted("PUT", made, query, now=100.0)
    others: tuple[tuple[str, Place, dict[str, str]], ...] = (
        ("GET", made, {}),
        ("PUT", Place("uploads", "ada", made.name), {}),
        ("PUT", Place("scratch", "bob", made.name), {}),
        ("PUT", Place("scratch", "ada", "secret/2/results"), {}),
        ("PUT", made, {"within": ""}),
        ("PUT", made, {"expires": "1000"}),
        ("PUT", made, {"sha256": "0" * 64}),
    )
    for method, place, changed in others:
        with pytest.raises(RequestRefused, match="not one that was given"):
            SIGNER.permitted(method, place, query | changed, now=1.0)


def test_the_holder_of_a_permit_makes_no_address_beside_it() -> None:
    """Whatever is signed with its key is good for names that begin as it says, and for no others."""
    permit = SIGNER.permit("PUT", "scratch", "ada", within="secret/", expires=100.0)
    place = Place("scratch", "ada", "other/results")
    forged = {"of": "ada", "expires": "100", "signature": signature(permit.key, "PUT", place, 100)}
    for within in ({"within": "secret/"}, {"within": ""}, {}):
        with pytest.raises(RequestRefused, match="not one that was given"):
            SIGNER.permitted("PUT", place, forged | within, now=1.0)


def test_no_document_makes_a_permit_for_good() -> None:
    """
    However long a job may take by its document, its files are open to it for a year at most, as are those of groups that its owner has left.
    """
    submitting = Submitting(SIGNER, Written(), documents=None)  # type: ignore[arg-type]  # none is kept here
    found = submitting.permits(person("fusion"), "secret/0", seconds=1e12, now=0.0)
    (group,) = found.groups
    for permit in (found.uploads, group, found.outputs, found.job):
        assert 0 < permit.expires <= 367 * 86400
    assert 86400 + 10 == submitting.permits(person(), "secret/0", seconds=10, now=0.0).job.expires


def test_the_owner_of_a_place_cannot_be_moved_into_its_name() -> None:
    """The group fusion with the file jet/x is another place than the group fusion/jet with the file x."""
    query = query_of(SIGNER.url("GET", Place("groups", "fusion", "jet/x"), expires=100.0))
    with pytest.raises(RequestRefused):
        SIGNER.permitted("GET", Place("groups", "fusion/jet", "x"), query, now=1.0)


@pytest.mark.parametrize(
    "path",
    ["fus/x", "usio/x", "fusion,jet/x", "/fusion/../atom/x", "FUSION/x", "atom/x", "fusionx/x", "jet/x"],
)
def test_a_part_of_a_groups_name_is_no_membership(path: str) -> None:
    """Only the whole name counts: not its beginning, not a piece of the list of groups, no way around."""
    with pytest.raises(RequestRefused, match="Not authorized"):
        place_of(person("fusion", "fusion/jet"), path)


def test_the_longest_group_counts() -> None:
    """What is in the area of a group below another one is not in the other one's."""
    assert Place("groups", "fusion/jet", "x") == place_of(person("/fusion", "/fusion/jet"), "fusion/jet/x")
    assert Place("groups", "fusion", "jet/x") == place_of(person("/fusion"), "fusion/jet/x")
    assert Place("uploads", "ada", "fusion") == place_of(person("fusion"), "fusion")
    assert group_of(person(""), "x") is None


def test_an_issuer_opens_no_areas_that_the_rules_of_the_pool_do_not() -> None:
    """Rules may make other groups of what a token says, so that another issuer's fusion is not this one's."""
    with pytest.raises(RequestRefused, match="Not authorized"):
        place_of(person("guests", said=("fusion",)), "fusion/x")


@given(st.text(min_size=1, max_size=20))
def test_no_name_leads_elsewhere(name: str) -> None:
    """Whatever an object is called, its file is one name in its directory."""
    try:
        made = file_name(name)
    except ValueError:
        return
    assert "/" not in made
    assert "\0" not in made
    assert made not in {".", ".."}


def test_two_names_are_two_files() -> None:
    """Names that differ in one odd character do not meet in one file."""
    names = ["a/b", "a%2Fb", "a_b", "_a", ".", "..", "A", "a", "a ", "a+"]
    assert len(names) == len({file_name(name) for name in names})


async def test_another_object_is_no_smaller_form_of_one(tmp_path: Path) -> None:
    """Who takes compressed answers is sent what was asked for, also beside its name with .gz or .br."""
    objects = ObjectDirectory(tmp_path / "objects", Limits(largest=100, all_of_one=100, kept=1.0))
    wanted = Place("uploads", "ada", "x")
    for name in ("x", "x.gz", "x.br"):
        await objects.put(Place("uploads", "ada", name), _coming(name.encode()), size=None, sha256="")
    path = await objects.where(wanted)
    assert isinstance(path, Path)

    async def send(_request: web.Request) -> web.StreamResponse:
        return web.FileResponse(path)

    application = web.Application()
    application.router.add_get("/", send)
    async with (
        TestClient(TestServer(application)) as client,
        client.get("/", headers={"Accept-Encoding": "gzip, br"}) as answer,
    ):
        assert (b"x", None) == (await answer.read(), answer.headers.get("Content-Encoding"))


async def test_a_form_without_an_end_of_its_parts_is_refused(tmp_path: Path) -> None:
    """What says that it is a form, and not where its parts end, is refused like any other that is none."""
    objects = ObjectDirectory(tmp_path / "objects", Limits(largest=100, all_of_one=100, kept=1.0))
    address = urlsplit(SIGNER.url("POST", PLACE, expires=time.time() + 60, sha256="ab" * 32))
    application = web.Application()
    for route in Data(objects, SIGNER).open_routes():
        application.router.add_route(route.method, PREFIX + route.path, as_errors(route.handler))
    async with (
        TestClient(TestServer(application)) as client,
        client.post(
            f"{address.path}?{address.query}",
            data=b"x",
            headers={"Content-Type": "multipart/form-data"},
        ) as answer,
    ):
        assert 400 == answer.status
        assert "the form cannot be read" in (await answer.json())["error"]


async def test_objects_that_come_together_are_not_more_than_one_may_have(tmp_path: Path) -> None:
    """Each fits alone: the last one that is complete counts those that came to their end before it."""
    objects = ObjectDirectory(tmp_path / "objects", Limits(largest=60, all_of_one=100, kept=1.0))
    begun, gate = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await gate.wait()
        yield b"0" * 60

    second = asyncio.create_task(objects.put(Place("uploads", "ada", "b"), slow(), size=None, sha256=""))
    await begun.wait()
    await objects.put(Place("uploads", "ada", "a"), _coming(b"0" * 60), size=None, sha256="")
    gate.set()
    with pytest.raises(RequestRefused, match="more than 100 bytes"):
        await second
    assert ["a"] == [each.name for each in await objects.list("uploads", "ada")]


async def _coming(data: bytes) -> AsyncIterator[bytes]:
    yield data


def test_a_place_is_a_value() -> None:
    """What is signed of it is all of it."""
    assert {"area", "owner", "name"} == set(msgspec.structs.asdict(PLACE))
