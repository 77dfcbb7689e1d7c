"""What is said of the DAG as a whole: limits of categories, files, and the job that runs it."""

from msgspec.structs import replace

from kettle.dag.building.drafts import Drafts
from kettle.dag.building.scope import Scope
from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import (
    Config,
    Environment,
    JobAttribute,
    JobstateLog,
    MaxJobs,
    Reject,
    Setting,
)
from kettle.dag.structure import Dot, NodeStatusFile


def say(command: Setting, drafts: Drafts, scope: Scope) -> None:
    """Carry out a command about the DAG as a whole."""
    match command:
        case MaxJobs():
            drafts.throttles[scope.category(command.category)] = command.limit
        case Dot():
            drafts.dot = command
        case NodeStatusFile():
            drafts.node_status_file = command
        case JobstateLog():
            drafts.jobstate_log = command.path
        case Reject():
            raise PlacelessFault("REJECT: this file is not to be run")
        case Config() | Environment() | JobAttribute():
            _say_of_job(command, drafts)


def _say_of_job(command: Config | Environment | JobAttribute, drafts: Drafts) -> None:
    job = drafts.job
    match command:
        case Config():
            if job.config not in {"", command.path}:
                raise PlacelessFault(
                    f"CONFIG {command.path}: this DAG already has the settings of {job.config}"
                )
            drafts.job = replace(job, config=command.path)
        case Environment():
            drafts.job = replace(
                job,
                environment=(*job.environment, command.assignments)
                if command.assignments
                else job.environment,
                inherited=(*job.inherited, *command.inherited),
            )
        case JobAttribute():
            drafts.job = replace(job, attributes=(*job.attributes, command.assignment))
