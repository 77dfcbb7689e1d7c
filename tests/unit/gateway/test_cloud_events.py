import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kettle.client.events.published import Wanted
from kettle.jobs import trace_meta
from kettle.schema_generation import documents
from kettle.schema_generation.catalogue import event_path
from kettle.testing.elastic_events import ELASTIC
from kettle.testing.entrypoint_events import ENTRYPOINT, REGISTERED, ROUTED
from kettle_services.gateway.domain.cloud_events import Publisher, owners_in, read
from kettle_services.gateway.domain.public_json import PRIVATE, is_private, to_json
from kettle_wire import cloud_events
from kettle_wire.ads.types import Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClaimGranted,
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    IdentityEvent,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobsChanged,
    MachineLeft,
    Procs,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.events.codec import EVENT_TYPES, Recorded
from kettle_wire.events.interactive import InteractiveEvent
from kettle_wire.events.payload import PayloadEvent
from kettle_wire.events.route import RouteDecided, RoutedProc
from kettle_wire.events.task_queue import TaskQueueEvent
from kettle_wire.events.workflow import WorkflowEvent
from kettle_wire.frames import Entry, Frame
from kettle_wire.routes import RouteStep
from kettle_wire.subjects import Subjects

from .recorded_examples import EXAMPLES

AT = 1_700_000_000_123_456
NAN, INF = float("nan"), float("inf")


ALL: list[tuple[str, Recorded]] = [*EXAMPLES, *ELASTIC, *ENTRYPOINT, *REGISTERED[:2], *ROUTED]


all_documents = cache(documents)


@cache
def schema(path: str) -> Any:
    """
    A validator, which has no types, of a document.

    That it is a schema is looked at once, which takes longer than to look whether an event follows it.
    """
    document = all_documents()[path]
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


def frame(stream: str, event: Event, *, shard: str = "schedd.ap1", epoch: int = 3, number: int = 9) -> Frame:
    entry = Entry(stream, 2, tag_of(event), encode(event), trace_meta("ap1", stream))
    return Frame(shard, epoch, number, 41, AT, [entry])


def published(stream: str, event: Event, *, owner: str = "alice", limit: int = 1 << 20) -> tuple[str, bytes]:
    made = frame(stream, event)
    [told] = read(made)
    post = Publisher(Subjects("p"), limit=limit).post(made, told, owner if told.cluster is not None else "")
    return post.subject, post.data


def as_published(event: Recorded) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(to_json(event), parse_constant=pytest.fail)
    schema(event_path(tag_of(event))).validate(data)
    return data


def test_each_of_many_jobs_has_an_event_of_its_own() -> None:
    """
    What was recorded at once for jobs 12.0, 12.1 and 12.5 is published as three events that differ in id, subject,
    number and trace. Subscribers cannot see how they were recorded.
    """
    held = JobHeld(code=1, reason="by hand", by="alice")
    many = JobsChanged(
        cluster=12, type="job.held/1", data=msgspec.Raw(encode(held)), jobs=[Procs(0, 2, 3), Procs(5, 1, 1)]
    )
    made = frame("jobs/12", many)
    publisher = Publisher(Subjects("p"), limit=1 << 20)
    posts = [publisher.post(made, told, "alice") for told in read(made)]
    for (proc, version), post in zip([(0, 3), (1, 3), (5, 1)], posts, strict=True):
        subject, data = published(stream := f"job/12.{proc}", held)
        alone = json.loads(data) | {"id": f"schedd%2Eap1:41.{proc}", "version": version}
        assert (subject, alone) == (post.subject, json.loads(post.data))
        assert (alone["stream"], bool(alone["traceparent"])) == (stream, True)
    assert [] == read(made, after=41)


def test_every_type_of_event_has_an_example() -> None:
    """The examples below, which are those of the documentation, leave no type out that is published."""
    of_others = get_args(IdentityEvent | InteractiveEvent | PayloadEvent | TaskQueueEvent | WorkflowEvent)
    unpublished = {ClustersSubmitted, JobsChanged, *of_others}
    assert set(EVENT_TYPES) - unpublished == {type(event) for _, event in ALL}


