"""Negotiator, Startd, Credd, RemoteParam and the others that clients know."""

from collections.abc import Iterator, MutableMapping
from typing import Any, ClassVar, Final, NoReturn

from kettle.bindings.ads import ClassAd
from kettle.bindings.daemon_locations import pool_of
from kettle.bindings.enumerations import CompletionType, DrainType, VacateType
from kettle.bindings.errors import HTCondorValueError, NotCarriedOutError
from kettle.bindings.pool_connections import ask, known, pool_here
from kettle.client import PoolFile
from kettle.client.hosts import Speed
from kettle_wire.commands.negotiator import Priority
from kettle_wire.events.principal import Setting

_SPEEDS: Final[dict[DrainType, Speed]] = {
    DrainType.Graceful: "graceful",
    DrainType.Quick: "quick",
    DrainType.Fast: "fast",
}


class Negotiator:
    """The negotiator, which keeps the priorities of submitters."""

    ads: ClassVar[type[ClassAd]] = ClassAd

    def __init__(self, location: ClassAd | None = None) -> None:
        self._pool: PoolFile | None = None if location is None else pool_of(location, "negotiator")
        if location is None:
            pool_here()

    def getPriorities(self, rollup: bool = False) -> list[Any]:
        """How submitters stand, one ad for each; the best first."""
        del rollup  # what a group's members used is what the group used
        found = ask(known(self._pool), lambda client: client.accountant.priorities())
        return [self._ad(submitter) for submitter in found.submitters]

    def getResourceUsage(self, user: str) -> NoReturn:
        """Not carried out: query the collector for the slots of a user."""
        raise NotCarriedOutError(f'query the collector for slots whose RemoteUser is "{user}"')

    def setPriority(self, user: str, priority: float) -> None:
        """Set the real priority of a submitter; for administrators."""
        self._change(user, "priority", priority)

    def setFactor(self, user: str, factor: float) -> None:
        """Set its factor."""
        self._change(user, "factor", factor)

    def setUsage(self, user: str, usage: float) -> None:
        """Set what it has used, seconds."""
        self._change(user, "accumulated", usage)

    def setBeginUsage(self, user: str, when: int) -> None:
        """Set since when it has used something."""
        self._change(user, "begin", when)

    def setLastUsage(self, user: str, when: int) -> None:
        """Set when it used something last."""
        self._change(user, "last", when)

    def setCeiling(self, user: str, ceiling: int) -> None:
        """Set how much it may have."""
        self._change(user, "ceiling", ceiling)

    def resetUsage(self, user: str) -> None:
        """Set what a submitter has used to nothing."""
        ask(known(self._pool), lambda client: client.accountant.reset_usage(user))

    def resetAllUsage(self) -> None:
        """Set what everybody has used to nothing."""
        ask(known(self._pool), lambda client: client.accountant.reset_usage(None))

    def deleteUser(self, user: str) -> None:
        """Forget a submitter."""
        ask(known(self._pool), lambda client: client.accountant.delete(user))

    def _change(self, user: str, setting: Setting, value: float) -> None:
        ask(known(self._pool), lambda client: client.accountant.set(user, setting, float(value)))

    def _ad(self, submitter: Priority) -> ClassAd:
        return self.ads(
            {
                "MyType": "Accounting",
                "Name": submitter.name,
                "Priority": submitter.effective,
                "PriorityFactor": submitter.factor,
                "ResourcesUsed": int(submitter.slots),
                "WeightedResourcesUsed": submitter.weight,
                "AccumulatedUsage": submitter.accumulated,
                "WeightedAccumulatedUsage": submitter.weighted_accumulated,
                "BeginUsageTime": int(submitter.begun),
                "LastUsageTime": int(submitter.last),
                "Floor": submitter.floor,
                "Ceiling": submitter.ceiling,
                "AccountingGroup": submitter.group or "<none>",
                "IsAccountingGroup": False,
            }
        )


class Startd:
    """A machine, for its administrators."""

    def __init__(self, location: ClassAd | None = None) -> None:
        if location is None:
            raise HTCondorValueError("which machine? Startd(ad) takes its ad, as Collector.locate gives it")
        self._pool = pool_of(location, "startd_")
        self._machine = str(location.get("Machine") or location["Name"]).rpartition("@")[2]

    def drainJobs(
        self,
        drain_type: DrainType = DrainType.Graceful,
        on_completion: CompletionType = CompletionType.Nothing,
        check_expr: str | None = None,
        start_expr: str | None = None,
        reason: str | None = None,
    ) -> str:
        """Empty the machine; the id of the request."""
        if on_completion not in {CompletionType.Nothing, CompletionType.Resume}:
            raise NotCarriedOutError(
                f"after a drain, {on_completion!r} is not carried out: see kettle restart"
            )
        return ask(
            self._pool,
            lambda client: client.hosts.drain(
                self._machine,
                speed=_SPEEDS[DrainType(drain_type)],
                reason=reason or "",
                check=check_expr or "",
                start=start_expr or "",
                resume=on_completion == CompletionType.Resume,
            ),
        )

    def cancelDrainJobs(self, request_id: str | None = None) -> None:
        """Have the machine take work again."""
        ask(self._pool, lambda client: client.hosts.cancel_drain(self._machine, request_id or ""))

    def vacate(self, vacate_fast: VacateType = VacateType.Graceful) -> NoReturn:
        """Not carried out: act on the jobs."""
        raise NotCarriedOutError("vacate the jobs: Schedd.act(JobAction.Vacate, ...)")


class RemoteParam(MutableMapping[str, str]):
    """The settings of a daemon, which Kettle's daemons do not give away."""

    def __init__(self, location: ClassAd) -> None:
        name = location.get("Name", "this daemon")
        raise NotCarriedOutError(f"{name} does not give away its settings: see kettle.toml on its host")

    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __setitem__(self, key: str, value: str) -> None:
        raise KeyError(key)

    def __delitem__(self, key: str) -> None:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def refresh(self) -> None:
        """Nothing is kept."""


class SecurityContext:
    """Which token is preferred: in Kettle the pool's file names the credential."""

    def __init__(self, token: str | None = None) -> None:
        self.preferred_token = token
