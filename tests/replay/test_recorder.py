"""The tool that makes recordings works on the day on which a new version needs one."""

from pathlib import Path

from kettle_wire.events import CODEC

from .folds import expected
from .record import record, types
from .recording import read, write


async def test_a_pool_can_be_recorded(tmp_path: Path) -> None:
    """
    A real pool writes every type that is written today; its recording can be read back, and folds to the same.
    """
    recorded = await record()
    write(tmp_path / "recording", recorded)

    assert set(CODEC.written) <= types(recorded)
    assert expected(recorded) == expected(read(tmp_path / "recording"))
