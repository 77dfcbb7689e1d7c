"""
What is asked of batch systems, compared with what PSI/J asks for the same jobs: somebody else's map from resources to directives.

Where the two differ it is said here, with the reason.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from tests.scenario.client_environments import SCRIPTS, python_of

from kettle.testing.commands.running import execute
from kettle_services.ce.domain.batch import lsf, pbs, slurm
from kettle_wire.batch import BatchRequest

Meaning = dict[str, Any]
"""Queue, account, seconds, and of each node CPUs, MiB of memory, GPUs; how many nodes, and whether nobody else is there."""
SPECS: Final[Sequence[Meaning]] = (
    {"cpus": 1},
    {"cpus": 8, "memory_mb": 4000, "seconds": 3600, "queue": "long"},
    {"cpus": 4, "nodes": 3, "memory_mb": 1500, "seconds": 5430, "account": "phys"},
    {"cpus": 16, "seconds": 86_400 * 3, "queue": "whole", "account": "phys", "exclusive": True},
    {"cpus": 2, "gpus": 2, "memory_mb": 100, "seconds": 61},
)
_UNITS: Final = {"": 1 / (1 << 20), "k": 1 / 1024, "m": 1, "g": 1024}


def request(spec: Meaning) -> BatchRequest:
    return BatchRequest(
        cpus=spec["cpus"],
        nodes=spec.get("nodes", 1),
        memory=spec.get("memory_mb", 0),
        gpus=spec.get("gpus", 0),
        wall=spec.get("seconds", 0),
        queue=spec.get("queue", ""),
        account=spec.get("account", ""),
        whole_node=spec.get("exclusive", False),
    )


def mib(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)([kmg]?)b?", text.lower())
    assert found is not None, text
    return float(found[1]) * _UNITS[found[2]]


def seconds(text: str, unit: int) -> int:
    """`H:M:S`, `H:M`, `D-H` of Slurm, or a number of `unit` seconds."""
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        return 86_400 * int(days) + sum(
            part * scale for part, scale in zip(parts, (3600, 60, 1), strict=False)
        )
    if len(parts) == 1:
        return parts[0] * unit
    return sum(part * scale for part, scale in zip(parts, (3600, 60, 1), strict=False))


def of_slurm(words: Sequence[str]) -> Meaning:
    said = dict(word.removeprefix("--").partition("=")[::2] for word in words if word.startswith("--"))
    tasks = int(said.get("ntasks-per-node", "1"))
    gpus = said.get("gres", "").removeprefix("gpu:") or int(said.get("gpus-per-task", "0")) * tasks
    return {
        "nodes": int(said["nodes"]),
        "cpus": int(said.get("cpus-per-task", "1")) * tasks,
        "gpus": int(gpus),
        "memory": mib(said["mem"]) if "mem" in said else 0,
        "seconds": seconds(said["time"], 60) if "time" in said else 0,
        "queue": said.get("partition", ""),
        "account": said.get("account", ""),
        "exclusive": "exclusive" in said,
    }


def of_pbs(words: Sequence[str]) -> Meaning:
    named = dict(pairwise(words))
    listed = [word for before, word in pairwise(words) if before == "-l"]
    said = dict(word.partition("=")[::2] for word in listed)
    chunk = said.get("select") or said["nodes"]
    count, *parts = chunk.split(":")
    of_chunk = dict(part.partition("=")[::2] for part in parts)
    nodes = int(count)
    memory = mib(of_chunk["mem"]) if "mem" in of_chunk else mib(said.get("mem", "0")) / nodes
    return {
        "nodes": nodes,
        "cpus": int(of_chunk.get("ncpus") or of_chunk["ppn"]),
        "gpus": int(of_chunk.get("gpus") or of_chunk.get("ngpus") or 0),
        "memory": memory,
        "seconds": seconds(said.get("walltime", "0"), 1),
        "queue": named.get("-q", ""),
        "account": named.get("-A", ""),
        "exclusive": "exclhost" in said.get("place", "") or "-n" in words,
        "apart": nodes == 1 or "nodes" in said or "scatter" in said.get("place", ""),
    }


def of_lsf(words: Sequence[str]) -> Meaning:
    said = dict(pairwise(words))
    slots = int(said.get("-n", "1"))
    of_node = re.search(r"ptile=(\d+)", " ".join(words))
    nodes = int(said.get("-nnodes") or (slots // int(of_node[1]) if of_node else 1))
    gpus = re.search(r"num=(\d+)(/task)?", said.get("-gpu", ""))
    each = slots // nodes if gpus is not None and gpus[2] else 1
    return {
        "nodes": nodes,
        "cpus": slots // nodes,
        "gpus": int(gpus[1]) * each if gpus is not None else 0,
        "memory": mib(said.get("-M", "0")),
        "seconds": seconds(said.get("-W", "0"), 60),
        "queue": said.get("-q", ""),
        "account": said.get("-P", ""),
        "exclusive": "-x" in words,
    }


def words_of(script: str, prefix: str) -> list[str]:
    """
    The words of its directives; what an option has is a word of its own, where it does not begin with two strokes.
    """
    lines = [line.removeprefix(prefix) for line in script.splitlines() if line.startswith(prefix)]
    return [word for line in lines for word in shlex.split(line)]


def _ours(kind: str, spec: Meaning) -> str:
    asked = request(spec)
    match kind:
        case "slurm":
            directives, prefix = slurm.directives("k", "/d", asked), "#SBATCH"
        case "lsf":
            directives, prefix = lsf.directives("k", "/d", asked), "#BSUB"
        case _:
            torque = kind == "pbs_classic"
            directives = pbs.directives("k", "/d", asked, torque=torque, gpus="gpus" if torque else "ngpus")
            prefix = "#PBS"
    return "\n".join(f"{prefix} {each}" for each in directives)


KINDS: Final[dict[str, tuple[str, Callable[[Sequence[str]], Meaning], frozenset[str]]]] = {
    "slurm": ("#SBATCH", of_slurm, frozenset()),
    "pbs": ("#PBS", of_pbs, frozenset({"gpus"})),  # PSI/J asks OpenPBS for no GPUs
    "pbs_classic": ("#PBS", of_pbs, frozenset({"gpus"})),  # PSI/J asks for as many as of one process, whose number is that of cores
    "lsf": ("#BSUB", of_lsf, frozenset({"gpus", "exclusive"})),  # GPUs as with Torque; PSI/J asks for no node alone
}  # fmt: skip


async def test_each_field_is_asked_for_as_psij_does(tmp_path: Path) -> None:
    """
    Of all batch systems that both know.  Times are never shorter than asked for, where PSI/J cuts seconds off for LSF; a whole node has all of
    its memory in Slurm, where PSI/J asks for some of it.
    """
    python = await python_of("psij_directives.py", "psij-python", tmp_path)
    specs = [{"executor": kind, **spec} for kind in KINDS for spec in SPECS]
    said = await execute(
        [python, str(SCRIPTS / "psij_directives.py"), str(tmp_path / "work")],
        tmp_path,
        {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        typed=json.dumps(specs),
        within_s=120,
    )
    assert 0 == said.status, said
    for spec, theirs in zip(specs, json.loads(said.out), strict=True):
        prefix, meaning, differ = KINDS[spec["executor"]]
        expected = meaning(words_of(theirs, prefix))
        ours = meaning(words_of(_ours(spec["executor"], spec), prefix))
        asked = spec.get("seconds", 0)
        assert asked <= ours.pop("seconds") < asked + 60, spec
        assert asked - 60 < expected.pop("seconds") <= asked or not asked, spec
        if spec.get("exclusive"):
            del ours["memory"], expected["memory"]
        for field in sorted(expected.keys() - differ):
            assert expected[field] == pytest.approx(ours[field]), (field, spec, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_for_is_what_a_request_says(kind: str) -> None:
    """By a reader of directives that knows nothing of how they are made."""
    prefix, meaning, _ = KINDS[kind]
    for spec in SPECS:
        ours = meaning(words_of(_ours(kind, spec), prefix))
        whole = spec.get("exclusive", False)
        assert spec.get("seconds", 0) <= ours["seconds"] < spec.get("seconds", 0) + 60
        expected = {
            "nodes": spec.get("nodes", 1),
            "cpus": spec["cpus"],
            "gpus": spec.get("gpus", 0),
            "memory": 0 if whole else spec.get("memory_mb", 0),
            "queue": spec.get("queue", ""),
            "account": spec.get("account", ""),
            "exclusive": whole,
        }
        assert expected == {name: ours[name] for name in expected}
        assert ours.get("apart", True)
