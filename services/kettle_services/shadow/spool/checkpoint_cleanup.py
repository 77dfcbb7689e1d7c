"""
Removes checkpoints at URLs that are no longer needed: a newer one was saved, or the job has left the queue.

The list of them is on disk, in the directory of `Spool.condemned`, until they are removed: an unreachable server is
asked again.
"""

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from kettle.accounts import become
from kettle.accounts.rights import Rights
from kettle.retry.backoff import Backoff
from kettle.transfer.checkpoint_manifest import Entry, everything, number_of, read, refuse
from kettle.transfer.file_lists import scheme_of, shown, without_secrets
from kettle.transfer.plugin import Move
from kettle.transfer.plugin_protocol import ProtocolError, answer, question
from kettle.transfer.plugins import MODULES
from kettle_services.shadow.files.access import FileAccess, OwnFileError
from kettle_services.shadow.spool.file_removal import remove_files

_log: Final = logging.getLogger(__name__)

_BACKOFF: Final = Backoff(first=60.0, longest=3600.0, spread=0.0)
_TRIES: Final = 180
"""
With these pauses this takes about a week: after that, files on an unreachable server have to be removed by hand.
"""
_PATIENCE_S: Final = 600.0
"""How long the removal of one checkpoint may take."""


class CleaningError(Exception):
    """A checkpoint could not be removed now."""


class Cleaner:
    """Removes them one after the other; `condemned` is the directory in which they are named."""

    def __init__(self, condemned: Path, access: Callable[[Path], FileAccess]) -> None:
        """`access`: with whose rights the checkpoint is removed that one of these directories is about."""
        self._condemned = condemned
        self._access = access
        self._there_are = asyncio.Event()
        self._later: dict[Path, tuple[float, int]] = {}
        """When to try again, on the loop's clock, and how often it was tried."""

    def wake(self) -> None:
        """There may be more."""
        self._there_are.set()

    async def run(self) -> None:
        """Remove listed checkpoints, now and in future; never returns."""
        while True:
            self._there_are.clear()
            await self._round()
            now = asyncio.get_running_loop().time()
            at = min((each for each, _ in self._later.values()), default=None)
            try:
                async with asyncio.timeout(None if at is None else max(0.0, at - now)):
                    await self._there_are.wait()
            except TimeoutError:
                pass  # it is time to try again

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        for place in await asyncio.to_thread(_listed, self._condemned):
            at, tries = self._later.get(place, (0.0, 0))
            if at > now:
                continue
            try:
                await _clean(place, await asyncio.to_thread(self._access, place))
            except (CleaningError, OSError) as error:
                if tries + 1 < _TRIES:
                    _log.warning("checkpoint not removed yet: %s", place.name, extra={"cause": str(error)})
                    self._later[place] = (now + _BACKOFF.length(tries), tries + 1)
                    continue
                _log.warning("given up, remove it yourself: %s", _named(place), extra={"cause": str(error)})
            self._later.pop(place, None)
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _listed(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _named(place: Path) -> str:
    try:
        return shown((place / "URL").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return place.name


async def _clean(place: Path, places: FileAccess) -> None:
    """Have one checkpoint removed.  Raises CleaningError or OSError."""
    try:
        where, entries, own = await asyncio.to_thread(_known, place)
    except (FileNotFoundError, ValueError) as error:
        _log.warning(
            "forgotten, as nothing says what there is to be removed: %s",
            place.name,
            extra={"cause": str(error)},
        )
        return
    if scheme_of(where) == "file":
        names = [*(entry.name for entry in entries), own.name]
        try:
            remove = partial(remove_files, where, names, places)
            await asyncio.to_thread(places.act, "remove the checkpoint", shown(where), remove)
        except (OwnFileError, ValueError) as error:
            _log.warning("not removed: %s", shown(where), extra={"cause": str(error)})
    elif (module := MODULES.get(scheme_of(where))) is None:
        _log.warning("nothing here removes %s: remove it yourself", shown(where))
    else:
        places.audit("remove the checkpoint", shown(where))
        await _removed(module, everything(where, entries, own), places.rights)


def _known(place: Path) -> tuple[str, list[Entry], Entry]:
    """
    The URL of a checkpoint, and what there is below it.  Raises ValueError if that makes no sense, or OSError.
    """
    manifests = [path for path in place.iterdir() if number_of(path.name) is not None]
    where = (place / "URL").read_text(encoding="utf-8")
    refuse(where)
    entries, own = read(max(manifests).read_text(encoding="utf-8"))
    return where, entries, own


async def _removed(module: str, urls: list[str], owner: Rights | None) -> None:
    """Run a plugin of ours with the rights of the job's owner."""
    with tempfile.TemporaryDirectory(prefix="kettle-clean-") as directory:
        asking, answering = Path(directory) / "ask", Path(directory) / "answer"
        asking.write_text(question(Move(url, "") for url in urls), encoding="utf-8")
        answering.touch()
        options = ["-infile", str(asking), "-outfile", str(answering), "-delete"]
        program, variables = [sys.executable, "-P", "-m", module, *options], dict(os.environ)
        if owner is not None:
            program, variables = become.command(owner, module, options), become.environment()
            for path in (asking, answering, Path(directory)):
                os.chown(path, owner.uid, owner.gid)
        process = await asyncio.create_subprocess_exec(
            *program,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(_PATIENCE_S):
                _, said = await process.communicate()
        except TimeoutError as error:
            raise CleaningError(f"it took more than {_PATIENCE_S:g} seconds") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise CleaningError(without_secrets(_why(answering) or said.decode(errors="replace")[-500:]))


def _why(answering: Path) -> str:
    try:
        results = answer(answering.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ProtocolError):
        return ""
    return next((result.error for result in results if not result.success), "")
