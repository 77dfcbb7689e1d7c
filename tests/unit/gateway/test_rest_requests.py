"""What the REST interface makes of a request before it is answered."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.runtime.authorization import Authorization
from kettle.runtime.people import People
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.rest.application import Answer, Asked, RequestLimits
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.page_tokens import RowPlace, page_token, row_place
from kettle_services.gateway.rest.parameters import parameters_of
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import NotModified, RequestRefused
from kettle_services.gateway.rest.submit_texts import submission_of
from kettle_services.gateway.rest.type_refusals import misfit
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.jobs import LIST_JOBS, GetJob, JobChange, Jobs, JobSelection, ListJobs, Submission
from kettle_wire.rest.route import Route

FILTERS = Filters(KnownAttributes())
ADA = Person(local("ada"), Mapped(owner="ada", domain="pool"))


KEY = {"Idempotency-Key": "k"}


def request(query: str = "", headers: Mapping[str, str] | None = None) -> web.Request:
    return make_mocked_request("GET", f"/v2/jobs{query}", headers=headers or {})


def asked(headers: Mapping[str, str] | None = None, *, body: Any = None, person: Person = ADA) -> Asked:
    return Asked(person, ListJobs(), body, request(headers=headers))


def refused(query: str) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        parameters_of(LIST_JOBS, request(query))
    return caught.value


def test_parameters_are_what_the_route_declares() -> None:
    """Lists have commas, times have zones, and what is absent has its default."""
    read = parameters_of(
        LIST_JOBS, request("?state=idle,held&since=2026-11-25T14:00:00Z&limit=7&owner=a&owner=b")
    )
    assert (
        ListJobs(
            state=["idle", "held"], since=datetime(2026, 11, 25, 14, tzinfo=UTC), limit=7, owner=["a", "b"]
        )
        == read
    )


@pytest.mark.parametrize(
    ("query", "pointer", "said"),
    [
        ("?stat=idle", "/query/stat", "the nearest is state"),
        (
            "?state=idl",
            "/query/state/0",
            "has to be one of completed, held, idle, removed, running, suspended, and is 'idl'",
        ),
        ("?sort=owned", "/query/sort", "one of -attempts, -entered"),
        ("?xyz=1", "/query/xyz", "there is no parameter xyz"),
        ("?since=2026-11-25T14:00:00", "/query/since", "a time with a zone, as in 2026"),
        ("?since=0001-01-01T00:00:00%2B14:00", "/query/since", "no calendar"),
        ("?since=0.5", "/query/since", "a time as in 2026"),
        ("?limit=1001", "/query/limit", "a whole number from 1 to 1,000"),
        ("?limit=1&limit=2", "/query/limit", "twice"),
        ("?cluster=1,x", "/query/cluster/1", "a whole number from 0"),
        ("?fields=", "/query/fields", "names nothing"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(query: str, pointer: str, said: str) -> None:
    """Each refusal points to the parameter, and says what is wrong with it."""
    refusal = refused(query)
    assert (400, [pointer]) == (refusal.status, [each.pointer for each in refusal.errors])
    assert said in str(refusal)


@pytest.mark.parametrize(
    ("value", "kind", "pointer", "says"),
    [
        ({"ad": {}, "rows": [[1], 2]}, Submission, "/rows/1", "has to be a list, and is a whole number"),
        ({"ad": {}, "column": []}, Submission, "/column", "is not known; the nearest is columns"),
        ({"columns": []}, Submission, "/ad", "is missing: it has to be an object"),
        ([], Submission, "", "has to be an object with ad, and is a list"),
        ({"ad": {"Cmd": [1]}}, Submission, "/ad", "has a value that has to be true or false, a whole number"),
        ({"ad": {"Cmd": {"exp": "1"}}}, Submission, "/ad", "has a value whose exp is not known"),
        ({"attributes": {"a b": 1}}, JobChange, "/attributes", "has a name that has to be like RequestMemory"),
        ({"attributes": {}}, JobChange, "/attributes", "has to be an object of 1 to 1,000 values"),
        ({"expect": "x"}, JobSelection, "/expect", "has to be a whole number from 0 on or null, and is text"),
        ({"ids": ["x"]}, JobSelection, "/ids/0", "has to be like 12.0 or 12.0@schedd"),
        ({"reason": "x" * 5000}, JobSelection, "/reason", "has to be text of at most 4,096 characters"),
        ({"owner": ["a\0"]}, JobSelection, "/owner/0", "has to be text of at most 256 characters without a NUL"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_in_words(value: Any, kind: Any, pointer: str, says: str) -> None:
    """
    A body that is not what a route declares is refused with what may stand there, not with names of types.
    """
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    found = misfit(error.value, kind)
    assert (pointer, says) == (found.pointer, found.says[: len(says)])


def types_in(routes: Sequence[Route]) -> Iterator[tuple[Any, bool]]:
    """What routes take: parameters, of which only texts come, and bodies."""
    for route in routes:
        yield route.parameters, True
        if route.body is not None:
            yield route.body, False


def test_there_are_words_for_everything_that_a_route_takes() -> None:
    """Whatever is wrong with a value of a parameter or field, its refusal says what has to stand there."""
    for kind, texts in types_in(ROUTES):
        for field in msgspec.structs.fields(kind):
            wrong: Any = {field.encode_name: b"\0" if texts else object()}
            with pytest.raises(msgspec.ValidationError) as error:
                msgspec.convert(wrong, kind, strict=False)
            said = misfit(error.value, kind, texts=texts)
            assert said.says.startswith("has to be "), (kind, field.name, said)


places = st.builds(
    RowPlace,
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    st.text("schedd.ap", max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
)


@given(places)
def test_a_page_token_says_where_its_page_ended(place: RowPlace) -> None:
    """It is read back as it was, also for another limit, and belongs to no other question."""
    token = page_token(ListJobs(owner=["ada"]), place)
    assert place == row_place(ListJobs(owner=["ada"], limit=1), token)
    with pytest.raises(RequestRefused, match="another question"):
        row_place(ListJobs(owner=["bob"]), token)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_nothing_else_is_a_page_token(text: str) -> None:
    """Whatever somebody invents is refused as what it is."""
    with pytest.raises(RequestRefused, match="page token"):
        row_place(ListJobs(), text)


@given(places, st.sampled_from(["timestamptz", "integer", "bigint", "double precision", "text"]))
def test_a_place_that_is_in_no_list_is_no_page(place: RowPlace, kind: str) -> None:
    """A token needs no secret, so one may say anything: what a column cannot have is refused."""
    kinds: dict[str, type] = {"timestamptz": datetime, "double precision": float, "text": str}
    try:
        value = place.typed(kind)
    except RequestRefused:
        return
    assert value is None or type(value) is kinds.get(kind, int)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2**62, "timestamptz"), (2**31, "integer"), ("x", "bigint"), (1.5, "integer"), (1, "text")],
)
def test_what_a_column_cannot_have_is_refused(value: Any, kind: str) -> None:
    """The refusal is that of the token, before the database sees it."""
    with pytest.raises(RequestRefused) as caught:
        RowPlace(value, "schedd.ap", 1, 0).typed(kind)
    assert "page.invalid" == caught.value.code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("JobStatus ==", "filter.invalid"),
        ("TARGET.Memory > 5", "filter.invalid"),
        ("JobStatsu == 5", "attribute.unknown"),
        ("Colour == 1", "attribute.unknown"),
    ],
)
def test_a_filter_that_no_ad_can_answer_is_refused(text: str, code: str) -> None:
    """No expression, another ad's attribute, an attribute that nobody knows."""
    with pytest.raises(RequestRefused) as caught:
        FILTERS.read(text)
    assert code == caught.value.code


