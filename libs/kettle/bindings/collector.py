"""Collector: what the parts of the pool say of themselves."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn

from kettle import classad
from kettle.bindings.ads import ClassAd
from kettle.bindings.daemon_locations import placed
from kettle.bindings.enumerations import AdType, DaemonType
from kettle.bindings.errors import HTCondorLocateError, NotCarriedOutError
from kettle.bindings.job_selection import Constraint, constraint_of
from kettle.bindings.pool_connections import ask, known, pool_at
from kettle.client import PoolFile

_TYPES: Final[Mapping[AdType, str]] = {
    AdType.Any: "",
    AdType.Startd: "Machine",
    AdType.Slot: "Machine",
    AdType.StartDaemon: "StartDaemon",
    AdType.Schedd: "Scheduler",
    AdType.Master: "DaemonMaster",
    AdType.Submitter: "Submitter",
    AdType.Collector: "Collector",
    AdType.Negotiator: "Negotiator",
    AdType.License: "License",
    AdType.HAD: "HAD",
    AdType.Generic: "Generic",
    AdType.Credd: "CredD",
    AdType.Grid: "Grid",
    AdType.Placementd: "PlacementD",
    AdType.Defrag: "Defrag",
    AdType.Accounting: "Accounting",
}
_DAEMONS: Final[Mapping[DaemonType, AdType]] = {
    DaemonType.Any: AdType.Any,
    DaemonType.Master: AdType.Master,
    DaemonType.Schedd: AdType.Schedd,
    DaemonType.Startd: AdType.Startd,
    DaemonType.Collector: AdType.Collector,
    DaemonType.Negotiator: AdType.Negotiator,
    DaemonType.Credd: AdType.Credd,
    DaemonType.Placementd: AdType.Placementd,
    DaemonType.HAD: AdType.HAD,
    DaemonType.Generic: AdType.Generic,
}


class Collector:
    """
    The collector of a pool: without `pool` of the one that is found here, else of HOST:PORT (of its bus).
    """

    ads: ClassVar[type[ClassAd]] = ClassAd

    def __init__(self, pool: str | ClassAd | Sequence[str] | None = None, security: Any = None) -> None:
        del security  # the connection identifies the caller
        self._pool: PoolFile | None = None
        match pool:
            case None | "":
                pass
            case str():
                self._pool = _first(pool.split(","))
            case ClassAd():
                self._pool = pool_at(str(pool["MyAddress"]))
            case _:
                self._pool = _first(pool)

    def query(
        self,
        ad_type: AdType = AdType.Any,
        constraint: Constraint = None,
        projection: Sequence[str] | None = None,
        statistics: str | None = None,
    ) -> list[Any]:
        """The ads of a type that meet a constraint."""
        del statistics  # these are in the ads, asked for or not
        pool = known(self._pool)
        kind, wanted = _TYPES.get(AdType(ad_type)), constraint_of(constraint)
        if kind is None:
            raise NotCarriedOutError(f"ads of type {AdType(ad_type).name} are nobody's to see")
        found = ask(
            pool, lambda client: client.ads(kind, constraint=wanted, projection=list(projection or ()))
        )
        return [self.ads.around(classad.ClassAd.from_wire(ad)) for ad in found]

    def locate(self, daemon_type: DaemonType, name: str | None = None) -> Any:
        """
        Where a daemon is; without a name the one that serves this machine.

        Raises:
            HTCondorLocateError: there is none.
        """
        found = self._all(daemon_type, name)
        if not found:
            what = DaemonType(daemon_type).name.lower()
            raise HTCondorLocateError(
                f"Unable to find daemon: no {what} {f'named {name} ' if name else ''}is known to the collector"
            )
        mine = _own_name(known(self._pool), DaemonType(daemon_type))
        return next((ad for ad in found if name is None and ad.get("Name") == mine), found[0])

    def locateAll(self, daemon_type: DaemonType) -> list[Any]:
        """Where all daemons of a type are."""
        return self._all(daemon_type, None)

    def directQuery(
        self,
        daemon_type: DaemonType,
        name: str | None = None,
        projection: Sequence[str] | None = None,
        statistics: str | None = None,
    ) -> Any:
        """The ad of a daemon, which in Kettle is what the daemon itself published last."""
        del statistics
        ad = self.locate(daemon_type, name)
        wanted = {each.lower() for each in projection or ()}
        return self.ads({key: value for key, value in ad.items() if key.lower() in wanted}) if wanted else ad

    def advertise(
        self, ad_list: Sequence[ClassAd], command: str = "UPDATE_AD_GENERIC", use_tcp: bool = True
    ) -> NoReturn:
        """Not carried out: only the parts of a pool publish ads."""
        raise NotCarriedOutError(f"{command}: only the pool's own daemons publish ads in Kettle")

    def _all(self, daemon_type: DaemonType, name: str | None) -> list[Any]:
        pool = known(self._pool)
        constraint = "" if name is None else f"Name =?= {classad.unparse(_literal(name))}"
        found = self.query(_DAEMONS[DaemonType(daemon_type)], constraint or None)
        if name is not None and not found and "@" in name:
            return self._all(daemon_type, name.partition("@")[0])
        return [placed(ad, pool) for ad in found]


def _literal(text: str) -> Any:
    from kettle.classad.nodes import Literal

    return Literal(text)


def _first(addresses: Sequence[str]) -> PoolFile:
    last = HTCondorLocateError("no pool is named")
    for address in addresses:
        try:
            return pool_at(address.strip())
        except HTCondorLocateError as error:
            last = error
    raise last


def _own_name(pool: PoolFile, daemon: DaemonType) -> str:
    return {
        DaemonType.Schedd: pool.schedd,
        DaemonType.Collector: pool.collector,
        DaemonType.Negotiator: pool.negotiator,
        DaemonType.Master: pool.master,
    }.get(daemon, "")
