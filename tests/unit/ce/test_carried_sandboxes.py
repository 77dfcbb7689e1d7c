"""
Results of jobs whose nodes send them, with uploads that overlap: a node that was not answered sends all again.
"""

from pathlib import Path

import pytest

from kettle_services.ce.attempts.carried_sandboxes import CarriedSandboxes
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.carried import Way
from kettle_wire.batch import BatchRequest
from kettle_wire.jobs import JobId

RUN = Run(job=JobId(1, 0), attempt=1, owner="ann", intent="kaaa", request=BatchRequest(), since=0.0)
WHOLE = b"w" * 100


@pytest.fixture
async def sandboxes(tmp_path: Path) -> CarriedSandboxes:
    """With one job that has begun."""
    made = CarriedSandboxes("/scratch", tmp_path, lambda _intent: Way(url="", token="", payloads_token=""))
    await made.make(RUN, {}, [], "")
    assert made.inputs(RUN.intent, "7") is not None
    return made


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


async def test_an_upload_that_comes_again_leaves_that_alone_which_is_whole(
    sandboxes: CarriedSandboxes, tmp_path: Path
) -> None:
    """What came first as a whole stays, whatever begins meanwhile or comes later."""
    with sandboxes.draft("kaaa") as first:
        first.write(WHOLE)
        second = sandboxes.draft("kaaa")
        sandboxes.arrived("kaaa", first)
    second.write(b"half")
    second.close()
    with sandboxes.draft("kaaa") as third:
        third.write(b"n" * 100)
        sandboxes.arrived("kaaa", third)
    assert (tmp_path / "kaaa.out").read_bytes() == WHOLE
    assert names(tmp_path) == {"kaaa.in", "kaaa.kept", "kaaa.by", "kaaa.out"}


async def test_nothing_of_uploads_stays_of_a_job_that_is_over(
    sandboxes: CarriedSandboxes, tmp_path: Path
) -> None:
    """One that is under way then has nowhere to arrive."""
    draft = sandboxes.draft("kaaa")
    draft.write(WHOLE)
    await sandboxes.remove("kaaa")
    assert names(tmp_path) == set()
    with pytest.raises(FileNotFoundError):
        sandboxes.arrived("kaaa", draft)
    with pytest.raises(FileNotFoundError):
        draft.close()
    assert names(tmp_path) == set()


async def test_a_large_result_is_read_under_the_name_of_a_directory(
    sandboxes: CarriedSandboxes, tmp_path: Path
) -> None:
    """Also when the results were looked for again, as after a restart."""
    await sandboxes.make(RUN, {"TransferOutput": "build/build"}, [], "")
    large = b"l" * 70_000
    (tmp_path / RUN.intent / "build").mkdir(parents=True)
    (tmp_path / RUN.intent / "build/build").write_bytes(large)
    for _ in range(2):
        results = await sandboxes.results(RUN, None)
        assert (["build"], []) == ([file.name for file in results.files], results.missing)
        assert large == await sandboxes.read(RUN, "build", 0, len(large))
