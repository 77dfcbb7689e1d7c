"""A simulated platform: hosts, and the links over which each of them reaches the others."""

from collections.abc import Sequence

import msgspec

from kettle_services.simulator.platforms.hosts import PLENTY, STAYS, Count, Host
from kettle_services.simulator.platforms.lives import Failures
from kettle_services.simulator.platforms.network import Link
from kettle_services.simulator.platforms.quantities import bytes_per_second, mebibytes, microseconds, seconds


class Level(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One level of a tree of links."""

    width: Count
    """How many hang on each switch of the level above."""
    link: float | str
    latency: float | str = 0.0


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """
    Hosts and links; `ways` has for each host the numbers of the links to where all ways meet, from the host on.

    Two hosts reach each other over the links that only one of them has on its way.
    """

    hosts: tuple[Host, ...]
    links: tuple[Link, ...] = ()
    ways: tuple[tuple[int, ...], ...] = ()

    @property
    def cores(self) -> int:
        """Of all hosts."""
        return sum(host.cores for host in self.hosts)

    @classmethod
    def star(
        cls,
        *,
        hosts: int,
        cores: int = 1,
        speed: float = 1.0,
        memory: float | str = PLENTY,
        gpus: int = 0,
        link: float | str = "",
        latency: float | str = 0.0,
        name: str = "host",
    ) -> "Platform":
        """
        Equal hosts, each at the end of a link of its own; `link` is the bandwidth, without one they have no network.

        Raises QuantityError: a quantity is none.
        """
        if hosts < 1:
            raise ValueError("a platform has one host at least")
        made = tuple(
            Host(name=f"{name}{n}", cores=cores, speed=speed, memory=mebibytes(memory), gpus=gpus)
            for n in range(1, hosts + 1)
        )
        if not link:
            return cls(hosts=made)
        links = tuple(
            Link(name=f"{host.name}-link", bandwidth=bytes_per_second(link), latency=seconds(latency))
            for host in made
        )
        return cls(hosts=made, links=links, ways=tuple((n,) for n in range(hosts)))

    @classmethod
    def tree(
        cls,
        levels: Sequence["Level"],
        *,
        cores: int = 1,
        speed: float = 1.0,
        memory: float | str = PLENTY,
        gpus: int = 0,
        name: str = "host",
    ) -> "Platform":
        """
        Equal hosts at the leaves of a tree of switches: of each thing on a level there hang as many of the next one, each by a link.

        A cluster behind one backbone is a tree whose first level has a width of 1.

        Raises QuantityError: a quantity is none.
        """
        if not levels:
            raise ValueError("a tree has one level at least")
        links: list[Link] = []
        ways: list[tuple[int, ...]] = [()]
        for depth, level in enumerate(levels, 1):
            above, ways = ways, []
            bandwidth, latency = bytes_per_second(level.link), seconds(level.latency)
            for way in above:
                for _ in range(level.width):
                    ways.append((len(links), *way))
                    links.append(
                        Link(name=f"{name}-level{depth}-{len(ways)}", bandwidth=bandwidth, latency=latency)
                    )
        hosts = tuple(
            Host(name=f"{name}{n}", cores=cores, speed=speed, memory=mebibytes(memory), gpus=gpus)
            for n in range(1, len(ways) + 1)
        )
        return cls(hosts=hosts, links=tuple(links), ways=tuple(ways))

    def failing(self, failures: Sequence[Failures | None]) -> "Platform":
        """A platform with these hosts and links, whose hosts fail, each as is said at its place."""
        hosts = (
            msgspec.structs.replace(host, failures=each)
            for host, each in zip(self.hosts, failures, strict=True)
        )
        return msgspec.structs.replace(self, hosts=tuple(hosts))

    def between(self, joins: float | str, leaves: float | str = "") -> "Platform":
        """
        The platform if all its hosts come at one moment and leave at another; empty: they stay.

        Raises:
            QuantityError: a moment is none.
            ValueError: they leave before they have joined.
        """
        begin, end = microseconds(joins), microseconds(leaves) if leaves != "" else STAYS
        if STAYS < end <= begin:
            raise ValueError("hosts leave after they have joined")
        hosts = tuple(msgspec.structs.replace(host, joins=begin, leaves=end) for host in self.hosts)
        return msgspec.structs.replace(self, hosts=hosts)

    def noticed(self, notice: float | str) -> "Platform":
        """
        The platform if each host is told so long before it goes, and takes no more jobs from then on.

        Raises QuantityError: it is no duration.
        """
        before = microseconds(notice)
        hosts = tuple(msgspec.structs.replace(host, notice=before) for host in self.hosts)
        return msgspec.structs.replace(self, hosts=hosts) if before else self

    def priced(self, price: float) -> "Platform":
        """The platform if each host costs so much for an hour."""
        hosts = (
            tuple(msgspec.structs.replace(host, price=price) for host in self.hosts) if price else self.hosts
        )
        return msgspec.structs.replace(self, hosts=hosts)

    def with_more(self, hosts: Sequence[Host]) -> "Platform":
        """With further hosts, which have no network of their own."""
        ways = (*self.ways, *((),) * len(hosts)) if self.ways else ()
        return Platform(hosts=(*self.hosts, *hosts), links=self.links, ways=ways)

    def core_seconds(self, begin: int, end: int) -> float:
        """
        What all hosts have between two moments (microseconds) in which they are there, whether they fail or not.
        """
        return (
            sum(
                host.cores
                * max(0, (end if host.leaves == STAYS else min(host.leaves, end)) - max(host.joins, begin))
                for host in self.hosts
            )
            / 1e6
        )

    def below(self, link: Link) -> "Platform":
        """The whole of it behind one more link, as a site is behind its connection to others."""
        number = len(self.links)
        ways = self.ways or ((),) * len(self.hosts)
        return Platform(
            hosts=self.hosts, links=(*self.links, link), ways=tuple((*way, number) for way in ways)
        )

    def __add__(self, other: "Platform") -> "Platform":
        """Both, with ways that meet."""
        shift = len(self.links)
        mine = self.ways or ((),) * len(self.hosts)
        others = other.ways or ((),) * len(other.hosts)
        return Platform(
            hosts=self.hosts + other.hosts,
            links=self.links + other.links,
            ways=(*mine, *(tuple(link + shift for link in way) for way in others)),
        )

    def way(self, start: int, end: int) -> Sequence[int]:
        """The links between two hosts, by their numbers."""
        there, back = self.ways[start], self.ways[end]
        return [link for link in there if link not in back] + [link for link in back if link not in there]