def test_an_attribute_of_somebodys_own_is_marked_as_such() -> None:
    """`MY.` says that a name is meant as it stands."""
    wanted = FILTERS.read("MY.Colour == 5 && JobStatus == 1")
    assert wanted is not None
    assert wanted.holds({"Colour": 5, "JobStatus": 1})
    assert not wanted.holds({"JobStatus": 1})


@pytest.mark.parametrize(
    "text",
    [
        "JobPrio == 7",
        'my.colour == "green"',
        "RequestMemory == 70",
        'eval("JobPrio") == 7',
        'MY["JobPrio"] == 7',
        "isUndefined(JobUniverse)",
    ],
)
def test_a_filter_is_true_of_an_ad_whatever_of_it_is_looked_at(text: str) -> None:
    """Names in any case, values that are expressions about others, and computed names are all found."""
    ad: Ad = {"JobPrio": 7, "Colour": "green", "RequestMemory": Expr("jobprio * 10"), "Cmd": "/bin/true"}
    wanted = Filters(KnownAttributes()).read(text)
    assert wanted is not None
    assert wanted.holds(ad)
    assert not wanted.holds({**ad, "JobPrio": 8, "Colour": "red", "JobUniverse": 5})


def test_a_repeat_has_the_same_command_id_and_answer() -> None:
    """The key, the person and the request make the id; a key that is used for another request is refused."""
    bob = Person(local("bob"), Mapped(owner="bob", domain="pool"))
    one = command_id(asked(KEY))
    assert one == command_id(asked(KEY))
    others = [command_id(asked(KEY, person=bob)), command_id(asked(KEY), "ap2"), command_id(asked())]
    assert 4 == len({one, *others})
    repeats, answer = Repeats(), Answer(Jobs())
    assert repeats.first_answer(asked(KEY, body="a")) is None
    assert answer is repeats.answered(asked(KEY, body="a"), answer)
    assert answer is repeats.first_answer(asked(KEY, body="a"))
    assert repeats.first_answer(asked(KEY, body="a", person=bob)) is None
    with pytest.raises(RequestRefused) as caught:
        repeats.first_answer(asked(KEY, body="b"))
    assert 422 == caught.value.status
    entrypoint = Repeats(reused=409)
    assert entrypoint.first_answer(asked(KEY, body="a")) is None
    with pytest.raises(RequestRefused) as caught:
        entrypoint.first_answer(asked(KEY, body="b"))
    assert 409 == caught.value.status


