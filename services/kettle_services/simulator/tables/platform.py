"""`[[platform]]` in the file of a simulation: equal hosts, their links, and when they are there."""

from typing import Annotated

import msgspec

from kettle_services.simulator.checked_file import CheckedFile
from kettle_services.simulator.platforms.hosts import PLENTY, Count, Speed
from kettle_services.simulator.platforms.lives import Failures, read_outages
from kettle_services.simulator.platforms.platform import Level, Platform
from kettle_services.simulator.platforms.quantities import Quantity, seconds


class Hosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[platform]]`: equal hosts."""

    hosts: Count = 1
    cores: Count = 1
    speed: Speed = 1.0
    memory: Quantity = PLENTY
    gpus: int = 0
    link: Quantity = ""
    """Bandwidth of the link of each; without one they have no network."""
    latency: Quantity = 0.0
    levels: list[Level] = []
    """A tree of links in the place of one for each host: the first level is the one nearest to the centre."""
    mtbf: Quantity = 0.0
    """Mean time between a repair and the next failure; without one they do not fail."""
    repair: Quantity = 0.0
    """Mean time until a failure is repaired."""
    notice: Quantity = 0.0
    """How long before it goes, for good or for a while, a host is told, and takes no more jobs; for the model kettle."""
    outages: str = ""
    """Path of a CSV file in the place of failures at random: host, from, until (seconds)."""
    name: str = ""
    joins: Quantity = 0.0
    leaves: Quantity = ""
    """When they come and go; empty: never."""
    boot: Quantity = 0.0
    """How much later than `joins` they are there, as machines of a cloud."""
    price: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """What each costs for an hour between its coming and its going."""


def platform_of(file: CheckedFile, keys: tuple[str, ...], said: Hosts) -> Platform:
    """What one of the tables describes; raises the refusal of the file."""
    name = said.name or ("host" if len(keys) == 1 else f"host{keys[1]}-")
    if said.levels and (said.hosts != 1 or said.link):
        raise file.refuse(
            keys, "levels say how many hosts there are, and how they are linked: leave out hosts and link"
        )
    try:
        platform = _hosts(said, name).between(_joins(said), said.leaves).priced(said.price)
        platform = platform.noticed(said.notice)
        if said.mtbf or said.outages:
            return platform.failing(_failures(file, keys, said, platform))
        return platform
    except (ValueError, msgspec.ValidationError) as error:
        raise file.refuse(keys, str(error)) from error


def _joins(said: Hosts) -> float:
    return seconds(said.joins) + seconds(said.boot)


def _failures(
    file: CheckedFile, keys: tuple[str, ...], said: Hosts, platform: Platform
) -> list[Failures | None]:
    if said.outages and said.mtbf:
        raise file.refuse(keys, "either outages name a file, or mtbf says how often hosts fail")
    life = Failures(mean_up=seconds(said.mtbf), mean_down=seconds(said.repair))
    if not said.outages:
        return [life] * len(platform.hosts)
    try:
        outages = read_outages(file.path.parent / said.outages, [host.name for host in platform.hosts])
    except OSError as error:
        raise file.refuse((*keys, "outages"), f"{said.outages}: {error.strerror}") from error
    return [Failures(outages=outages.get(host.name, ())) for host in platform.hosts]


def _hosts(said: Hosts, name: str) -> Platform:
    if said.levels:
        return Platform.tree(
            said.levels, cores=said.cores, speed=said.speed, memory=said.memory, gpus=said.gpus, name=name
        )
    return Platform.star(
        hosts=said.hosts,
        cores=said.cores,
        speed=said.speed,
        memory=said.memory,
        gpus=said.gpus,
        link=said.link,
        latency=said.latency,
        name=name,
    )