@pytest.mark.parametrize(("stream", "event"), ALL, ids=lambda part: str(part)[:14])
def test_an_envelope_is_a_cloud_event(stream: str, event: Recorded) -> None:
    """The cloudevents library reads every envelope, and the data follow the schema that it names."""
    _, data = published(stream, event)
    read_back = JSONFormat().read(None, data)
    assert "1.0" == read_back.get_specversion()
    assert "schedd%2Eap1:41" == read_back.get_id()
    assert "/kettle/p/schedd%2Eap1" == read_back.get_source()
    assert cloud_events.type_of(tag_of(event)) == read_back.get_type()
    assert "2023-11-14T22:13:20.123456+00:00" == read_back.get_time().isoformat()  # type: ignore[union-attr]
    path = event_path(tag_of(event))
    assert all_documents()[path]["$id"] == read_back.get_dataschema()
    schema(path).validate(read_back.get_data())
    schema("monitoring/cloudevent.json").validate(json.loads(data))


@pytest.mark.parametrize(("stream", "event"), ALL, ids=lambda part: str(part)[:14])
def test_extensions_are_what_cloudevents_allows(stream: str, event: Recorded) -> None:
    """Names of at most 20 lower-case letters and digits; values are text or integers of 32 bits."""
    _, data = published(stream, event)
    for name, value in json.loads(data).items():
        assert name.isalnum()
        assert name.islower()
        assert len(name) <= 20
        if name != "data":
            assert isinstance(value, str | int)
            assert not isinstance(value, int) or -(2**31) <= value < 2**31


@pytest.mark.parametrize(("stream", "event"), ALL, ids=lambda part: str(part)[:14])
def test_the_event_is_read_back(stream: str, event: Recorded) -> None:
    """What was recorded is what is published."""
    _, data = published(stream, event)
    assert event == cloud_events.event_of(cloud_events.decode(data))


def test_subjects_say_whose_what_and_which() -> None:
    """Job events name owner, job and type; events of a cluster have no job, those of the pool no owner."""
    said = {subject for subject, _ in (published(stream, event) for stream, event in EXAMPLES)}
    assert {
        "kettle.p.tail.alice.12.-.cluster.submitted",
        "kettle.p.tail.alice.12.0.job.assigned",
        "kettle.p.tail.alice.12.0.job.started",
        "kettle.p.tail.alice.12.0.job.stepped",
        "kettle.p.tail.alice.12.0.job.told",
        "kettle.p.tail.alice.12.0.job.served",
        "kettle.p.tail.alice.12.0.job.edited",
        "kettle.p.tail.alice.12.0.job.ordered",
        "kettle.p.tail.alice.12.0.job.node_started",
        "kettle.p.tail.alice.12.0.job.node_ended",
        "kettle.p.tail.alice.12.0.job.suspended",
        "kettle.p.tail.alice.12.0.job.continued",
        "kettle.p.tail.alice.12.0.job.disconnected",
        "kettle.p.tail.alice.12.0.job.reconnected",
        "kettle.p.tail.alice.12.0.job.checkpointed",
        "kettle.p.tail.alice.12.0.job.deferred",
        "kettle.p.tail.alice.12.0.job.vacated",
        "kettle.p.tail.alice.12.0.job.held",
        "kettle.p.tail.alice.12.0.job.released",
        "kettle.p.tail.alice.12.0.job.completed",
        "kettle.p.tail.alice.12.1.job.kept",
        "kettle.p.tail.alice.12.1.job.removed",
        "kettle.p.tail.alice.12.1.job.left",
        "kettle.p.tail.pool.claim.granted",
        "kettle.p.tail.pool.claim.ended",
        "kettle.p.tail.pool.cycle.negotiated",
        "kettle.p.tail.pool.machine.joined",
        "kettle.p.tail.pool.machine.left",
        "kettle.p.tail.pool.principal.charged",
        "kettle.p.tail.pool.principal.set",
        "kettle.p.tail.pool.principal.reset",
        "kettle.p.tail.pool.principal.deleted",
        *(
            f"kettle.p.tail.alice.13.-.factory.{what}"
            for what in ("submitted", "materialized", "changed", "closed")
        ),
    } == said


@pytest.mark.parametrize("owner", ["*", ">", "a.b", "pool", "", "ünï", "a b", "%"])
def test_any_owner_is_safe_in_a_subject(owner: str) -> None:
    """
    A name is one token, whatever it is, and nobody's events are on the subjects of another or of the pool.
    """
    subject, data = published("job/1.0", JobReleased(), owner=owner)
    tokens = subject.split(".")
    assert 8 == len(tokens)
    assert not {"*", ">", ""} & set(tokens)
    assert owner == cloud_events.decode(data).owner


