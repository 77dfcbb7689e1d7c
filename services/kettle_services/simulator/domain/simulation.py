"""
A pool on a clock of its own.

Actions of people and machines are taken from the log; the reactions of negotiator, schedds and startds are computed
again, by the negotiator's own cycle and accountant and the schedds' own queues.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from kettle.classad import FOREIGN_STEPS, Context
from kettle_services.negotiator.domain import accountant_commands
from kettle_services.negotiator.domain.accountant import Accountant
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.principals import fold_into
from kettle_services.negotiator.domain.rejections import Reasons, Unasked
from kettle_services.negotiator.domain.verdicts import Verdicts
from kettle_services.schedd.domain.queue.fold import job_of_stream
from kettle_services.simulator.domain.claims import Record, Running, forget
from kettle_services.simulator.domain.clock import CHARGES, COMES, CYCLE, ROUTES, US, Clock
from kettle_services.simulator.domain.counting_pool import CountingPool
from kettle_services.simulator.domain.machine import Machine
from kettle_services.simulator.domain.period import Happening, Period
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.startds import Startds
from kettle_services.simulator.domain.submitter_sums import Tally
from kettle_wire.codes import VacateCode
from kettle_wire.events import (
    ClusterSubmitted,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    JobHeld,
    JobReleased,
    JobRemoved,
    MachineJoined,
    MachineLeft,
    PrincipalDeleted,
    PrincipalEvent,
    PrincipalReset,
    PrincipalSet,
)
from kettle_wire.subjects import ad_key

_TRUST: Final = 2.0
"""Seconds for which a match that came to nothing is believed, as a negotiator's."""
_ACCOUNTANT: Final = "the accountant"
MACHINES: Final = "collector.simulated"
NEGOTIATION: Final = "negotiator.simulated"
"""The shards of what is recorded besides the queues; names that no service has, so that both can be brought into any pool's log."""
_FROM_OUTSIDE: Final = (
    ClusterSubmitted, FactoryMaterialized, FactoryChanged, FactoryClosed, JobHeld, JobReleased, JobRemoved, MachineJoined,
    MachineLeft, PrincipalSet, PrincipalReset, PrincipalDeleted,
)  # fmt: skip
"""What people and machines do; most of what is recorded is how the pool has reacted, and that is computed again."""
_LOOKS: Final = 200
"""How often the progress of a simulation is reported."""

Watch = Callable[[int], None]
"""Receives the simulated time."""


def nobody(now: int) -> None:
    """Nobody looks."""


