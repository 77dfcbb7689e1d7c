"""The plan of a new session: a profile, and what somebody wants otherwise, as far as the profile lets it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.published.services import ServiceError, parse_services
from kettle.published.sharing import parse_sharing
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.sessions.domain.profiles import Profile
from kettle_wire.commands.sessions import NewSession
from kettle_wire.sessions import MemberPlan, SessionKind, SessionPlan, SessionTarget

_COMMANDS: Final[Mapping[SessionKind, list[str]]] = {
    "dask": ["{python}", "-m", "kettle.dask.scheduler", "--session", "{session}"],
    "notebook": [
        "{python}", "-m", "jupyterlab", "--no-browser", "--ip", "127.0.0.1", "--port", "8888",
        "--ServerApp.base_url=/jobs/{job}/lab/", "--IdentityProvider.token=",
    ],
}  # fmt: skip
_WORKER: Final = ["{python}", "-m", "kettle.dask.worker", "--session", "{session}"]


class _Size(msgspec.Struct, frozen=True, kw_only=True):
    """What a job takes."""

    cpus: int
    memory: int
    gpus: int
    disk: int


class NotPossible(Exception):  # noqa: N818 - a refusal is an answer
    """A session that cannot be; the message is one sentence for who wants it."""


def profile_of(new: NewSession, profiles: Mapping[str, Profile]) -> tuple[str, Profile]:
    """The profile that is meant; raises NotPossible: there is none."""
    name = new.profile or new.kind
    profile = profiles.get(name)
    if profile is None:
        if not new.profile:
            of_kind = [each for each, known in profiles.items() if known.kind == new.kind]
            if len(of_kind) == 1:
                return of_kind[0], profiles[of_kind[0]]
            names = ", ".join(of_kind) or "none"
            raise NotPossible(f"say which profile: those of the kind {new.kind} are: {names}")
        raise NotPossible(
            f"there is no profile {name}{did_you_mean(name, profiles)}; kettle session profiles lists them"
        )
    if profile.kind != new.kind:
        raise NotPossible(f"the profile {name} is for sessions of the kind {profile.kind}, not {new.kind}")
    return name, profile


def planned(new: NewSession, name: str, profile: Profile, session: str) -> tuple[SessionPlan, SessionTarget]:
    """What the session is to be; raises NotPossible for what the profile does not let somebody have."""
    sizes = _Size(
        cpus=_size(profile, name, "cpus", new.size.cpus),
        memory=_size(profile, name, "memory", new.size.memory),
        gpus=_size(profile, name, "gpus", new.size.gpus),
        disk=_size(profile, name, "disk", new.size.disk),
    )
    workers = _workers(new, name, profile)
    if new.local and new.kind != "dask":
        raise NotPossible(f"a session of the kind {new.kind} cannot be local: only schedulers of Dask are")
    if refusal := services_refusal(new.services) or sharing_refusal(new.share):
        raise NotPossible(refusal)
    command = new.command or profile.command or _COMMANDS.get(new.kind, [])
    if not command:
        raise NotPossible("a session of the kind process says which program: command")
    worker_command = profile.worker_command or (_WORKER if new.kind == "dask" else [])

    def words(said: list[str]) -> list[str]:
        return [each.replace("{python}", profile.python).replace("{session}", session) for each in said]

    environment = {**profile.environment, **new.environment}
    usual = _Size(cpus=profile.head_cpus, memory=profile.head_memory, gpus=0, disk=profile.head_disk)
    of_head = usual if worker_command else sizes
    head = MemberPlan(
        command=words(command),
        services="" if new.local else new.services or profile.services,
        environment=environment,
        cpus=of_head.cpus,
        memory=of_head.memory,
        gpus=of_head.gpus,
        disk=of_head.disk,
    )
    worker: MemberPlan | None = None
    if worker_command:
        worker = MemberPlan(
            command=words(worker_command),
            environment=environment,
            cpus=sizes.cpus,
            memory=sizes.memory,
            gpus=sizes.gpus,
            disk=sizes.disk,
        )
    plan = SessionPlan(
        profile=name,
        head=head,
        worker=worker,
        image=_image(new, name, profile),
        requirements=profile.requirements,
        site=new.site or profile.site,
        spread=profile.spread if new.spread is None else new.spread,
        worker_life=profile.worker_life,
        interactive=profile.interactive,
        local=new.local,
        grace=profile.grace,
        files=sorted(new.files),
        tokens=new.tokens,
    )
    target = SessionTarget(
        workers=workers,
        adapt=new.adapt,
        life=_shorter(profile.life, new.life),
        idle=_shorter(profile.idle, new.idle),
        shared_with=new.share,
    )
    return plan, target


def services_refusal(text: str) -> str:
    """Why a head cannot publish this; empty: it can."""
    try:
        parse_services(text)
    except ServiceError as error:
        return f"services: {error}"
    return ""


def sharing_refusal(names: Sequence[str]) -> str:
    """Why a session cannot be shared with these; empty: it can."""
    try:
        parse_sharing(", ".join(names))
    except ServiceError as error:
        return f"share: {error}"
    return ""


def workers_refusal(profile: Profile | None, workers: int) -> str:
    """Why a session may not have so many; empty: it may. `profile`: None if it is not there any more."""
    if profile is None:
        return ""
    least, most = profile.workers_allowed
    if least <= workers <= most:
        return ""
    return f"the profile lets a session have from {least} to {most} workers, not {workers}"


def _workers(new: NewSession, name: str, profile: Profile) -> int:
    if not profile.has_workers:
        if new.size.workers or new.adapt is not None:
            raise NotPossible(f"a session of the profile {name} has no workers: leave their number out")
        return 0
    if new.adapt is not None and new.adapt.minimum > new.adapt.maximum:
        raise NotPossible(
            f"adapt: the smallest number ({new.adapt.minimum}) is larger than the largest ({new.adapt.maximum})"
        )
    wanted = profile.workers if new.size.workers is None else new.size.workers
    if new.adapt is not None:
        wanted = max(new.adapt.minimum, min(new.adapt.maximum, wanted))
    if refusal := workers_refusal(profile, wanted):
        raise NotPossible(refusal)
    return wanted


def _size(profile: Profile, name: str, what: str, wanted: int | None) -> int:
    usual: int = getattr(profile, what)
    if wanted is None or wanted == usual:
        return usual
    allowed: tuple[int, int] | None = getattr(profile, f"{what}_allowed")
    if allowed is None:
        raise NotPossible(f"{what} of the profile {name} is {usual}, and nobody chooses another one")
    if not allowed[0] <= wanted <= allowed[1]:
        raise NotPossible(f"{what} of the profile {name} is from {allowed[0]} to {allowed[1]}, not {wanted}")
    return wanted


def _image(new: NewSession, name: str, profile: Profile) -> str:
    if not new.image or new.image == profile.image:
        return profile.image
    for pattern in profile.images:
        if new.image == pattern or (pattern.endswith("*") and new.image.startswith(pattern[:-1])):
            return new.image
    if not profile.images and not profile.image:
        return new.image  # a profile without an image leaves it to who asks
    known = ", ".join([*filter(None, [profile.image]), *profile.images])
    raise NotPossible(f"the profile {name} has no image {new.image}; it has: {known}")


def _shorter(usual: float, wanted: float | None) -> float:
    """A life or idle time may be shorter than that of the profile, and is never longer."""
    if wanted is None:
        return usual
    return min(filter(None, (usual, wanted)), default=0.0)


def limit_refusal(usual: float, wanted: float, what: str) -> str:
    """Why a session may not have this time; empty: it may. `usual`: that of its profile."""
    if usual and (not wanted or wanted > usual):
        return f"{what} is at most {usual:g} s in this profile"
    return ""
