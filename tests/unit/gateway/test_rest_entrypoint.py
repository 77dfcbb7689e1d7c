"""Compute entrypoints over HTTP: counts, changes, archives and refusals."""

import io
import tarfile
from collections.abc import Mapping
from typing import Any

import pytest

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.ports import RefusedError
from kettle.projections.stored_projection import instant
from kettle_services.gateway.rest.application import of_command
from kettle_services.gateway.rest.ce import counting
from kettle_services.gateway.rest.ce.counting import Counts
from kettle_services.gateway.rest.ce.following import chains, changed_behind
from kettle_services.gateway.rest.ce.sandboxes import files_in
from kettle_services.gateway.rest.ce.submissions import ad_to_try, no_route, with_universe
from kettle_services.gateway.rest.event_hub import Happening, Recent
from kettle_services.gateway.rest.job_archives import LeftArchive
from kettle_services.gateway.rest.job_files import OpenFile
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.codes import RefusalCode
from kettle_wire.jobs import JobId
from kettle_wire.rest.files import JobFile
from kettle_wire.rest.jobs import Submission
from kettle_wire.routes import RefusalKind, RouteRefusal

ATLAS: Ad = {"x509UserProxyVOName": "atlas", "x509userproxysubject": "/CN=p", "JobStatus": 1}
FQAN = "/atlas/Role=NULL/Capability=NULL"


def test_jobs_are_counted_as_ceview_counts_them() -> None:
    """What has no VO is Unknown, and a part of an FQAN that says nothing is left out."""
    ads: list[Ad] = [
        ATLAS,
        ATLAS | {"JobStatus": 2},
        ATLAS | {"JobStatus": 5, "x509UserProxyFirstFQAN": FQAN},
        {"JobStatus": 4},
    ]
    counts = Counts.of(ads, 7.0)
    assert {"Running": 1, "Idle": 1, "Held": 1, "UpdateDate": 7.0} == counting.view_totals(counts)
    assert {
        "Unknown": {"Running": 0, "Idle": 0, "Held": 0, "Jobs": 1},
        "atlas": {"Running": 1, "Idle": 1, "Held": 1, "Jobs": 3},
    } == counting.view_vos(counts)
    assert [
        ("Unknown", "Unknown", "", 1),
        ("/CN=p", "atlas", "", 2),
        ("/CN=p", "atlas", "/atlas", 1),
    ] == [(each["DN"], each["VO"], each["VOMS"], each["Jobs"]) for each in counting.view_pilots(counts)]


@pytest.mark.parametrize(
    ("duty", "status"),
    [(0.5, "OK"), (0.9, "OK"), (0.91, "WARNING"), (0.951, "CRITICAL"), (None, "UNKNOWN"), ("x", "UNKNOWN")],
)
def test_an_access_point_is_as_busy_as_it_says(duty: float | str | None, status: str) -> None:
    """The bounds are CEView's; one that says nothing is not called well."""
    assert status == counting.status_of({} if duty is None else {"RecentDaemonCoreDutyCycle": duty})


def test_an_ad_is_json_as_htcondor_writes_it() -> None:
    """An expression is marked, so that it is not taken for text."""
    assert {"A": 1, "Rank": "/Expr(Memory * 2)/"} == counting.view_ad({"A": 1, "Rank": Expr("Memory * 2")})


def happening(sequence: int, cluster: int | None, proc: int | None, *, schedd: str = "s") -> Happening:
    return Happening(sequence, "ada", "job.held", schedd, "", cluster, proc, sequence, b"", 0.0)


def test_what_has_changed_behind_a_place_is_named_once() -> None:
    """
    Jobs of other access points are passed over, a submission stands for all its jobs, and where there is no room for more the place
    is before what was left out.
    """
    some = [
        happening(11, 1, None),
        happening(12, 1, 0),
        happening(13, 9, 9, schedd="other"),
        happening(14, None, None),
        happening(15, 1, 0),
        happening(16, 2, 0),
    ]
    all_ = changed_behind(some, "s", 10, 9)
    assert (frozenset({1}), {JobId(1, 0): 12, JobId(2, 0): 16}, 16) == (all_.clusters, all_.jobs, all_.next)
    few = changed_behind(some, "s", 10, 2)
    assert (frozenset({1}), {JobId(1, 0): 12}, 15) == (few.clusters, few.jobs, few.next)
    none = changed_behind([], "s", 10, 2)
    assert (frozenset(), {}, 10) == (none.clusters, none.jobs, none.next)


def test_the_last_place_of_somebody_is_not_moved_by_others() -> None:
    """So an answer that nothing has happened to stays the same; what is forgotten counts as before."""
    recent = Recent(most=2)
    recent.begin(4)
    assert 4 == recent.last_of("ada")
    recent.add(happening(5, 1, 0))
    recent.add(Happening(6, "bob", "job.held", "s", "", 2, 0, 1, b"", 0.0))
    assert 5 == recent.last_of("ada")
    recent.add(Happening(7, "bob", "job.held", "s", "", 2, 0, 1, b"", 0.0))
    assert (5, 5) == (recent.last_of("ada"), recent.forgotten_of("ada"))


def test_a_job_is_listed_once_and_in_the_order_of_the_queue() -> None:
    """What has left the queue between two looks is in both; the later one counts."""
    ads: list[Ad] = [
        {"ClusterId": cluster, "ProcId": 0, "JobStatus": status, "QDate": 1}
        for cluster, status in ((10, 1), (9, 1), (10, 4))
    ]
    assert [("9.0", "routed"), ("10.0", "ended")] == [(each.id, each.state) for each in chains(ads)]


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as writing:
        for entry, content in entries:
            entry.size = len(content)
            writing.addfile(entry, io.BytesIO(content))
    return made


