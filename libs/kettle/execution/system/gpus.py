"""NVIDIA's GPUs of the machine."""

import csv
import logging
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kettle.execution.system.nvidia import PROC, cards
from kettle.execution.system.probe_programs import PATIENCE_S, ask
from kettle_wire.ads import Ad, Scalar

_log: Final = logging.getLogger(__name__)
_FIELDS: Final[Mapping[str, str]] = {
    "uuid": "Id",
    "name": "DeviceName",
    "memory.total": "GlobalMemoryMb",
    "driver_version": "DriverVersion",
    "pci.bus_id": "DevicePciBusId",
    "compute_cap": "Capability",
}
"""What nvidia-smi is asked for; drivers before 470 do not know the last."""
_CUDA: Final = re.compile(r"CUDA (?:UMD )?Version: *([0-9]{1,3})\.([0-9]{1,2})\b")
_UUID: Final = re.compile(r"[A-Za-z0-9-]+")


def find_gpus(proc: Path = PROC, *, patience_s: float = PATIENCE_S) -> dict[str, Ad] | None:
    """
    NVIDIA's GPUs with their properties by id; what nvidia-smi tells within `patience_s`, else what the driver does.

    None: the machine is none that has GPUs.  Nothing: it has none that can be used now, but jobs may see some.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return _gpus_of_driver(proc) if proc.is_dir() else None
    said = ""
    for fields in (list(_FIELDS), list(_FIELDS)[:-1]):
        asked = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            told = ask(asked, patience_s=patience_s)
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("no GPUs found: nvidia-smi cannot be run", extra={"cause": str(error)})
            return {}
        if not told.status:
            runtime = _runtime(program, patience_s)
            return {id_: ad | runtime for id_, ad in _gpus_of_table(told.out, fields).items()}
        said = (told.err or told.out).strip()[:500]
    _log.warning("no GPUs found: nvidia-smi failed", extra={"said": said})
    return {}


def _runtime(program: str, patience_s: float) -> Ad:
    """
    Up to which version of CUDA the driver runs programs, as CUDA counts them: 12040 is 12.4; only the heading has it.
    """
    try:
        told = ask([program], patience_s=patience_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("nvidia-smi does not tell the version of CUDA", extra={"cause": str(error)})
        return {}
    version = None if told.status else _CUDA.search(told.out)
    return {} if version is None else {"MaxSupportedVersion": 1000 * int(version[1]) + 10 * int(version[2])}


def _gpus_of_table(text: str, fields: Sequence[str]) -> dict[str, Ad]:
    gpus: dict[str, Ad] = {}
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        said = dict(zip(fields, row, strict=False))
        failed = not _UUID.fullmatch(said.get("uuid", ""))  # "[Unknown Error]"
        if failed or len(row) != len(fields):
            _log.warning("a line of nvidia-smi is not understood", extra={"line": ", ".join(row)[:200]})
            continue
        # "[N/A]", "[Not Supported]".
        gpus[said["uuid"]] = {
            _FIELDS[field]: _scalar(value)
            for field, value in said.items()
            if field != "uuid" and value[:1] != "["
        }
    return gpus


def _scalar(text: str) -> Scalar:
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[0-9]+\.[0-9]+", text) else text


def _gpus_of_driver(proc: Path) -> dict[str, Ad]:
    """
    What the driver's files tell; a device that the driver has not begun to use has no id there, and is left out.
    """
    gpus: dict[str, Ad] = {}
    for said in cards(proc):
        name = said.get("GPU UUID", "")
        if not name or "?" in name:
            _log.warning(
                "a GPU has no id yet: nvidia-smi would give it one",
                extra={"bus": said.get("Bus Location", "")},
            )
            continue
        gpus[name] = {"DeviceName": said.get("Model", ""), "DevicePciBusId": said.get("Bus Location", "")}
    return gpus
