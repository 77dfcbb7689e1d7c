"""
Profiles: named kinds of sessions, as a file of the site has them, and the plan of a session that is made of one.

A file has a table for each, named after it:

    [cms-2026]
    kind = "dask"
    image = "/cvmfs/unpacked.cern.ch/registry/cms:2026"
    workers = 4
    cpus_allowed = [1, 8]
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

from kettle.published.services import ServiceError, parse_services
from kettle.runtime.toml_lines import TomlLines
from kettle.terminal.nearest_names import did_you_mean
from kettle.worker_pools.faults import Fault, PoolFileRefused, ValueRefused
from kettle_wire.sessions import MOST_WORKERS, InteractiveMembers, SessionKind

_KINDS: Final = ("dask", "notebook", "process")
_NAME_LONGEST: Final = 64
_LIKELY: Final = {"cores": "cpus", "ram": "memory", "mem": "memory", "gpu": "gpus", "cpu": "cpus", "container_image": "image",
                  "docker_image": "image", "env": "environment", "timeout": "idle", "lifetime": "life", "max_workers": "workers_allowed"}  # fmt: skip
"""What else people call a key."""
_TIMES: Final = frozenset({"grace", "idle", "life", "worker_life"})
_MEMORY: Final = frozenset({"disk", "head_disk", "head_memory", "memory"})
"""Amounts, in MiB where no unit is said."""
_AT_LEAST_ONE: Final = frozenset({"cpus", "disk", "memory"})


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named kind of session; sizes are those of each worker, or of the head where there are none."""

    kind: SessionKind
    title: str = ""
    """For people who choose."""
    image: str = ""
    python: str = "python3"
    """The interpreter in the image, or on the machines, that runs the programs of Kettle."""
    command: list[str] = []
    """Of the head; `{python}` in it is that one. Empty: that of the kind."""
    worker_command: list[str] = []
    services: str = ""
    """What the head publishes, in the words of the submit command `services`."""
    environment: dict[str, str] = {}
    requirements: str = ""
    interactive: InteractiveMembers = "head"
    """Which of its jobs are interactive, as by `interactive = true` of a submission: a machine that keeps room for such jobs takes them."""
    site: str = ""
    spread: bool = False
    """Workers may run at other sites than the head."""
    cpus: int = 1
    memory: int = 1024
    """MiB."""
    gpus: int = 0
    disk: int = 1024
    """MiB."""
    cpus_allowed: tuple[int, int] | None = None
    """The smallest and the largest that may be asked for; None: only what the profile says."""
    memory_allowed: tuple[int, int] | None = None
    gpus_allowed: tuple[int, int] | None = None
    disk_allowed: tuple[int, int] | None = None
    workers: int = 0
    workers_allowed: tuple[int, int] = (0, MOST_WORKERS)
    head_cpus: int = 1
    head_memory: int = 1024
    """MiB."""
    head_disk: int = 1024
    """MiB; these three are of sessions with workers."""
    life: float = 0.0
    """Seconds; 0: without end."""
    idle: float = 0.0
    worker_life: float = 0.0
    grace: float = 60.0
    images: list[str] = []
    """Other images that may be asked for, `*` at the end stands for anything; none: no other one."""

    @property
    def has_workers(self) -> bool:
        """Whether sessions of this kind have any."""
        return self.kind == "dask" or bool(self.worker_command)


def built_in(python: str) -> dict[str, Profile]:
    """
    Those that there are without a file, which run what is installed where this service runs; `python`: its interpreter.
    """
    day = 86_400.0
    allowed = (1, 1_000)
    memory = (128, 10_000_000)
    disk = (16, 100_000_000)
    return {
        "dask": Profile(
            kind="dask",
            title="A cluster of Dask",
            python=python,
            memory=1024,
            cpus_allowed=allowed,
            memory_allowed=memory,
            gpus_allowed=(0, 100),
            disk_allowed=disk,
            idle=day,
            head_memory=512,
        ),
        "notebook": Profile(
            kind="notebook",
            title="A notebook",
            python=python,
            memory=2048,
            cpus_allowed=allowed,
            memory_allowed=memory,
            gpus_allowed=(0, 100),
            disk_allowed=disk,
            services="lab:8888/http",
        ),
        "process": Profile(
            kind="process",
            title="A program of one's own",
            python=python,
            cpus_allowed=allowed,
            memory_allowed=memory,
            gpus_allowed=(0, 100),
            disk_allowed=disk,
        ),
    }


