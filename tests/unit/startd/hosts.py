"""Machines and messages for the tests of what a startd decides."""

from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import whole_machine
from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import DEFAULTS, PolicyExpressions
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.commands.startd import (
    Activation,
    ClaimKey,
    ClaimsDecided,
    InputFile,
    RequestClaims,
)
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report

NOW = Now(clock=1000.0, time=5000.0)
KEY = ClaimKey("c1", "s1")
TOTAL = Resources(cpus=4, memory=1000, disk=10_000)


def machine(start: str = "true", **given: Scalar) -> Machine:
    """One with these attributes; those that are named as expressions of its policy are these."""
    policy = {name: str(given[name]) for name in DEFAULTS if name in given}
    attributes = {name: value for name, value in given.items() if name not in policy}
    facts = Facts(
        name="host",
        total=TOTAL,
        detected=TOTAL,
        slots=whole_machine(TOTAL),
        policy=PolicyExpressions({"START": start, **policy}),
        attributes=attributes,
    )
    return Machine(facts, capability="right")


def request(
    *keys: ClaimKey, ad: Ad | None = None, capability: str = "right", slot: str = "slot1@host"
) -> RequestClaims:
    job: Ad = {"RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 100, "Requirements": True, **(ad or {})}
    return RequestClaims(
        schedd="schedd",
        slot=slot,
        capability=capability,
        submitter="alice",
        job=job,
        claims=list(keys),
        lease=60.0,
    )


def claimed(host: Machine, *keys: ClaimKey, **job: Scalar) -> ClaimsDecided:
    reply, changes = requests.request_claims(host, request(*(keys or (KEY,)), ad=job), NOW)
    for change in changes:
        host.apply(change)
    return reply


def activation(
    proc: int = 0, *, key: ClaimKey = KEY, attempt: int = 1, name: str = "file", **ad: Scalar
) -> Activation:
    file = InputFile(name=name, mode=0o644, size=0, sha256="", data=b"")
    return Activation(
        key=key, job=JobId(1, proc), attempt=attempt, ad=dict(ad), inputs=[file], shadow="shadow"
    )


def activated(host: Machine, what: Activation) -> int:
    result, changes = attempts.activate(host, what, NOW)
    for change in changes:
        host.apply(change)
    return result.code


def report(proc: int = 0, sequence: int = 2) -> Report:
    return Report(
        claim="c1",
        attempt=1,
        sequence=sequence,
        job=JobId(1, proc),
        body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0))),
    )
