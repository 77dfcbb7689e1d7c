"""What is there at one moment, and the plan that follows from it: from ads to a plan, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kettle.classad import NOTHING, Context
from kettle_services.scaler.domain.planning.consolidation import sparse
from kettle_services.scaler.domain.planning.demand import Group, Patience, demands, unable, what_if
from kettle_services.scaler.domain.planning.fitting import Market
from kettle_services.scaler.domain.planning.inputs import is_coming, serves
from kettle_services.scaler.domain.planning.matching import COMING, Key, Rights
from kettle_services.scaler.domain.planning.planning import Demand, Plan, plan, slots_digest
from kettle_services.scaler.domain.planning.sleepers import SHOWN_S, idle_members
from kettle_services.scaler.domain.planning.templates import as_free, slot_ad, start_of
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import HostState, PoolKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from kettle.classad.columnar import Table
    from kettle_services.scaler.domain.hosts.census import Member
    from kettle_services.scaler.domain.leases.lease import Lease
    from kettle_services.scaler.domain.planning.inputs import Inputs
    from kettle_wire.ads import Ad
    from kettle_wire.ads.daemon import SubmitterAd
    from kettle_wire.ads.types import Scalar

_MOST = 2.0**53
"""A slot that says that it has more cores or memory, or infinitely many, is none that counts."""
_SHOWN_S = 60.0
"""A machine that is ready shows its slots within so many seconds, else it is not counted on."""


class Snapshot:
    """Slots and demand."""

    def __init__(
        self,
        table: Table,
        submitters: Sequence[tuple[str, SubmitterAd]],
        rights: Rights,
        learned: Mapping[str, Mapping[str, Scalar]],
    ) -> None:
        """
        `table`: the slots that there are, by the keys of their ads; those of machines on their way come and go in it.
        `learned`: what machines of a template say, by its key.
        """
        self._table = table
        self._submitters = submitters
        self._rights = rights
        self._learned = learned

    def plan(self, inputs: Inputs, patience: Patience, context: Context = NOTHING) -> Plan:
        """Plan."""
        self._announce(inputs)
        rows = self._rows(inputs)
        market = Market(inputs.offers, self._learned, context)
        asked = demands(self._submitters)
        found = what_if(
            self._table,
            rows,
            asked,
            self._rights,
            context,
            potential=_potential(inputs),
            promised=self._promised(inputs, rows),
        )
        longest = max([inputs.settles, *(state.pool.waits for state in inputs.pools)])
        patience.note(found.groups, inputs.now, longest)
        helpless = unable(self._table, self._staying(inputs), found.groups, context)
        needed = frozenset(self._lease(row) for row in found.needed)
        demand = Demand(
            groups=found.groups,
            lasting={
                group.key: _lasting(group, helpless, patience, longest, inputs.now)
                for group in found.groups
                if group.left
            },
            needed=needed,
            slots=found.slots,
            sparse=frozenset()
            if any(group.left or group.free for group in found.groups)
            else sparse(self._table, inputs),
            idle=idle_members(self._table, inputs),
            digest=self._digest(rows),
        )
        return plan(inputs, demand, market)

    def _announce(self, inputs: Inputs) -> None:
        """Have the slots of machines in the table that are on their way, and no others of these."""
        there = {key.partition(".")[0] for key in self._table.keys}
        waking = {key: ad for each in inputs.members for key, ad in self._of_waking(each, inputs)}
        expected = {
            f"{COMING}{lease.id}": lease
            for lease in inputs.leases
            if lease.id not in there and _is_expected(lease, inputs.now)
        }
        for key in [key for key in self._table.keys if key.startswith(COMING)]:
            if key not in expected and key not in waking:
                self._table.remove(key)
        for key, ad in waking.items():
            if key not in self._table:
                self._table.put(key, ad)
        templates = {(one.pool.name, one.offer.name): one.template for one in inputs.offers}
        pools = {state.pool.name: state.pool for state in inputs.pools}
        for key, lease in expected.items():
            request = lease.requested
            if key not in self._table and request.pool in pools:
                self._table.put(
                    key,
                    slot_ad(
                        lease.id,
                        pools[request.pool],
                        lease.offer,
                        life=request.life,
                        start=request.start,
                        shape=request.shape,
                        learned=self._learned.get(templates.get((request.pool, lease.offer.name), "")),
                        attributes=request.attributes,
                    ),
                )

    def _of_waking(self, member: Member, inputs: Inputs) -> Iterator[tuple[str, Ad]]:
        """The slots that a machine will have that wakes, or has just woken and does not show them yet."""
        host = member.host
        lately = host.state is HostState.AWAKE and host.since > 0 and inputs.now - host.since < SHOWN_S
        if host.state is not HostState.WAKING and not (lately and not self._takes_jobs(member.token)):
            return
        slots = [as_free(ad) for ad in host.slots] or [
            slot_ad(
                member.name,
                member.pool,
                member.offer,
                life=_MOST,
                start=start_of(member.pool, member.offer),
            )
        ]
        for number, ad in enumerate(slots):
            yield f"{COMING}{member.token}.{number}", ad

    def _takes_jobs(self, machine: str) -> bool:
        """Whether it shows a slot, by the token of its name, and is not drained."""
        drained = self._table.truths("Draining")
        return any(
            key.partition(".")[0] == machine and not drained[row] for row, key in enumerate(self._table.keys)
        )

    def _rows(self, inputs: Inputs) -> npt.NDArray[np.int64]:
        """Slots that take jobs, of machines that are to stay."""
        free = self._table.says("State", "Unclaimed") | self._table.says("State", "Backfill")
        staying = self._staying(inputs)
        rows: npt.NDArray[np.int64] = staying[free[staying]]
        return rows

    def _promised(self, inputs: Inputs, rows: npt.NDArray[np.int64]) -> dict[int, dict[Key, int]]:
        """For which jobs the machines were ordered that are on their way, by the rows of their slots."""
        ordered = {f"{COMING}{lease.id}": lease.requested.demand for lease in inputs.leases}
        for each in inputs.members:
            if each.host.demand:
                ordered |= {
                    f"{COMING}{each.token}.{n}": each.host.demand for n in range(max(1, len(each.host.slots)))
                }
        numbers: list[int] = rows.tolist()
        return {
            row: {(one.submitter, one.schedd, int(one.autocluster)): one.jobs for one in jobs}
            for row in numbers
            if (jobs := ordered.get(self._table.keys[row]))
        }

    def _staying(self, inputs: Inputs) -> npt.NDArray[np.int64]:
        """Slots of machines that are to stay, whatever they do now."""
        stays = ~self._table.truths("Draining")
        for amount in ("Cpus", "Memory"):
            stays &= ~(self._table.numbers(amount) > _MOST)
        of_pools = np.zeros(len(self._table), np.bool_)
        for state in inputs.pools:
            if state.pool.kind is PoolKind.STATIC:
                continue
            of_pools |= self._table.says("KettlePool", state.pool.name)
        stay = {lease.id: is_coming(lease) or serves(lease) for lease in inputs.leases}
        # A machine that sleeps cannot take its ads back either.
        stay |= {each.token: each.host.state is HostState.AWAKE for each in inputs.members}
        # A machine that was taken back cannot say so: its slots are shown for minutes after its lease is over.
        stays &= np.array(
            [
                self._table.keys[row].startswith(COMING) or stay.get(self._lease(row), not leased)
                for row, leased in enumerate(of_pools.tolist())
            ],
            np.bool_,
        )
        return np.flatnonzero(stays)

    def _lease(self, row: int) -> str:
        """The lease, or another machine, that a slot belongs to."""
        return self._table.keys[row].removeprefix(COMING).partition(".")[0]

    def _digest(self, rows: npt.NDArray[np.int64]) -> bytes:
        cpus, memory = self._table.numbers("Cpus"), self._table.numbers("Memory")
        numbers: list[int] = rows.tolist()
        return slots_digest(
            (self._table.keys[row], [int(cpus[row]), int(memory[row])])
            for row in numbers
            if cpus[row] >= 0 and memory[row] >= 0
        )


def _is_expected(lease: Lease, now: float) -> bool:
    there = lease.state is LeaseState.READY and not lease.unwanted
    return is_coming(lease) or (there and now - lease.ready < _SHOWN_S)


def _lasting(group: Group, helpless: frozenset[Key], patience: Patience, longest: float, now: float) -> int:
    """
    How many jobs are a reason for new machines: those for which what is there had its chance, or could never do.
    """
    if group.key in helpless:
        return group.left
    return min(group.left, patience.lasting(group.key, longest, now))


def _potential(inputs: Inputs) -> float:
    """What the machines count for that may still be made."""
    total = 0.0
    for one in inputs.offers:
        total += one.offer.cpus * (one.asleep or 0)
    for state in inputs.pools:
        if state.pool.kind is PoolKind.STATIC:
            continue
        largest = max((offer.cpus for offer in state.pool.offers), default=0)
        total += largest * max(0, state.pool.max - len(inputs.of_pool(state.pool.name)))
    return total