def read_profiles(text: str, path: str) -> dict[str, Profile]:
    """
    The profiles of a file; `path` is what refusals call it.

    Raises:
        PoolFileRefused: it is no TOML, or has no profiles; everything that is wrong is told at once.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PoolFileRefused([Fault(path, f"it is no TOML: {error}")]) from error
    lines = TomlLines(text)
    faults: list[Fault] = []

    def wrong(keys: Sequence[str], sentence: str) -> None:
        line = lines.line_of(keys)
        faults.append(Fault(f"{path}:{line}" if line else path, sentence))

    found: dict[str, Profile] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            wrong((name,), f"'{name}' stands outside of a table: each profile is one, as in [cms-2026]")
        elif (profile := _read(name, cast("dict[str, object]", table), wrong)) is not None:
            found[name] = profile
    if not tables:
        wrong((), "there is no profile in it: each is a table, as in [cms-2026]")
    if faults:
        raise PoolFileRefused(faults)
    return found


def _read(
    name: str, table: Mapping[str, object], wrong: Callable[[Sequence[str], str], None]
) -> Profile | None:
    known, good = Profile.__struct_fields__, True
    if len(name) > _NAME_LONGEST or not name.isprintable():
        wrong((name,), f"the name of a profile has {_NAME_LONGEST} printable characters at most")
        good = False
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            likely = _LIKELY.get(key)
            hint = f"; did you mean '{likely}'?" if likely else did_you_mean(key, known)
            wrong((name, key), f"a profile has no '{key}'{hint}")
            good = False
            continue
        try:
            values[key] = _value(key, value)
            msgspec.convert({"kind": "process", key: values[key]}, Profile)
        except ValueRefused as refusal:
            wrong((name, key), f"{key}: {refusal}")
            good = False
        except msgspec.ValidationError as error:
            wrong((name, key), f"{key}: {str(error).partition(' - at ')[0]}")
            good = False
    if "kind" not in table:
        wrong((name,), f"the profile {name} does not say of which kind it is: kind = {' or '.join(_KINDS)}")
        good = False
    if not good:
        return None
    profile = msgspec.convert(values, Profile)
    rules = list(_rules(profile))
    for key, sentence in rules:
        wrong((name, key), sentence)
    return None if rules else profile


def _value(key: str, value: object) -> object:
    """What a file has in a form for people; raises ValueRefused."""
    from kettle.worker_pools.values import megabytes, span  # the units of submissions, where there is a file

    if key in _TIMES:
        return span(value)
    if key in _MEMORY:
        return megabytes(value)
    if key in {"disk_allowed", "memory_allowed"} and isinstance(value, list):
        return [megabytes(each) for each in cast("list[object]", value)]
    return value


def _rules(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.kind == "process" and not profile.command and profile.worker_command:
        yield "worker_command", "a program with workers says its own command, too"
    for key in ("cpus", "memory", "gpus", "disk", "workers"):
        value: int = getattr(profile, key)
        allowed: tuple[int, int] | None = getattr(profile, f"{key}_allowed")
        if value < (1 if key in _AT_LEAST_ONE else 0):
            yield key, f"{key} = {value} is too small"
        if allowed is None:
            continue
        if allowed[0] > allowed[1] or allowed[0] < 0:
            yield f"{key}_allowed", f"{key}_allowed is [smallest, largest], as in [1, 8]"
        elif not allowed[0] <= value <= allowed[1]:
            yield f"{key}_allowed", f"what the profile itself says ({value}) is not within it"
    yield from _languages(profile)
    if profile.worker_life and profile.worker_life < 4 * profile.grace:
        yield "worker_life", f"a worker lives for at least four times its grace time of {profile.grace:g} s"


def _languages(profile: Profile) -> Iterator[tuple[str, str]]:
    """What is written in a language of its own, as the jobs of a session will have it."""
    try:
        parse_services(profile.services)
    except ServiceError as error:
        yield "services", f"services: {error}"
    if profile.requirements:
        from kettle.classad import ClassAdParseError, parse  # where somebody requires something

        try:
            parse(profile.requirements)
        except ClassAdParseError as error:
            yield "requirements", f"requirements: {error}"
