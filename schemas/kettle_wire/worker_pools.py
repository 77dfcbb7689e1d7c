"""
Pools of workers: machines that come when work waits, and go when it is done.

A pool has offers: what a provider would make, and the slot that a machine made from it would have. A pool file says all of it
(`kettle pool apply`); what is recorded is this, with times in seconds and sizes in megabytes.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from kettle_wire.examination import Examination, Notices

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=32, pattern=r"^[a-z][a-z0-9-]*$")]
"""Of a pool, an offer or a provider; it becomes part of names of machines."""
Word = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[^\x00-\x1f]*$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Megabytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86_400.0)]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Expression = Annotated[str, msgspec.Meta(max_length=4096)]
"""A ClassAd expression."""


class PoolKind(StrEnum):
    """What the machines of a pool are for."""

    STATIC = "static"
    """They are there; nobody makes or removes any, and they are used before anything is bought."""
    SHARED = "shared"
    """Small jobs are packed on them, of everybody whom the pool serves."""
    DEDICATED = "dedicated"
    """One machine of a fitting size for one job."""
    USER = "user"
    """Machines that run the jobs of `owners` only."""


class Market(StrEnum):
    """How a machine is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    """Cheaper; the provider may take it back at any time."""


class ScaleDown(StrEnum):
    """What is done about machines that are not needed any more."""

    STOP_ASKING = "stop-asking"
    """Only what has not begun is withdrawn: a batch system gave the rest already."""
    DRAIN = "drain"
    """Idle machines take no more jobs, and are removed."""
    FORCE = "force"
    """Machines are removed with what runs on them, when their pool is to be smaller."""


class Hibernation(StrEnum):
    """What an idle machine of a static pool is put into: HTCondor's words (HIBERNATE)."""

    NONE = "NONE"
    """It stays awake."""
    S3 = "S3"
    """Suspended to memory."""
    S4 = "S4"
    """Suspended to disk."""
    S5 = "S5"
    """Switched off."""

    @property
    def level(self) -> int:
        """HibernationLevel."""
        return 0 if self is Hibernation.NONE else int(self.value[1:])


class HostState(StrEnum):
    """How far a machine of a static pool is."""

    AWAKE = "awake"
    HIBERNATING = "hibernating"
    """It takes no more jobs, and is being put to sleep."""
    ASLEEP = "asleep"
    """It does not answer, and can be woken."""
    WAKING = "waking"
    """It is being woken."""
    BROKEN = "broken"
    """It did not wake again and again: nobody counts on it."""


MachineName = Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
"""The name that a startd has in the pool."""
HardwareAddress = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{2}(:[0-9a-f]{2}){5})?$")]
Address = Annotated[str, msgspec.Meta(max_length=255, pattern=r"^([A-Za-z0-9][A-Za-z0-9.:-]*)?$")]


class StaticMachine(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A machine that is there, whether it is awake or not."""

    name: MachineName
    mac: HardwareAddress = ""
    """Of the network card that hears the magic packet (HardwareAddress); empty: a command of the site wakes it."""
    address: Address = ""
    """Where the packet goes, or what commands are told; empty: to all on the provider's network."""


class Offer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One kind of machine that a provider can make, and what its slot would be."""

    name: Name
    provider: Name
    template: Word = ""
    """What the provider makes it from: an image, a container, a partition; its adapter says what it means."""
    flavour: Word = ""
    """The provider's word for the size."""
    cpus: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    memory: Annotated[int, msgspec.Meta(ge=1, le=2**40)]
    """MB."""
    disk: Megabytes = 0
    """MB; 0: what a machine has is not known before."""
    gpus: Count = 0
    site: Word = ""
    region: Word = ""
    zone: Word = ""
    market: Market = Market.ON_DEMAND
    price: Price = 0.0
    """Of one machine for an hour, in `currency`."""
    currency: Annotated[str, msgspec.Meta(max_length=3, pattern=r"^([A-Z]{3})?$")] = ""
    boot: Seconds = 60.0
    """So long a machine is expected to take until it is ready; measured boots replace it."""
    life: Seconds = 0.0
    """So long the provider lets a machine live at most; 0: as long as the pool."""
    max: Count = 0
    """So many at the same time; 0: as many as the pool."""
    preference: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 0.0
    """Of two offers that cost about the same the one with more is taken."""
    attributes: dict[Word, Expression] = {}
    """What else the ad of its slot says."""
    start: Expression = ""
    """START of its slot, besides what the kind of the pool asks for."""
    options: dict[Word, str | int | float | bool | list[str]] = {}
    """What only its provider knows; checked by the provider."""
    administrators: Annotated[list[Word], msgspec.Meta(max_length=64)] = []
    """Users who may empty its machines, besides the administrators of the pool."""
    examination: Examination = Examination()
    """What its machines prove of themselves before they take jobs."""
    notices: Notices = Notices()
    """Where its machines learn that they will be taken away."""
    machines: Annotated[list[StaticMachine], msgspec.Meta(max_length=4096)] = []
    """Of a static pool: the machines themselves, which are alike."""


class WorkerPool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One pool, as it was applied."""

    name: Name
    kind: PoolKind = PoolKind.SHARED
    min: Count = 0
    """So many machines are kept even if nothing waits."""
    max: Count = 10
    """Never more, those in doubt included."""
    spare: Count = 0
    """So many idle ones are kept for what may come."""
    idle: Seconds = 600.0
    """After so long without a job a machine goes."""
    life: Seconds = 86_400.0
    """After so long it goes in any case, give or take a tenth."""
    least_life: Seconds = 0.0
    """It is not removed before."""
    consolidate: Seconds = 0.0
    """A machine takes no more jobs when others with jobs have had room for all of its jobs for so long; 0: never."""
    budget: Price = 0.0
    """Of one day (UTC), in `currency`; 0: without limit."""
    currency: Annotated[str, msgspec.Meta(max_length=3, pattern=r"^([A-Z]{3})?$")] = ""
    owners: list[Word] = []
    """Whose jobs alone; empty: everybody's."""
    groups: list[Word] = []
    """Accounting groups whose jobs alone."""
    max_machines_per_owner: Count = 0
    """Never more at the same time that were made for the jobs of one person; 0: as many as the pool."""
    scale_down: ScaleDown = ScaleDown.DRAIN
    packing: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    """How much of a machine is planned to be used."""
    dedicated_fraction: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    """A job that needs more than this part of the largest offer gets a machine for itself."""
    waits: Seconds = 5.0
    """A job asks for machines when it has waited so long."""
    hibernate: Hibernation = Hibernation.NONE
    """Of a static pool: what machines are put into after `idle` without a job; a job that one could run wakes it."""
    waking: Count = 10
    """So many wake at the same time at most (ROOSTER_MAX_UNHIBERNATE); 0: as many as are wanted."""
    offers: Annotated[list[Offer], msgspec.Meta(min_length=1, max_length=256)]

    @property
    def hibernates(self) -> bool:
        """Whether its machines are put to sleep and woken."""
        return self.kind is PoolKind.STATIC and self.hibernate is not Hibernation.NONE