def test_a_job_event_has_the_trace_of_its_job() -> None:
    """The trace context that the log keeps is in the envelope; events of the pool have none."""
    meta = msgspec.msgpack.decode(trace_meta("ap1", "job/12.0"), type=dict[str, str])
    assert meta["traceparent"] == cloud_events.decode(published("job/12.0", JobReleased())[1]).traceparent
    machine = published("machine/n", MachineLeft(machine="n", reason="drained"))[1]
    assert b"traceparent" not in machine


def test_a_frame_number_may_be_larger_than_an_integer_of_cloudevents() -> None:
    """It is text, as are all numbers that have no bound."""
    made = frame("machine/n", MachineLeft(machine="n", reason="drained"), number=2**40)
    [told] = read(made)
    envelope = cloud_events.decode(Publisher(Subjects("p"), limit=1000).post(made, told, "").data)
    assert str(2**40) == envelope.frame


def test_only_the_rest_of_a_frame_is_read() -> None:
    """Of a frame that was told in part, the events after the mark are told."""
    entries = [Entry("job/1.0", n, "job.released/1", encode(JobReleased(reason=str(n)))) for n in range(1, 5)]
    told = read(Frame("schedd.ap1", 1, 1, 10, AT, entries), after=11)
    assert [(12, "3"), (13, "4")] == [
        (one.position, one.event.reason) for one in told if isinstance(one.event, JobReleased)
    ]


def test_the_events_of_a_cluster_are_those_of_its_jobs_and_factory() -> None:
    """
    Who asks for a cluster is told how its jobs are made; who asks for one of its jobs is told of the cluster's submission.
    """
    events = [cloud_events.decode(published(stream, event)[1]) for stream, event in EXAMPLES]
    assert ["cluster/13", *["factory/13"] * 3] == [
        one.stream for one in events if Wanted(kind="*", cluster=13).has(one)
    ]
    assert {"cluster/12", "job/12.1"} == {
        one.stream for one in events if Wanted(kind="*", cluster=12, proc=1).has(one)
    }


def test_submissions_say_whose_a_cluster_is() -> None:
    """From the submission on, the owner of its jobs' events is known."""
    assert [(12, "alice")] == list(owners_in(read(frame(*EXAMPLES[0]))))
    assert [(13, "alice")] == list(owners_in(read(frame(*EXAMPLES[1]))))
    assert [] == list(owners_in(read(frame(*EXAMPLES[2]))))


@pytest.mark.parametrize("name", ["Environment", "ENV", "ClaimId", "_condor_privRemoteAdminCapability"])
def test_what_may_be_a_secret_is_left_out(name: str) -> None:
    """Environments and capabilities are neither in the ad nor in the item table of what is published."""
    submitted = ClusterSubmitted(
        cluster=1,
        owner="a",
        ad={name: "s3cret", "Cmd": "x"},
        columns=["A", name, "B"],
        rows=[[1, "s3cret", 2]],
    )
    data = as_published(submitted)
    assert b"s3cret" not in to_json(submitted)
    assert ({"Cmd": "x"}, ["A", "B"], [[1, 2]]) == (data["ad"], data["columns"], data["rows"])
    granted = ClaimGranted(
        claim="c", startd="n", slot="s", slot_ad={name: "s3cret"}, submitter="a", autocluster=1, lease=1.0
    )
    assert {} == as_published(granted)["slot_ad"]
    decision = RouteDecided(
        jobs=[RoutedProc(0, 1)],
        version="0f",
        owner="a",
        route="Slurm",
        attributes={name: "s3cret", "BatchQueue": "long"},
        trace=[
            RouteStep("route Slurm", 2, "$(secret)", None, "s3cret"),
            RouteStep("route Slurm", 3, name, None, "s3cret"),
            RouteStep("route Slurm", 4, "BatchQueue", None, "long"),
        ],
    )
    routed = as_published(decision)
    assert ({"BatchQueue": "long"}, [["route Slurm", 4, "BatchQueue", None, "long"]]) == (
        routed["attributes"],
        routed["trace"],
    )


