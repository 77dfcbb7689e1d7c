"""
One job of a person as it is submitted: its document, with the addresses of its files and what they are kept under.

Who submits it has permits for these addresses and nothing else: the gateway for jobs that it submits itself, the process of a DAG job
for those of its workflow.  Pure.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from kettle.prominence.addresses import OBJECTS, JobToken, Permit, file_name, output_place
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.job_ads import QUEUE_TIME_REASON, JobSubmission, Surroundings, submission
from kettle.prominence.nodes import WorkflowNode
from kettle.prominence.substitution import substituted
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import HoldCode, JobStatus

IDENTIFIER: Final = "ProminenceIdentifier"
"""Attribute: what the job's files are kept under, which nobody can guess."""
PARAMETERS: Final = "ProminenceParameters"
"""Attribute: the parameters of an instance of a factory, as JSON."""
HELD: Final = "Held: "
"""How the reason begins for which a job of a workflow was removed because it was held: nobody releases it, so it has ended."""
_UNSENT_S: Final = 3600
"""Seconds after which a job is given up whose files were announced and did not come."""
_UNSENT: Final = (
    f"JobStatus == {JobStatus.HELD:d} && HoldReasonCode is {HoldCode.SpoolingInput:d} && "
    f"time() - EnteredCurrentStatus > {_UNSENT_S}"
)
_ENDED: Final = (
    f"JobStatus == {JobStatus.HELD:d} && HoldReasonCode isnt {HoldCode.SpoolingInput:d} && "
    f"HoldReasonCode isnt {HoldCode.UserRequest:d}"
)
_REASON: Final = Expr(
    f'ifThenElse(HoldReasonCode is {HoldCode.SpoolingInput:d}, "its input files did not come", '
    f'ifThenElse(JobStatus == {JobStatus.HELD:d}, strcat("{HELD}", HoldReason), "{QUEUE_TIME_REASON}"))'
)


class Permits(msgspec.Struct, frozen=True, kw_only=True):
    """Which files somebody's jobs may fetch and send."""

    arch: str
    """What processor images are for, as machine ads spell it."""
    uploads: Permit
    """Of the person."""
    groups: list[Permit] = []
    """Of the groups in which the person is."""
    outputs: Permit
    job: Permit
    """With which a job gets a token of its own."""

    def environment(self, identifier: str) -> dict[str, str]:
        """By which a running job asks the gateway."""
        return {
            "PROMINENCE_URL": self.job.base.removesuffix(OBJECTS),
            "PROMINENCE_TOKEN": JobToken.of(self.job, identifier).text(),
        }

    def upload(self, name: str) -> str:
        """
        From where an upload is fetched: behind a group's name it is that group's, and the longest name counts.

        Raises DocumentRefused: the person is in no such group.
        """
        if "/" not in name:
            return self.uploads.url(name)
        group = max(
            (each for each in self.groups if name.startswith(f"{each.owner}/")),
            key=lambda each: len(each.owner),
            default=None,
        )
        if group is None:
            sentence = f"Not authorized to access {name}: you are in no group of this name"
            raise DocumentRefused([Fault("", sentence)])
        return group.url(name[len(group.owner) + 1 :])


def instance(node: WorkflowNode, permits: Permits, identifier: str, *, workflow: int = 0) -> JobSubmission:
    """
    A job of a document; `identifier`: what its results are kept under.

    Raises DocumentRefused: it asks for something that no machine does, or for a file of somebody else.
    """
    directories = {substituted(path, node.parameters) for path in node.job.output_dirs}

    def output(name: str) -> str:
        place = output_place(permits.outputs.owner, identifier, name, directory=name in directories)
        try:
            file_name(place.name)  # before the job has run for nothing
        except ValueError as error:
            raise DocumentRefused([Fault("", str(error))]) from error
        return permits.outputs.url(place.name)

    around = Surroundings(
        arch=permits.arch,
        upload=permits.upload,
        output=output,
        parameters=node.parameters,
        workflow=workflow,
        environment=permits.environment(identifier),
    )
    made = submission(node.job, around)
    own: Ad = {
        IDENTIFIER: identifier,
        "PeriodicRemove": _given_up(made.ad.get("PeriodicRemove"), of_workflow=bool(workflow)),
        "PeriodicRemoveReason": _REASON,
    }
    if node.parameters:
        own[PARAMETERS] = msgspec.json.encode(node.parameters).decode()
    return replace(made, ad={**made.ad, **own})


def _given_up(own: Scalar | None, *, of_workflow: bool) -> Expr:
    """
    When a job leaves the queue without having run, by its document, or because nothing will come of it any more.
    """
    texts = [own.expr] if isinstance(own, Expr) else []
    texts += [_UNSENT, _ENDED] if of_workflow else [_UNSENT]
    return Expr(" || ".join(f"({text})" for text in texts))
