"""The files of a job that runs, most of which are not there yet."""

from types import SimpleNamespace
from typing import Any

from kettle_services.gateway.rest.job_files import RunningFiles
from kettle_wire.commands.access import FilePiece, Peek, Peeked

NAMES = [f"n{number:02}" for number in range(40)]
THERE = {"_condor_stdout", "n00", "n39"}


class Machine:
    """Has some of the files."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def ask(self, _endpoint: object, request: Peek, *, name: str) -> Peeked:
        del name
        self.asked.append([place.name for place in request.files])
        return Peeked(
            files=[
                FilePiece(name=each, trouble="" if each in THERE else "there is no such file")
                for each in self.asked[-1]
            ]
        )


def files(machine: Machine) -> RunningFiles:
    access: Any = SimpleNamespace(access=None, startd="ep")
    client: Any = SimpleNamespace(requests=machine)
    return RunningFiles(access, client, {"TransferOutput": ",".join(NAMES)})


async def test_a_part_without_files_is_no_part() -> None:
    """
    Who asks for what is behind the last one gets what there is, and is not told to ask for the same again.
    """
    machine = Machine()
    source, found, more = files(machine), list[str](), True
    while more:
        part, more = await source.list(found[-1] if found else "")
        assert part or not more
        found += [each.path for each in part]
    assert sorted(THERE) == sorted(found)
    assert len(machine.asked) <= len(NAMES) // 16 + 2