def test_names_are_private_in_any_case() -> None:
    """As in ClassAds, the case of a name means nothing."""
    assert all(is_private(name.upper()) and is_private(name.lower()) for name in PRIVATE)
    assert not is_private("Arguments")


@pytest.mark.parametrize(
    ("number", "text"), [(NAN, 'real("NaN")'), (INF, 'real("INF")'), (-INF, 'real("-INF")')]
)
def test_a_number_that_json_has_not_is_an_expression_in_an_ad(number: float, text: str) -> None:
    """What JSON cannot say, the language of ads can; the text null stays what it is."""
    submitted = ClusterSubmitted(
        cluster=1, owner="a", ad={"X": number, "Y": "null"}, columns=["Z"], rows=[[number], [1.5]]
    )
    data = as_published(submitted)
    assert {"X": {"expr": text}, "Y": "null"} == data["ad"]
    assert [[{"expr": text}], [1.5]] == data["rows"]


@pytest.mark.parametrize(
    ("number", "nearest"), [(NAN, 0.0), (INF, 1.7976931348623157e308), (-INF, -1.7976931348623157e308)]
)
def test_a_number_that_json_has_not_is_the_nearest_one_elsewhere(number: float, nearest: float) -> None:
    """A worker's clock or meter that says nonsense does not make a message that nobody can read."""
    data = as_published(JobCompleted(attempt=1, exit=ExitRecord(code=0, at=number), usage=Usage(wall=number)))
    assert (nearest, nearest) == (data["exit"]["at"], data["usage"]["wall"])


def scalars() -> st.SearchStrategy[Scalar]:
    return st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(st.characters(exclude_categories=["Cs"])),
    )


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), scalars(), max_size=5))
def test_any_ad_is_published_as_valid_json(ad: dict[str, Scalar]) -> None:
    """Whatever is in an ad, what is published is JSON that follows the schema, and its integers are exact."""
    data = as_published(ClusterSubmitted(cluster=1, owner="a", ad=ad, columns=[], rows=[[]]))
    shown = {name: value for name, value in ad.items() if not is_private(name)}
    assert set(shown) == set(data["ad"])
    for name, value in integers(shown):
        assert value == data["ad"][name]
        assert type(value) is type(data["ad"][name])


def integers(ad: dict[str, Scalar]) -> Iterator[tuple[str, int]]:
    for name, value in ad.items():
        if isinstance(value, int):
            yield name, value


def test_a_large_event_is_published_without_its_data() -> None:
    """The envelope says where it is, how many jobs it submits, and claims no content."""
    _, data = published(*EXAMPLES[0], limit=10)
    read_back = JSONFormat().read(None, data)
    assert read_back.get_data() is None
    assert read_back.get_datacontenttype() is None
    assert "/kettle/p/schedd%2Eap1/41" == read_back.get_extension("dataref")
    assert 2 == read_back.get_extension("jobs")


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "monitoring-events.md"


def in_documentation(stream: str, event: Recorded) -> str:
    """The section of a type in the documentation."""
    tag = tag_of(event)
    shards = {"machine": "collector", "cycle": "negotiator", "principal": "negotiator"}
    shard = shards.get(stream.partition("/")[0], "schedd.ap1")
    for owner, examples in (("scaler", ELASTIC), ("ce.ap1", ENTRYPOINT)):
        if any(event is each for _, each in examples):
            shard = owner
    made = frame(stream, event, shard=shard)
    [told] = read(made)
    post = Publisher(Subjects("POOL"), limit=1000).post(
        made, told, "alice" if told.cluster is not None else ""
    )
    subject, data = post.subject, post.data
    text = msgspec.json.format(data, indent=2).decode()
    return f"\n### {cloud_events.type_of(tag)}\n\nOn `{subject}`:\n\n```json\n{text}\n```\n"


def test_the_documentation_shows_every_type() -> None:
    """Its examples are what the gateway makes of these events; to renew them, run this file as a program."""
    shown = "".join(in_documentation(stream, event) for stream, event in ALL)
    assert PAGE.read_text().partition("<!-- examples -->\n")[2] == shown


if __name__ == "__main__":
    before, mark, _ = PAGE.read_text().partition("<!-- examples -->\n")
    PAGE.write_text(before + mark + "".join(in_documentation(stream, event) for stream, event in ALL))
