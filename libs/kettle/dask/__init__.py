"""
Dask on a pool: clusters whose scheduler and workers are jobs, from any notebook and across sites.

    from kettle.dask import KettleCluster

    cluster = KettleCluster(n=4)
    client = cluster.get_client()

It needs the extra `dask` (`pip install kettle[dask]`).  Importing this package loads nothing of Dask; each name is loaded
when it is wanted.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.dask.cluster import KettleCluster

__all__ = ["KettleCluster"]

_AT: Final = {"KettleCluster": "kettle.dask.cluster"}


def __getattr__(name: str) -> Any:
    if name in _AT:
        return getattr(import_module(_AT[name]), name)
    raise AttributeError(f"module 'kettle.dask' has no attribute '{name}'")
