"""
Where jobs at a batch system have their files when it is reached by SSH: in a directory of the login there.

Files go there and come back packed, through the commands that are run there; what is known of a job, and its results, are kept here.
"""

import asyncio
import base64
import binascii
import errno
import io
import re
import tarfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.commands.port import CommandError, Commands, Ran
from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, remove_tree
from kettle.execution.sandbox.kept_results import read_kept
from kettle.execution.sandbox.output_files import Results, collect
from kettle_services.ce.attempts.packing import add_inputs, listing_of, unpack
from kettle_services.ce.attempts.sandboxes import AwayError, Kept, code_of
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.said import cleaned
from kettle_services.ce.domain.batch.script import BEGUN, OURS, left, number_in
from kettle_wire.ads import Ad
from kettle_wire.batch import BatchEnd

_MOST_BYTES: Final = 256 << 20
"""Of the files of one job, one way: they are in memory while they travel."""
_MAKE: Final = """\
umask 077
[ -d "${1%/*}" ] || mkdir -p "${1%/*}" || exit
[ ! -e "$1" ] || rm -rf "$1" || exit
mkdir "$1" && cd "$1" && base64 -d | tar -xzf - && : >.kettle/before
"""
_PACK: Final = f"tar -czhf - --null -T - | head -c {_MOST_BYTES + 1} | base64"
_END: Final = 'if [ -f "$1" ]; then head -c 4096 "$1"; fi'
_BEGUN: Final = 'if [ -d "$1" ]; then echo; if [ -f "$1/by" ]; then head -c 4096 "$1/by"; fi; fi'
_INTENT: Final = re.compile(r"k[a-z2-7]{14}")
"""What sandboxes are called; any other name is one that a job has made there, such as `..`."""


class RemoteSandboxes:
    """Sandboxes of one login."""

    def __init__(self, commands: Commands, directory: str, here: Path, *, patience: float) -> None:
        """`here`: where results lie until they are fetched; `patience`: seconds for one transfer."""
        self._commands: Final = commands
        self._directory: Final = directory
        self._here: Final = here
        self._patience: Final = patience

    def path(self, intent: str) -> str:
        """Where one is, over there."""
        return f"{self._directory}/{intent}"

    async def make(self, run: Run, ad: Ad, inputs: Sequence[Input], script: str) -> None:
        """What a former life left in its place goes."""
        if sum(_size(each) for each in inputs) > _MOST_BYTES:
            raise OSError(errno.EFBIG, f"the input files have more than {_MOST_BYTES >> 20} MiB together")
        packed = await asyncio.to_thread(_packed, inputs)
        await self._run(["sh", "-c", _MAKE, "sh", self.path(run.intent)], packed)
        kept = msgspec.msgpack.encode(Kept(ad, script, {}))
        await asyncio.to_thread(self._keep, run.intent, kept)

    def _keep(self, intent: str, kept: bytes) -> None:
        self._here.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._here / f"{intent}.kept").write_bytes(kept)

    async def script(self, run: Run) -> str:
        """As the port says."""
        return (await self._kept(run)).script

    async def _kept(self, run: Run) -> Kept:
        data = await asyncio.to_thread((self._here / f"{run.intent}.kept").read_bytes)
        return msgspec.msgpack.decode(data, type=Kept)

    async def left(self, run: Run) -> BatchEnd | None:
        """As the port says."""
        path = f"{self.path(run.intent)}/{OURS}/end"
        ran = await self._run(["sh", "-c", _END, "sh", path])
        return left(ran.output)

    async def begun(self, run: Run) -> str | None:
        """As the port says."""
        ran = await self._run(["sh", "-c", _BEGUN, "sh", f"{self.path(run.intent)}/{BEGUN}"])
        return number_in(ran.output) if ran.output else None

    async def results(self, run: Run, end: BatchEnd | None) -> Results:
        """Fetched once; what is not sent with the report stays here."""
        kept = await self._kept(run)
        job, place = JobAd(kept.ad), self._here / run.intent
        if job.transfers and not place.exists():
            ran = await self._run(["sh", "-c", f'cd "$1" || exit; {_pack(job)}', "sh", self.path(run.intent)])
            await asyncio.to_thread(_unpacked, ran.output, place)
        return await asyncio.to_thread(self._collected, place, job, end)

    def _collected(self, place: Path, job: JobAd, end: BatchEnd | None) -> Results:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return collect(Sandbox(str(place)), job, {}, code=code_of(end))

    async def read(self, run: Run, name: str, offset: int, length: int) -> bytes:
        """As the port says."""
        return await asyncio.to_thread(read_kept, str(self._here / run.intent), name, offset, length)

    async def remove(self, intent: str) -> None:
        """Here and there."""
        await asyncio.to_thread(self._removed, intent)
        await self._run(["rm", "-rf", self.path(intent)])

    def _removed(self, intent: str) -> None:
        if (self._here / intent).exists():
            remove_tree(str(self._here / intent))
        (self._here / f"{intent}.kept").unlink(missing_ok=True)

    async def others(self, known: Collection[str]) -> list[str]:
        """As the port says."""
        ran = await self._run(["sh", "-c", 'if [ -d "$1" ]; then ls -1 "$1"; fi', "sh", self._directory])
        return [name for name in ran.output.split() if _INTENT.fullmatch(name) and name not in known]

    async def _run(self, words: Sequence[str], given: str = "") -> Ran:
        try:
            ran = await self._commands.run(words, given, within=self._patience)
        except CommandError as error:
            raise AwayError(errno.EHOSTUNREACH, cleaned(str(error))) from None
        if ran.status:
            raise OSError(errno.EIO, cleaned(ran.errors) or f"{words[0]} ended with status {ran.status}")
        return ran


def _size(file: Input) -> int:
    return len(file.data) if file.data is not None else Path(file.path).stat().st_size if file.path else 0


def _packed(inputs: Sequence[Input]) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        add_inputs(archive, inputs)
    return base64.encodebytes(buffer.getvalue()).decode()


def _pack(job: JobAd) -> str:
    """What packs the results of a job, as far as they are there."""
    return f"{{ {listing_of(job)}; }} | {_PACK}"


def _unpacked(text: str, place: Path) -> None:
    try:
        data = base64.b64decode(text, validate=False)
    except binascii.Error as error:
        raise OSError(errno.EBADMSG, f"the results came broken: {error}") from None
    if len(data) > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"the results have more than {_MOST_BYTES >> 20} MiB together")
    unpack(io.BytesIO(data), place, most=_MOST_BYTES)
