"""The five delays of WRENCH's `HTCondorComputeService`, and which of its oddities are wanted."""

import msgspec


class Delays(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All in microseconds; WRENCH's names are in the descriptions, and none is its default."""

    negotiator: int = 0
    """NEGOTIATOR_OVERHEAD: once a cycle, before jobs are placed."""
    grid_pre: int = 0
    """GRID_PRE_EXECUTION_DELAY: in the cycle, once for each job that it hands to a batch service, one after another."""
    grid_post: int = 0
    """GRID_POST_EXECUTION_DELAY: in the manager, once for each of them that has ended, one after another."""
    non_grid_pre: int = 0
    """NON_GRID_PRE_EXECUTION_DELAY: the same for jobs that bare-metal services run."""
    non_grid_post: int = 0
    """NON_GRID_POST_EXECUTION_DELAY."""


class Oddities(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What WRENCH does and its authors did not mean; only comparisons with its results want it."""

    unstable_sort: bool = False
    """
    A cycle sorts its jobs by a priority that is always 0, with a sort that is not stable: of more than 16, their order is a fixed
    permutation of the order of submission.
    """
    priorities_ignored: bool = False
    """The priority of a job has no effect, as the negotiator reads another field than the one that is set."""
