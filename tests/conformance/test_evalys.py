"""What a simulated trace comes to, by the figures of evalys and by ours."""

import json
import os
import random
from pathlib import Path
from typing import Final

import pytest
from tests.scenario.client_environments import python_with

from kettle.testing.commands.running import execute
from kettle_services.simulator.simulation_file import read

_PACKAGES: Final = ("evalys==4.0.7", "pandas<2.2", "numpy<2", "matplotlib<3.9", "setuptools<70")
"""It reads files with an argument that pandas 3 has no more."""
_PROCESSORS: Final = 64
_US: Final = 1_000_000
_FIGURES: Final = """\
import json, sys
from evalys.metrics import load_mean
from evalys.workload import Workload
jobs = Workload.from_csv(sys.argv[1])
begun = jobs.df.submission_time + jobs.df.waiting_time
used = jobs.utilisation
print(json.dumps({
    "wait": float(jobs.df.waiting_time.mean()),
    "median": float(jobs.df.waiting_time.median()),
    "makespan": float((begun + jobs.df.execution_time).max()),
    "used": float(load_mean(used, begin=0, end=float((begun + jobs.df.execution_time).max()))),
    "most": int(used.load.max()),
    "queued": float(jobs.queue.area.sum()),
}))
"""


@pytest.mark.asyncio
@pytest.mark.parametrize("discipline", ["fcfs", "easy"])
async def test_evalys_sees_the_same_in_a_simulated_trace(tmp_path: Path, discipline: str) -> None:
    """400 jobs of a trace on 64 nodes: waits, makespan, processors in use and those that are waited for."""
    python = await python_with(_PACKAGES, "evalys", tmp_path)
    draw = random.Random(3)
    at, lines = 0, [f"; MaxProcs: {_PROCESSORS}"]
    for job in range(400):
        at += draw.choice([0, 1, 10, 60])
        run, nodes = draw.randint(10, 900), draw.choice([1, 2, 4, 8, 16, 32])
        lines.append(
            f"{job + 1} {at if job else 0} -1 {run} {nodes} -1 -1 {nodes} {run * 2} -1 1 1 1 -1 -1 -1 -1 -1"
        )
    (tmp_path / "trace.swf").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(
        f'[platform]\nhosts = {_PROCESSORS}\n[workload]\nswf = "trace.swf"\n[queue]\ndiscipline = "{discipline}"\n'
    )
    result = read(tmp_path / "study.toml").simulation.run()
    played = [lines[0]]
    for line, start, submitted in zip(lines[1:], result.starts, result.submitted, strict=True):
        columns = line.split()
        columns[1], columns[2] = str(submitted // _US), str((start - submitted) // _US)
        played.append(" ".join(columns))
    played.insert(1, played[1])  # it takes the first job for a line of titles
    (tmp_path / "played.swf").write_text("\n".join(played) + "\n")
    (tmp_path / "figures.py").write_text(_FIGURES)
    words = [python, str(tmp_path / "figures.py"), str(tmp_path / "played.swf")]
    said = await execute(words, tmp_path, dict(os.environ))
    assert 0 == said.status, said
    theirs, ours = json.loads(said.out.splitlines()[-1]), result.figures()
    assert theirs["wait"] == pytest.approx(ours.wait_mean, abs=1.0)
    assert theirs["median"] == pytest.approx(ours.wait_median, abs=1.0)
    assert theirs["makespan"] == pytest.approx(ours.makespan, abs=1.0)
    assert theirs["used"] == pytest.approx(ours.utilisation * _PROCESSORS, rel=0.001)
    assert theirs["most"] <= _PROCESSORS
    waited = float(((result.starts - result.submitted) * result.workload.nodes).sum()) / _US
    assert theirs["queued"] == pytest.approx(waited, rel=0.001)
