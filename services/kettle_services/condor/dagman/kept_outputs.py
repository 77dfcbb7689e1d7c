"""
Results that stay on the machine that made them, for the nodes that come next: what the jobs of nodes say for that.

A node with children has its results kept; a node with parents prefers machines that keep theirs, and takes any other as it always would.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad.printing import quoted_string
from kettle.jobs.kept_outputs import KEEP_OUTPUTS, KEPT_OUTPUTS_OF, cluster_name
from kettle_wire.ads import Ad, Expr

if TYPE_CHECKING:
    from kettle.submit import Submission

_MOST: Final = 16
"""Clusters of parents that are looked for: each makes the expression longer."""
_RANK: Final = "Rank"


def with_kept_outputs(
    made: "Submission", *, schedd: str, parents: Sequence[int], has_children: bool
) -> "Submission":
    """
    The jobs of a node; `parents`: the clusters of those before it.  A node that has a rank of its own keeps that.
    """
    more: Ad = {KEEP_OUTPUTS: True} if has_children and KEEP_OUTPUTS not in made.ad else {}
    if parents and not made.ad.get(_RANK) and _RANK not in made.columns:
        more[_RANK] = preference(schedd, parents)
    return msgspec.structs.replace(made, ad={**made.ad, **more}) if more else made


def preference(schedd: str, clusters: Sequence[int]) -> Expr:
    """By how many of these clusters' results there are on a machine."""
    there = (
        f"ifThenElse(stringListMember({quoted_string(cluster_name(schedd, cluster))}, TARGET.{KEPT_OUTPUTS_OF}) =?= true, 1, 0)"
        for cluster in clusters[:_MOST]
    )
    return Expr(" + ".join(there))
