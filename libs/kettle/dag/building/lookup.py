"""Names in a scope, and what somebody may have meant who misspelt one."""

from itertools import islice
from typing import Final

from kettle.dag.building.scope import Scope, SplicedScope
from kettle.dag.faults import PlacelessFault
from kettle.terminal.nearest_names import did_you_mean

_MOST_COMPARED: Final = 2_000
"""With how many known names a misspelt one is compared."""


def node_called(name: str, scope: Scope) -> int:
    """The index of a node of this file."""
    spelt = scope.spelt(name)
    index = scope.nodes.get(spelt)
    if index is None:
        if spelt in scope.splices:
            raise PlacelessFault(
                f"{name} is a splice; what is said of its nodes has to stand in its own file"
            )
        raise PlacelessFault(
            f"no node is called {name}{did_you_mean(name, islice(scope.nodes, _MOST_COMPARED))}"
        )
    return index


def splice_called(name: str, scope: Scope, what: str = "splice") -> SplicedScope:
    """A splice of this file; `what` it could have been, for the sentence of the refusal."""
    splice = scope.splices.get(scope.spelt(name))
    if splice is None:
        known = scope.splices if what == "splice" else (*scope.splices, *islice(scope.nodes, _MOST_COMPARED))
        raise PlacelessFault(f"no {what} is called {name}{did_you_mean(name, known)}")
    return splice
