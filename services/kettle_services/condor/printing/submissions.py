"""What condor_submit prints: of clusters that are in the queue or would be, and of a description's lines."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kettle_wire.codes import JobStatus

if TYPE_CHECKING:
    from kettle.submit import Submission
    from kettle_wire.ads.types import Ad, Scalar


class Queued(NamedTuple):
    """A cluster that is in the queue, or would be."""

    submission: "Submission"
    cluster: int

    def ads(self) -> "Iterator[Ad]":
        """Of its jobs, one after the other."""
        return (self.submission.queued(proc, self.cluster) for proc in range(self.submission.count))


def warnings(submissions: "Iterable[Submission]", *, unused: bool) -> Iterator[str]:
    """What a description says of itself, and its lines that mean nothing."""
    for each in submissions:
        yield from (f"WARNING: {warning}\n" for warning in each.warnings)
        for line in each.unused if unused else ():
            what = (
                f"the Queue variable '{line.name}'"
                if line.of_queue
                else f"the line '{line.name} = {line.text}'"
            )
            yield f"WARNING: {what} was unused by condor_submit. Is it a typo?\n"


def said(clusters: list[Queued], how: str, done: str = "submitted") -> list[str]:
    """What is printed when it is done; `how`: `terse`, `verbose` or neither."""
    if how == "terse":
        return [f"{each.cluster}.0 - {each.cluster}.{each.submission.count - 1}\n" for each in clusters]
    if how == "verbose":
        return _verbose(clusters)
    first = "Submitting job(s)" if done == "submitted" else "Dry-Run job(s)"
    dots = "." * sum(each.submission.count for each in clusters)
    last = [f"{each.submission.count} job(s) {done} to cluster {each.cluster}.\n" for each in clusters]
    return [first, dots, "\n", *last]


def _verbose(clusters: list[Queued]) -> list[str]:
    from kettle.classad import ClassAd, write_long

    return [
        text
        for each in clusters
        for proc, ad in enumerate(each.ads())
        for text in (f"\n** Proc {each.cluster}.{proc}:\n", write_long(ClassAd.from_wire(ad)))
    ]


def written(clusters: list[Queued], *, full: bool) -> Iterator[str]:
    """The ads of all jobs as a dry run leaves them; `full`: each one whole."""
    from kettle.classad import ClassAd, write_long

    for each in clusters:
        if full:
            yield from (write_long(ClassAd.from_wire(ad)) for ad in each.ads())
        else:
            yield from _deltas(each.submission, each.cluster)


def _deltas(submission: "Submission", cluster: int) -> Iterator[str]:
    """The lines of each job: the first of a cluster whole, of the others what they have of their own."""
    for proc in range(submission.count):
        ad = submission.queued(proc, cluster)
        own: Ad = {"ProcId": proc, "JobStatus": ad.get("JobStatus", int(JobStatus.IDLE))}
        if proc:
            own |= {name: ad[name] for name in submission.columns}
        else:
            own = {name: value for name, value in ad.items() if name not in own} | own
        yield "".join(f"{name}={_text(value)}\n" for name, value in own.items())


def _text(value: "Scalar") -> str:
    from kettle.classad import unparse
    from kettle_wire.ads.types import Expr

    return value.expr if isinstance(value, Expr) else unparse(value)
