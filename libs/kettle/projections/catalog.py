"""All projections, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from kettle.projections.jobs import Jobs
from kettle.projections.machines import Machines
from kettle.projections.negotiation import Negotiation
from kettle.projections.stored_projection import StoredProjection

PROJECTIONS: Final[Mapping[str, Callable[[], StoredProjection]]] = {
    "jobs": Jobs,
    "machines": Machines,
    "negotiation": Negotiation,
}
"""Makes one that has applied nothing yet."""
