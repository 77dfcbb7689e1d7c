"""A simulated platform: hosts, and the links over which each of them reaches the others."""

from collections.abc import Sequence

import msgspec

from kettle_services.simulator.platforms.hosts import PLENTY, STAYS, Host
from kettle_services.simulator.platforms.network import Link
from kettle_services.simulator.platforms.quantities import bytes_per_second, mebibytes, microseconds, seconds


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
        joins: float | str = 0.0,
        leaves: float | str = "",
    ) -> "Platform":
        """
        Equal hosts, each at the end of a link of its own; `link` is the bandwidth, without one they have no network.

        They are there from the moment `joins` on, until `leaves` if that is said.

        Raises:
            QuantityError: a quantity is none.
            ValueError: there is no host, or they leave before they have joined.
        """
        if hosts < 1:
            raise ValueError("a platform has one host at least")
        there = microseconds(joins), microseconds(leaves) if leaves != "" else STAYS
        if STAYS < there[1] <= there[0]:
            raise ValueError("hosts leave after they have joined")
        made = tuple(
            Host(
                name=f"{name}{n}",
                cores=cores,
                speed=speed,
                memory=mebibytes(memory),
                gpus=gpus,
                joins=there[0],
                leaves=there[1],
            )
            for n in range(1, hosts + 1)
        )
        if not link:
            return cls(hosts=made)
        links = tuple(
            Link(name=f"{host.name}-link", bandwidth=bytes_per_second(link), latency=seconds(latency))
            for host in made
        )
        return cls(hosts=made, links=links, ways=tuple((n,) for n in range(hosts)))

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
