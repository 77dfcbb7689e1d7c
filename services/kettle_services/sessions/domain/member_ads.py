"""What the jobs of a session are: the ad with which a batch of members is submitted."""

from collections.abc import Sequence
from typing import Final

from kettle.jobs.needed_tokens import PERMISSIONS, RESOURCE
from kettle.jobs.needed_tokens import SERVICES as OAUTH_SERVICES
from kettle.jobs.quoting import join_v2
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.ads import Ad, Expr
from kettle_wire.codes import Universe
from kettle_wire.job_tokens import NeededToken
from kettle_wire.session_attributes import FILES, SERVICES, SHARED_WITH
from kettle_wire.sessions import MemberPlan, MemberRole

_KIB: Final = 1024


def member_ad(session: InteractiveSession, role: MemberRole, site: str) -> Ad:
    """
    The ad of the members of one order: `site` is where they are to run, empty: anywhere.

    Programs are found on the machine, or in the image: nothing of the owner's files is touched on the access point.
    """
    plan = session.plan.head if role == "head" else session.plan.worker
    assert plan is not None, "a session without workers orders none"
    program, *words = plan.command
    absolute = program.startswith("/")
    ad: Ad = {
        "JobUniverse": int(Universe.VANILLA),
        "Cmd": program if absolute else "/usr/bin/env",
        "TransferExecutable": False,
        "Arguments": join_v2(words if absolute else plan.command),
        "Environment": join_v2([f"{name}={value}" for name, value in _environment(session, plan).items()]),
        "In": "/dev/null",
        "TransferIn": False,
        "Out": "out",
        "Err": "err",
        "ShouldTransferFiles": "YES",
        "WhenToTransferOutput": "ON_EXIT",
        "TransferOutput": "",
        "RequestCpus": plan.cpus,
        "RequestMemory": plan.memory,
        "RequestDisk": plan.disk * _KIB,
        "Requirements": Expr(_requirements(session, plan, site)),
        "JobBatchName": session.name,
        "JobMachineAttrs": "SiteName",
        "LeaveJobInQueue": Expr("false"),
    }
    if plan.gpus:
        ad["RequestGPUs"] = plan.gpus
    if session.plan.interactive in {"all", role}:
        ad["InteractiveJob"] = True
    if session.plan.image:
        ad["ContainerImage"] = session.plan.image
    if session.plan.files:
        ad[FILES] = True
    if role == "head":
        ad |= _tokens(session.plan.tokens)
    if plan.services:
        ad[SERVICES] = plan.services
    if session.target.shared_with:
        ad[SHARED_WITH] = ", ".join(session.target.shared_with)
    if role == "worker" and session.plan.worker_life:
        ad["AllowedExecuteDuration"] = int(session.plan.worker_life)
    return ad


def _tokens(needed: Sequence[NeededToken]) -> Ad:
    """As the submit command `use_oauth_services` and its companions have it."""
    if not needed:
        return {}
    words = [f"{each.service}*{each.handle}" if each.handle else each.service for each in needed]
    ad: Ad = {OAUTH_SERVICES: ",".join(words)}
    for each in needed:
        if each.scopes:
            ad[f"{PERMISSIONS}{each.name}"] = " ".join(each.scopes)
        if each.audiences:
            ad[f"{RESOURCE}{each.name}"] = ",".join(each.audiences)
    return ad


def _environment(session: InteractiveSession, plan: MemberPlan) -> dict[str, str]:
    return {**plan.environment, "KETTLE_SESSION": session.id, "KETTLE_SESSION_NAME": session.name}


def _requirements(session: InteractiveSession, plan: MemberPlan, site: str) -> str:
    clauses = [f"({session.plan.requirements})"] if session.plan.requirements else []
    if plan.gpus:  # machines that know nothing of GPUs would take it, and give it none
        clauses.append("(TARGET.GPUs >= RequestGPUs)")
    if site:
        text = site.replace("\\", "\\\\").replace('"', '\\"')
        clauses.append(f'(TARGET.SiteName =?= "{text}")')
    clauses.append(
        "(TARGET.Cpus >= RequestCpus) && (TARGET.Memory >= RequestMemory) && (TARGET.Disk >= RequestDisk)"
    )
    return " && ".join(clauses)
