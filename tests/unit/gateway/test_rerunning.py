"""What is read of a workflow to run it again."""

import pytest

from kettle_services.gateway.rest.job_files import OpenFile
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.workflows.rerunning import MOST_BYTES, whole
from kettle_wire.ads.types import Ad
from kettle_wire.rest.files import JobFile


class Grown:
    """The files of a DAG, of which a node has made one as large as it wants."""

    running = False

    def __init__(self, size: int) -> None:
        self.ad: Ad = {}
        self.size = size
        self.asked = 0

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        del name
        self.asked += 1
        return OpenFile(self.size, "e", offset, bytes(min(length, self.size - offset)))

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        del after
        return [], False


async def test_a_file_of_a_workflow_is_not_read_if_it_is_too_large() -> None:
    """
    Its DAG file as well, in the place of which a node may have left anything; its first piece is all that comes.
    """
    large = Grown(MOST_BYTES + 1)
    with pytest.raises(RequestRefused, match="more than 64 MiB"):
        await whole(large, "workflow.dag")
    assert 1 == large.asked
    assert bytes(3) == await whole(Grown(3), "workflow.dag")
