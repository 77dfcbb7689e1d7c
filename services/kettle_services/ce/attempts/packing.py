"""Packing the files of jobs that travel, and unpacking what comes back from where jobs ran."""

import errno
import io
import shlex
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import remove_tree
from kettle.execution.sandbox.output_files import STDERR, STDOUT
from kettle_services.ce.domain.batch.script import OURS

_CHANGED: Final = f"find . -maxdepth 1 -type f -newer {OURS}/before -print0"
_TIME: Final = 0
"""When all inputs were changed last: what the job changes is newer."""


def add_inputs(archive: tarfile.TarFile, inputs: Sequence[Input]) -> None:
    """Put the files of a job into an archive.  Raises OSError."""
    ours = tarfile.TarInfo(OURS)
    ours.type, ours.mode = tarfile.DIRTYPE, 0o700
    archive.addfile(ours)
    for file in inputs:
        about = tarfile.TarInfo(file.name)
        about.mode, about.mtime = (file.mode & 0o777) | 0o600, _TIME
        if file.directory:
            about.type, about.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(about)
        elif file.data is not None:
            about.size = len(file.data)
            archive.addfile(about, io.BytesIO(file.data))
        else:
            with Path(file.path).open("rb") as source:
                about.size = Path(file.path).stat().st_size
                archive.addfile(about, source)


def listing_of(job: JobAd) -> str:
    """What prints the names of the results, as far as they are there, each with a zero byte behind it."""
    listed = job.items("TransferOutput")
    if listed is None:
        return _CHANGED
    wanted = [STDOUT, STDERR, *listed, *(job.items("FailureFiles") or [])]
    there = " ".join(shlex.quote(f"./{name}") for name in wanted)
    return f'for each in {there}; do [ ! -e "$each" ] || printf "%s\\0" "$each"; done'


def unpack(packed: IO[bytes], place: Path, *, most: int) -> None:
    """Unpack results, whole or not at all.  Raises OSError: they are broken, or more than `most` bytes."""
    draft, room = place.with_suffix(".draft"), most
    if draft.exists():
        remove_tree(str(draft))
    draft.mkdir(mode=0o700, parents=True)
    try:
        with tarfile.open(fileobj=packed, mode="r:gz") as archive:
            for each in archive:
                room -= each.size
                if room < 0:
                    raise OSError(errno.EFBIG, f"the results have more than {most >> 20} MiB together")
                archive.extract(each, draft, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise OSError(errno.EBADMSG, f"the results came broken: {error}") from None
    draft.rename(place)
