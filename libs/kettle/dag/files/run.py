"""One run of a DAG, and where its files are."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kettle_wire.ads.daemon import CONDOR_VERSION


class DagRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of the DAG job knows when it starts."""

    workflow: int
    """The cluster of the DAG job."""
    job: str = ""
    """Its GlobalJobId."""
    directory: Path
    """Of the submission: paths are relative to it."""
    dag_files: Sequence[str]
    """The files of the command line."""
    log: Path
    """`.dagman.out`."""
    nodes_log: Path
    lock: Path
    pid: int
    program: str
    version: str = CONDOR_VERSION
    arguments: Sequence[str] = ()
    rescued_from: int = 0
    """The number of the rescue file with which the run began; 0: none."""
    largest_rescue: int = 100
    """`DAGMAN_MAX_RESCUE_NUM`."""
    keep_retries: bool = False
    """Whether rescue files say what is left of the retries."""
    parent: str = ""
    """The cluster of the DAG job whose node this one is."""

    @property
    def primary(self) -> Path:
        """The DAG file after which the other files are named."""
        return self.directory / self.dag_files[0]

    @property
    def is_multi(self) -> bool:
        """Whether it is of several DAG files."""
        return len(self.dag_files) > 1

    @property
    def metrics(self) -> Path:
        """Where the figures are when it is over."""
        return self.primary.with_name(f"{self.primary.name}.metrics")