def test_what_is_kept_for_repeats_has_an_end() -> None:
    """
    Of one person the last requests are remembered, whatever others send; of a large answer only what its request was.
    """
    repeats = Repeats()
    bob = Person(local("bob"), Mapped(owner="bob", domain="pool"))
    small, large = Answer(Jobs()), Answer(Jobs(next="x" * (64 << 10)))

    def sent(key: str, answer: Answer, person: Person = ADA) -> Answer | None:
        request = asked({"Idempotency-Key": key}, person=person)
        first = repeats.first_answer(request)
        repeats.answered(request, answer)
        return first

    sent("of bob", small, bob)
    sent("large", large)
    assert sent("large", large) is None
    for number in range(201):
        assert sent(str(number), small) is None
    assert small is sent("200", small)
    assert small is sent("of bob", small, bob)
    assert sent("0", small) is None


def test_a_network_of_addresses_is_one_stranger() -> None:
    """Who has a network of IPv6 has not a budget for each of its addresses."""
    limits = RequestLimits(rate=0.01, burst=2.0, all_rate=1.0, all_burst=3.0, proxies=frozenset())
    limits.failed("2001:db8::1")
    limits.failed("2001:db8::2")
    with pytest.raises(RequestRefused):
        limits.failed("2001:db8::3")


def test_an_answer_without_jobs_has_an_empty_list() -> None:
    """Programs go over what is there; with groups there are no jobs, and without there are no groups."""
    assert b'{"jobs":[]}' == msgspec.json.encode(Jobs(jobs=[]))
    assert b'{"groups":[]}' == msgspec.json.encode(Jobs(groups=[]))


def test_who_has_the_state_already_is_told_so() -> None:
    """One of several tags is enough, weak or not; another one is not."""
    with pytest.raises(NotModified):
        asked({"If-None-Match": 'W/"x", "schedd.ap:7"'}).require_changed('"schedd.ap:7"')
    asked({"If-None-Match": '"schedd.ap:6"'}).require_changed('"schedd.ap:7"')


def test_each_person_has_so_many_requests() -> None:
    """What is left is told with each answer, and one too many says when to come again."""
    limits = RequestLimits(rate=0.01, burst=2.0, all_rate=1.0, all_burst=3.0, proxies=frozenset())
    assert "1" == limits.admit(ADA)["RateLimit-Remaining"]
    limits.admit(ADA)
    with pytest.raises(RequestRefused) as caught:
        limits.admit(ADA)
    assert (429, True) == (caught.value.status, caught.value.retry_after > 90)


async def test_only_the_private_file_is_the_own_account(tmp_path: Path) -> None:
    """The contents of the file are the account that the gateway runs as; any other text is nobody."""
    policy = PolicyInForce("gateway", Authorization(domain="pool"), None)
    persons = Persons(policy, None, OwnIam(tmp_path), LocalAccounts(tmp_path), "secret", People())
    assert (await persons.of("secret", "127.0.0.1")).is_own_account
    for text, code in (("", "token.absent"), ("secre", "token.issuer_unknown")):
        with pytest.raises(RequestRefused) as caught:
            await persons.of(text, "127.0.0.1")
        assert (401, code) == (caught.value.status, caught.value.code)
        assert caught.value.challenge.startswith("Bearer")


async def test_a_description_is_read_for_the_own_account_only() -> None:
    """To read it means to read files with the gateway's rights, so no token of an issuer is enough."""
    principal = msgspec.structs.replace(ADA.principal, method="SCITOKENS")
    with pytest.raises(RequestRefused) as caught:
        await submission_of(Person(principal, ADA.mapped), "include command : touch /tmp/x\nqueue")
    assert 415 == caught.value.status


def test_a_job_is_named_by_number_and_queue() -> None:
    """The path says which, and its form is checked as that of any parameter."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "12"}, GetJob)
    assert "12.0@ap1" == msgspec.convert({"id": "12.0@ap1"}, GetJob).id


def test_everybody_together_has_so_many_requests() -> None:
    """When many people ask, each of them little, the one too many is told that it is not his fault."""
    limits = RequestLimits(rate=1.0, burst=2.0, all_rate=0.01, all_burst=3.0, proxies=frozenset())
    people = [Person(local(name), Mapped(owner=name, domain="pool")) for name in ("a", "b", "c", "d")]
    for person in people[:3]:
        limits.admit(person)
    with pytest.raises(RequestRefused, match="everybody together"):
        limits.admit(people[3])
