"""Batches and job sets as rows of a table."""

from typing import Final

from kettle.client.batches import Batch
from kettle.terminal.quantities import clock
from kettle_services.cli.output.screen import Cell

BATCH_TITLES: Final = ("OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")
SET_TITLES: Final = ("OWNER", "JOB_SET", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")
RIGHT: Final = frozenset({"DONE", "RUN", "IDLE", "HOLD", "TOTAL"})


def row(batch: Batch) -> list[Cell]:
    """For a table."""
    counts = (batch.done, batch.running, batch.waiting, batch.held, batch.total)
    return [batch.owner, batch.name, clock(batch.submitted), *counts, batch.ids]