def entry(name: str, **more: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for attribute, value in more.items():
        setattr(made, attribute, value)
    return made


async def test_the_files_of_an_archive_are_read_as_they_are() -> None:
    """With their content and whether they can be executed; directories are made by the names of files."""
    kept = archive(
        (entry("./run", mode=0o755), b"#!/bin/sh\n"),
        (entry("in", type=tarfile.DIRTYPE), b""),
        (entry("in/data", mode=0o644), bytes(range(256)) * 5000),
        (entry("empty"), b""),
    )
    found = {each.about.path: each for each in files_in(kept)}
    assert [("run", True), ("in/data", False), ("empty", False)] == [
        (path, each.about.executable) for path, each in found.items()
    ]
    assert bytes(range(256)) * 5000 == b"".join([part async for part in found["in/data"].read()])
    assert b"" == b"".join([part async for part in found["empty"].read()])


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "/body/x"),
        ({"type": tarfile.LNKTYPE, "linkname": "y"}, "/body/x"),
        ({"type": tarfile.CHRTYPE}, "/body/x"),
        ({"type": tarfile.FIFOTYPE}, "/body/x"),
    ],
)
def test_what_is_no_plain_file_is_refused(more: Mapping[str, Any], pointer: str) -> None:
    """A link could lead out of the sandbox, and a device is none of the submitter's."""
    with pytest.raises(RequestRefused) as caught:
        files_in(archive((entry("x", **more), b"")))
    assert (422, [pointer]) == (caught.value.status, [each.pointer for each in caught.value.errors])


@pytest.mark.parametrize("cut", [700, 1500])
def test_an_archive_that_ends_too_early_is_refused(cut: int) -> None:
    """Nothing of it is given to a job."""
    whole = archive((entry("x"), b"a" * 1200), (entry("y"), b"b")).getvalue()
    with pytest.raises(RequestRefused, match="the body is no archive"):
        files_in(io.BytesIO(whole[:cut]))


class Left:
    """Files that a job has left."""

    running = False

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.ad: Ad = {}

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        data = self.files[name]
        return OpenFile(len(data), f'"{name}"', offset, data[offset : offset + min(length, 700)])

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        del after
        moment = instant(1_700_000_000_000_000)
        return [
            JobFile(path=name, size=len(data), changed=moment) for name, data in self.files.items()
        ], False


async def test_any_part_of_an_archive_is_what_the_whole_has_there() -> None:
    """The whole is one that tar reads, and every piece of it comes alike, wherever it begins."""
    files = {"out": b"x" * 1500, "é" * 60: b"y", "empty": b"", "even": b"z" * 1024}
    source = Left(files)
    listed, _ = await source.list("")
    made = LeftArchive(source, listed)
    whole = (await made.open("", 0, 1 << 20)).data
    with tarfile.open(fileobj=io.BytesIO(whole)) as reading:
        read = {each.name: reading.extractfile(each) for each in reading}
        assert files == {name: opened.read() for name, opened in read.items() if opened is not None}
    for offset in range(0, len(whole), 257):
        part = await made.open("", offset, 900)
        assert whole[offset : offset + 900] == part.data
        assert len(whole) == part.size
    assert b"" == (await made.open("", len(whole), 10)).data


async def test_an_archive_of_other_files_has_another_tag_and_a_changed_file_breaks_it_off() -> None:
    """So nobody puts parts of two archives together."""
    source = Left({"out": b"x" * 1500})
    listed, _ = await source.list("")
    made = LeftArchive(source, listed)
    source.files["out"] = b"x" * 1501
    other, _ = await source.list("")
    assert (await made.open("", 0, 10)).etag != (await LeftArchive(source, other).open("", 0, 10)).etag
    with pytest.raises(Exception, match="the file out changed"):
        await made.open("", 0, 1 << 20)


def test_the_first_job_of_a_submission_is_tried_as_it_will_be() -> None:
    """With its own values, its owner, and what the access point gives to who says nothing."""
    ada = Person(local("ada"), Mapped(owner="ada", domain="pool"))
    sent = Submission(ad={"VO": "atlas", "owner": "root"}, columns=["Args"], rows=[["a"], ["b"]])
    assert {
        "VO": "atlas",
        "Args": "a",
        "Owner": ada.name,
        "User": f"{ada.name}@pool",
        "JobUniverse": 5,
        "JobStatus": 1,
    } == ad_to_try(ada, with_universe(sent))
    grid = Submission(ad={"jobuniverse": 9})
    assert grid is with_universe(grid)


def test_no_route_says_of_each_why() -> None:
    """The sentence for people, and a member of `errors` for each route."""
    refusal = no_route(
        [
            RouteRefusal("Here", RefusalKind.REQUIREMENTS, 'VO is "atlas" is false'),
            RouteRefusal("There", RefusalKind.FAILED, "line 3: x"),
        ]
    )
    assert (422, "ce.no_route") == (refusal.status, refusal.code)
    assert ["/routes/Here", "/routes/There"] == [each.pointer for each in refusal.errors]
    assert 'Here: VO is "atlas" is false; There: line 3: x' in str(refusal)


def test_a_limit_is_too_many_requests() -> None:
    """Who reaches a limit of the access point may come again, which is not so with what is wrong."""
    refused = RefusedError(RefusalCode.LIMIT, "ada has 3 jobs in the queue (max_jobs_per_owner)")
    refusal = of_command(refused.code, str(refused))
    assert (429, "limit") == (refusal.status, refusal.code)
