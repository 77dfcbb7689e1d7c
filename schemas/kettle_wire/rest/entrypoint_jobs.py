"""Jobs of compute entrypoints over HTTP: sent to one, followed, given their files, fetched and removed."""

from typing import Annotated, Final

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.entrypoint import Chain, RouteNotTaken
from kettle_wire.rest.jobs import Outcomes, Submission
from kettle_wire.rest.route import CE_PREFIX, Route

AnyName = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
"""`12.3`, the GlobalJobId, or what the batch system calls it: `4711`."""
LARGEST_SANDBOX: Final = 256 << 20
"""Bytes of an archive with input files."""


class SubmitToEntrypoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Submit jobs that are to be routed, recorded when this returns. The first of them is tried on the routes before: if none will ever
    take it, nothing is submitted, and the refusal `ce.no_route` has the first clause of each route that is not true. With an
    Idempotency-Key a repeat submits nothing more; the same key for another request is refused with 409.
    """

    schedd: Name = ""
    """To which access point; empty: the pool's own."""
    spool: bool = False
    """The jobs are held until their sandbox has been sent."""


class SubmittedToEntrypoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The jobs are recorded."""

    id: str
    """Of the first one; the others are counted on behind the point."""
    schedd: str
    cluster: int
    count: int
    route: str = ""
    """The route of the first job; absent: it waits for one, and `refusals` says for what."""
    refusals: list[RouteNotTaken] = []
    """Of the routes before the one that takes it, or of all."""
    position: str = ""
    """Where it was recorded: for `at_least`."""
    warnings: list[str] = []


class ListChains(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List one's own jobs that are or were to be routed: all that are in the queue, or with `since` those to which something has happened
    behind a place, also when they have left it. A repeat of a question is answered with 304 as long as nothing happens.
    """

    since: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """`next` of the answer before."""
    after: Annotated[str, msgspec.Meta(max_length=60, pattern=r"^([0-9]{1,18}:[0-9]{1,9}\.[0-9]{1,9})?$")] = (
        ""
    )
    """`more` of the answer before."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    """Not more jobs than this; behind a place, jobs that were submitted together come together and count as one."""
    schedd: Name = ""


class Chains(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs, each as it is now."""

    jobs: list[Chain]
    next: int
    """What `since` has to be for what happens from now on."""
    whole: bool = False
    """
    These are all that are in the queue: also an answer to a `since` that is too old, after which jobs that are not named are gone.
    """
    more: str = ""
    """What `after` has to be for the rest of them; absent: that was all."""


class PutSandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Send the input files of a job that was submitted with `spool=1`, and of the others of its cluster, as one archive of plain files,
    and have the jobs released. A repeat changes nothing.
    """

    job: AnyName
    schedd: Name = ""


class SandboxGiven(msgspec.Struct, frozen=True, kw_only=True):
    """All files are on the access point's disk."""

    id: str
    files: int
    bytes: int


class GetOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get all files that a job has left, in one archive, or a part of that."""

    job: AnyName
    schedd: Name = ""


class RemoveRouted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remove a job, also from the batch system where it is; one that is over stays as it is."""

    job: AnyName
    schedd: Name = ""
    reason: Annotated[str, msgspec.Meta(max_length=4096)] = ""


SUBMIT_TO_ENTRYPOINT = Route(
    "POST",
    "/jobs",
    "submit_ce_jobs",
    parameters=SubmitToEntrypoint,
    body=Submission,
    text_body=True,
    reply=SubmittedToEntrypoint,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
    headers=("Idempotency-Key",),
    creates=True,
    prefix=CE_PREFIX,
)
LIST_CHAINS = Route(
    "GET",
    "/jobs",
    "list_ce_jobs",
    parameters=ListChains,
    reply=Chains,
    errors=(404,),
    headers=("If-None-Match",),
    prefix=CE_PREFIX,
)
PUT_SANDBOX = Route(
    "PUT",
    "/jobs/{job}/sandbox",
    "put_ce_sandbox",
    parameters=PutSandbox,
    reply=SandboxGiven,
    takes=("application/x-tar",),
    level="WRITE",
    errors=(404, 408, 409, 413, 415, 422),
    prefix=CE_PREFIX,
)
GET_OUTPUT = Route(
    "GET",
    "/jobs/{job}/output",
    "get_ce_output",
    parameters=GetOutput,
    reply=None,
    octets="application/x-tar",
    errors=(404, 409, 410, 416, 422),
    headers=("Range", "If-Range", "Want-Repr-Digest"),
    prefix=CE_PREFIX,
)
REMOVE_ROUTED = Route(
    "DELETE",
    "/jobs/{job}",
    "remove_ce_job",
    parameters=RemoveRouted,
    reply=Outcomes,
    level="WRITE",
    errors=(404, 409, 422),
    headers=("Idempotency-Key",),
    prefix=CE_PREFIX,
)