class PeriodSimulation:
    """
    One run through a period.

    `step` are the microseconds between two cycles at least: what happens in between is seen by the next one. `record` receives the
    events of the queues, of machines and of the accountant, and those of the negotiator if its cycles are to be `explained`: to work out
    why jobs wait takes time. `whole_ads`: see `Startds`.
    """

    def __init__(
        self,
        period: Period,
        rules: PoolRules,
        *,
        step: int = US,
        watch: Watch = nobody,
        record: Record = forget,
        explained: bool = False,
        whole_ads: bool = False,
    ) -> None:
        self.period, self.rules = period, rules
        self.clock = Clock(period.since)
        self.pool = Pool() if explained or whole_ads else CountingPool()
        self.startds = Startds(self.pool, whole_ads=whole_ads)
        self._chance = 0
        self._context = Context(
            now=lambda: int(self.clock.seconds), random=self._random, max_steps=FOREIGN_STEPS
        )
        self.running = Running(
            self.clock,
            period,
            self.startds,
            worklife=rules.worklife,
            context=self._context,
            stir=self._stir,
            record=record,
        )
        self.cycles = 0
        self.accountant = Accountant(factors=rules.factors, half_life=rules.half_life, tree=rules.groups.tree)
        self._record = record
        self._explained = explained
        self._reasons = Reasons() if explained else Unasked()
        self.verdicts = Verdicts()
        self._shards = {schedd.name: shard for shard, schedd in self.running.schedds.items()}
        self._step, self._watch = step, watch
        self._last = period.since - step
        self._planned: int | None = None
        self._regular = period.since
        """When there is a cycle whether or not something has changed."""

    def _random(self) -> float:
        """Random numbers that are the same in each run: compared runs must not differ by chance."""
        self._chance = (self._chance * 1_103_515_245 + 12_345) % 2**31
        return self._chance / 2**31

    def run(self) -> Tally:
        """Play the period; returns the results of all submitters with jobs."""
        period = self.period
        self.begin()
        for one in period.happenings:
            if isinstance(one.event, _FROM_OUTSIDE):
                self.clock.at(one.at, partial(self.happens, one), turn=COMES)
        self.clock.at(period.since, self._charge, turn=CHARGES)
        look = max(US, (period.until - period.since) // _LOOKS)
        self.clock.at(period.since + look, partial(self._look, look))
        self._stir()
        self.clock.run(period.until)
        self.running.tally.close(schedd.queue for schedd in self.running.schedds.values())
        return self.running.tally

    def begin(self) -> None:
        """Have all as it was in the first moment of the period."""
        period, now = self.period, self.clock.seconds
        self.accountant.restore(period.principals)
        self._fold(
            PrincipalSet(principal=name, setting="factor", value=factor, at=now, by="what if")
            for name, factor in self.rules.prio_factors.items()
        )
        for name in period.there:
            self._joins(period.machines[name])
        for shard in self.running.schedds:
            self.running.begin(shard)

    def advertise(self) -> None:
        """
        Have the pool's picture of slots and submitters up to date, and the accountant see who uses what.
        """
        self._observe()
        self._advertise()

    def _look(self, every: int) -> None:
        self._watch(self.clock.now)
        self.clock.at(self.clock.now + every, partial(self._look, every))

    # -- what is recorded --------------------------------------------------------------------------------------------

    def happens(self, one: Happening, machine_that_comes: Machine | None = None) -> None:
        """
        Whatever none of those who are simulated has decided; the machine, if it is one that the period does not know.
        """
        match one.event:
            case (
                ClusterSubmitted(cluster=cluster)
                | FactoryMaterialized(cluster=cluster)
                | FactoryChanged(cluster=cluster)
                | FactoryClosed(cluster=cluster)
            ):
                self.running.submitted(one.shard, one.stream, one.event, cluster)
            case JobHeld() | JobReleased() | JobRemoved():
                self.running.acted(one.shard, job_of_stream(one.stream), one.event)
            case MachineJoined(machine=machine):
                self._joins(machine_that_comes or self.period.machines[machine])
                self._stir()
            case MachineLeft(machine=machine):
                for claim in self.startds.claims_on(machine):
                    self.running.lost(claim, VacateCode.ReconnectFailed, "its machine is gone")
                self.startds.leave(machine)
                self._record(self.clock.now, MACHINES, one.stream, one.event)
            case PrincipalSet() | PrincipalReset() | PrincipalDeleted():
                self._administered(one.event)
            case _:
                pass

    def notice(self, machine: str, moment: int) -> None:
        """
        A machine is to be taken away: from a moment on it takes no more jobs, and those that run there go on.
        """
        self.clock.at(moment, partial(self.startds.drain, machine), turn=ROUTES)

    def _joins(self, machine: Machine) -> None:
        self.startds.join(machine)
        has = [slot.amounts for slot in machine.slots]
        cpus, memory = (sum(amounts.get(name, 0) for amounts in has) for name in ("Cpus", "Memory"))
        joined = MachineJoined(machine=machine.name, cpus=cpus, memory=memory)
        self._record(self.clock.now, MACHINES, f"machine/{machine.name}", joined)

    def _administered(self, event: PrincipalSet | PrincipalReset | PrincipalDeleted) -> None:
        if isinstance(event, PrincipalDeleted) and event.by == _ACCOUNTANT:
            return  # it forgets by itself
        set_factor = isinstance(event, PrincipalSet) and event.setting == "factor"
        if set_factor and event.principal in self.rules.prio_factors:
            return
        self._fold([*self.accountant.charge_one(event.principal, self.clock.seconds), event])
        self._regular = self.clock.now
        self._stir()

    # -- the accountant ----------------------------------------------------------------------------------------------

    def _fold(self, events: Iterable[PrincipalEvent]) -> None:
        for event in events:
            fold_into(self.accountant.principals, event)
            self._record(self.clock.now, NEGOTIATION, f"principal/{event.principal}", event)

    def _observe(self) -> None:
        self.startds.advertise()
        used = self.pool.in_use_of_known(self.accountant.recorded())
        self.accountant.observe(self.clock.seconds, used)

    def _charge(self) -> None:
        self._observe()
        now = self.clock.seconds
        gone = accountant_commands.forgetting(self.accountant, now=now)
        self._fold([*gone, *self.accountant.charge(now)])
        self.clock.at(
            self.clock.now + max(1, round(self.rules.charge_interval * US)), self._charge, turn=CHARGES
        )

    # -- the negotiator ----------------------------------------------------------------------------------------------

    def _stir(self) -> None:
        """Something may have become possible; the news is a while on its way."""
        self._plan(self.clock.now + self.period.latency)

    def _plan(self, moment: int) -> None:
        moment = max(moment, self._last + self._step)
        if self._planned is None or moment < self._planned:
            self._planned = moment
            self.clock.at(moment, partial(self._due, moment), turn=CYCLE)

    def _due(self, moment: int) -> None:
        if self._planned != moment:
            return  # another came before
        self._planned = None
        self.startds.advertise()
        self._advertise()
        if self.pool.stirred or self.clock.now >= self._regular:
            self._cycle()

    def _advertise(self) -> None:
        """Schedds say what they want."""
        for shard, submitter in self.running.dirty:
            schedd = self.running.schedds[shard]
            self.pool.submitter(ad_key("Submitter", f"{submitter}@{schedd.name}"), schedd.advert(submitter))
        self.running.dirty.clear()

    def _cycle(self) -> None:
        self.cycles += 1
        self._last = self.clock.now
        self._observe()
        if any(ad.requests for ad in self.pool.submitters.values()):
            self._negotiate()
        else:  # there is nothing to be given
            self.pool.expire(self.clock.seconds)
            self.pool.stirred = False
        self.startds.advertise()
        self._advertise()
        self._regular = self.clock.now + round(self.rules.interval * US)
        if (expires := self.pool.expires()) is not None:
            self._regular = min(self._regular, round(expires * US))
        if self.pool.stirred:
            self._regular = self.clock.now
        self._plan(self._regular)

    def _negotiate(self) -> None:
        now, rules = self.clock.seconds, self.rules
        recorded = self.accountant.recorded()
        names = {ad.name for ad in self.pool.submitters.values()}
        if rules.preemption.requirements is not None:
            names |= self.pool.used(recorded).keys()
        outcome = negotiate(
            self.pool,
            self._reasons,
            now=now,
            trust=_TRUST,
            context=self._context,
            standings=self.accountant.standings(now, names),
            groups=rules.groups,
            limits=rules.limits,
            ranks=rules.ranks,
            preemption=rules.preemption,
            recorded=recorded,
            cycle=self.cycles,
        )
        self._note(outcome)
        for schedd, matches in outcome.messages.items():
            for match in matches:
                self.running.matched(self._shards[schedd], match, self.cycles)

    def _note(self, outcome: Outcome) -> None:
        """Record what a cycle has given, and what it has refused for another reason than before."""
        if not self._explained:
            return
        event = self.verdicts.decided(outcome, started=self.clock.seconds, duration=0.0)
        if event is not None:
            self.verdicts.fold(event)
            self._record(self.clock.now, NEGOTIATION, f"cycle/{event.cycle}", event)
