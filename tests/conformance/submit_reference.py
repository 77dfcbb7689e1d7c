"""
Makes the vectors of `data/submit-differential.jsonl`: what HTCondor's condor_submit makes of the drawn descriptions.

    python -m tests.conformance.submit_reference CONDOR_SUBMIT > tests/conformance/data/submit-differential.jsonl

CONDOR_SUBMIT is that of HTCondor 25.14.1, whose `-dry-run` needs no daemons.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from tests.conformance.submit_descriptions import COUNT, drawn, lay

CONFIG = """\
LOG = $(HERE)
SPOOL = $(HERE)
LOCK = $(HERE)
FILESYSTEM_DOMAIN = example.org
UID_DOMAIN = example.org
ARCH = X86_64
OPSYS = LINUX
"""
OWN = {"QDate", "EnteredCurrentStatus", "JobSubmitFile", "CondorVersion", "SubmitVersion", "CondorPlatform"}
"""What tells of the moment, the file and the release."""
SIMPLE = "executable = /bin/sleep\nqueue\n"


class Answer(TypedDict, total=False):
    """One vector."""

    text: str
    jobs: list[dict[str, str]]
    error: str
    said: str


def asked(program: str, text: str) -> Answer:
    """The ads of all jobs, merged with that of their cluster; or the complaint."""
    with tempfile.TemporaryDirectory(prefix="submit-") as name:
        here = Path(name) / "here"
        here.mkdir()
        lay(here)
        config = Path(name) / "condor_config"
        config.write_text(CONFIG.replace("$(HERE)", name), encoding="utf-8")
        (Path(name) / "job.sub").write_text(text, encoding="utf-8")
        environ = {"PATH": os.environ["PATH"], "HOME": "/home/somebody", "HERE": str(here), "KNOWN": "known"}
        done = subprocess.run(
            [program, "-dry-run", "-", f"{name}/job.sub"],
            cwd=here,
            env=environ | {"CONDOR_CONFIG": str(config)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    said = done.stderr.replace(str(here), "$HERE").replace(f"{name}/job.sub", "job.sub").strip()
    if done.returncode:
        return {"text": text, "error": said}
    jobs = [
        {key: value.replace(str(here), "$HERE") for key, value in ad.items() if key not in OWN}
        for ad in merged(done.stdout)
    ]
    return {"text": text, "jobs": jobs, "said": said}


def merged(printed: str) -> list[dict[str, str]]:
    """Job by job; an ad ends with a dot, and the first one of a cluster has what its jobs share."""
    cluster: dict[str, str] = {}
    jobs: list[dict[str, str]] = []
    ad: dict[str, str] = {}
    for line in printed.splitlines():
        if line == ".":
            if "ClusterId" in ad:
                cluster = {name: value for name, value in ad.items() if name not in {"ProcId", "JobStatus"}}
            jobs.append(cluster | ad)
            ad = {}
        elif "=" in line:
            name, _, value = line.partition("=")
            ad[name] = value
    return jobs


def main() -> None:
    """Print one vector after the other: what each has beside what the simplest job has."""
    program = sys.argv[1]
    simple = asked(program, SIMPLE)
    [base] = simple.get("jobs", [])
    vectors = [simple]
    for seed in range(COUNT):
        vector = asked(program, drawn(seed))
        vector = (
            vector | {"jobs": [changes(base, job) for job in vector["jobs"]]} if "jobs" in vector else vector
        )
        vectors.append(vector)
    sys.stdout.writelines(json.dumps(vector) + "\n" for vector in vectors)


def changes(base: dict[str, str], job: dict[str, str]) -> dict[str, str]:
    """What is another value than in the simplest job, or is not there."""
    lower = {name.lower() for name in job}
    new = {name: value for name, value in job.items() if base.get(name) != value}
    return new | {name: "<absent>" for name in base if name.lower() not in lower}


if __name__ == "__main__":
    main()
