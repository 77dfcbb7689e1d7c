"""Plugins run beside the job in a process of their own (`execution/helper_process.py`)."""

import errno
import importlib
import os
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.variables import job_environment
from kettle.execution.system.cgroup import Cgroup
from kettle.transfer.data_rules import rule_for
from kettle.transfer.file_lists import ManifestError, job_plugins, name_of_url
from kettle.transfer.plugin import Move, Moved, Order, Plugin
from kettle_services.starter.execution.helper_process import HelperProcess
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.moved_files import FileRecord


class TransferError(Exception):
    """Files could not be moved, which ends the attempt."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending


class PluginProcess:
    """The process that moves some files; `outcome` is there when it has ended."""

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        moves: list[Move],
        *,
        upload: bool,
        cgroup: Cgroup | None,
        manifest: str = "",
        place: str = "",
    ) -> None:
        """`manifest` and `place` are those of a checkpoint."""
        scratch = _scratch(spec)
        if spec.data_rules and not upload and not manifest:
            moves = [
                msgspec.structs.replace(move, rule=rule_for(spec.data_rules, move.named)) for move in moves
            ]
        order = Order(
            upload=upload,
            moves=moves,
            plugins=plugins_of(spec, job),
            lifetime=spec.plugin_lifetime,
            scratch=scratch,
            # Plugins know the rules themselves: their way to the origin must not lead through the cache.
            environment=job_environment(
                msgspec.structs.replace(spec, data_rules=[]) if spec.data_rules else spec,
                job,
                scratch,
                os.environ,
            ),
            manifest=manifest,
            place=place,
        )
        owner = job.text("User") or job.text("Owner") or ""
        self._helper = HelperProcess(
            lambda become: _moved(order, spec, owner, become),
            prepare=lambda: _load(order),
            account=spec.account,
            cgroup=cgroup,
            directory=scratch,
        )
        self.pid: Final = self._helper.pid
        self.files: list[FileRecord] = []
        """What became of each file, when it has ended."""

    def close(self) -> None:
        """Stop reading its output."""
        self._helper.close()

    def outcome(self) -> None:
        """
        Called after its end.

        Raises:
            TransferError: not all files were moved.
        """
        try:
            moved = msgspec.msgpack.decode(self._helper.outcome(), type=Moved)
        except msgspec.MsgspecError:
            died = "the process that moves the job's files died"
            raise TransferError(Ending(code=VacateCode.StarterError, reason=died)) from None
        self.files = moved.files
        if moved.ending is not None:
            raise TransferError(moved.ending)


def downloads(job: JobAd, sandbox: str) -> list[Move]:
    """
    The input files that are fetched by URL.

    Raises:
        TransferError: one of them cannot be placed.
    """
    try:
        return [Move(url, f"{sandbox}/{name_of_url(url)}") for url in job.urls]
    except ManifestError as error:
        ending = Ending(code=HoldCode.TransferInputError, subcode=errno.EINVAL, reason=str(error))
        raise TransferError(ending) from error


def plugins_of(spec: JobSpec, job: JobAd) -> list[Plugin]:
    """Who may move the job's files: what it brought along, then what the machine has."""
    return [*_brought(job, _scratch(spec)), *spec.plugins]


def _scratch(spec: JobSpec) -> str:
    return f"{spec.execute}/{spec.id.sandbox}"


def _brought(job: JobAd, sandbox: str) -> list[Plugin]:
    """
    The plugins that came with the job's input files; they are in the sandbox, and go before the machine's.
    """
    found = job_plugins(job.text("TransferPlugins") or "")
    by_path: dict[str, list[str]] = {}
    for method, path in found.items():
        by_path.setdefault(f"{sandbox}/{os.path.basename(path)}", []).append(method)  # noqa: PTH119
    return [Plugin(path=path, methods=tuple(methods), jobs=True) for path, methods in by_path.items()]


def _load(order: Order) -> None:
    """In that process, while it may read our modules."""
    # Imported only now: most jobs move nothing by URL, and every page costs a starter memory for as long as its job
    # runs.
    importlib.import_module("kettle.transfer.plugin_runs")
    for plugin in order.plugins:
        if plugin.ours:
            importlib.import_module(plugin.path)


def _moved(order: Order, spec: JobSpec, owner: str, become: Callable[[], None]) -> bytes:
    from pathlib import Path

    from kettle.transfer.plugin_runs import carry_out, through_cache
    from kettle.transfer.url_cache import UrlCache, cacheable

    own = not order.upload and not order.manifest
    if spec.url_cache_mib and own and (wanted := cacheable(order.moves, order.plugins)):
        cache = UrlCache(
            Path(spec.url_cache or f"{spec.state}/urls"), owner=owner, limit=spec.url_cache_mib << 20
        )
        moved = through_cache(order, wanted, cache, become)
    else:
        become()
        moved = carry_out(order)
    return msgspec.msgpack.encode(msgspec.structs.replace(moved, tags={}))
