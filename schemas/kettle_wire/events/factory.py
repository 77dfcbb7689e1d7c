"""
What happens to a cluster whose jobs are made little by little (late materialisation); its stream is `factory/<n>`.
"""

from kettle_wire.events.base import Event

HELD = 1
"""JobMaterializePaused of a factory that a person has stopped."""


class FactoryMaterialized(Event, frozen=True, tag="factory.materialized/1"):
    """
    The jobs `first` to `first + count - 1` of the cluster are in the queue now; they are made in their order.
    """

    cluster: int
    owner: str
    """Of the cluster."""
    first: int
    count: int


class FactoryChanged(Event, frozen=True, tag="factory.changed/1"):
    """How fast jobs are made from now on: it has all values, changed or not."""

    cluster: int
    first: int
    """The jobs before this number are made."""
    limit: int = -1
    """JobMaterializeLimit, the most jobs in the queue at a time; -1: none."""
    max_idle: int = -1
    """JobMaterializeMaxIdle, the most of them that wait or are held; -1: none."""
    paused: int = 0
    """JobMaterializePaused: 0 it makes jobs, 1 somebody has stopped it."""
    reason: str = ""
    by: str = ""


class FactoryClosed(Event, frozen=True, tag="factory.closed/1"):
    """The jobs from `first` on, `count` of them, will never be made."""

    cluster: int
    owner: str
    """Of the cluster."""
    first: int
    count: int
    reason: str = ""
    by: str = ""


FactoryEvent = FactoryMaterialized | FactoryChanged | FactoryClosed
