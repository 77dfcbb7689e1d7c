"""Attributes by which results of a job stay on its machine for those that come next."""

from typing import Final

KEEP_OUTPUTS: Final = "KeepOutputsOnMachine"
"""Of a job: whether its machine keeps what it has made for a while, after that has gone to the submitter."""
KEPT_OUTPUTS_OF: Final = "KeptOutputsOf"
"""Of a machine: of which clusters it has results, each as `schedd#cluster`, with commas between."""


def cluster_name(schedd: str, cluster: int) -> str:
    """What a machine calls a cluster of whose jobs it keeps results."""
    return f"{schedd}#{cluster}"
