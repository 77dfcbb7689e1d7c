"""
Stands for the commands of OpenPBS, Torque, LSF and HTCondor, under their names: jobs of one machine with eight slots that really run.

What they print has the form of the recorded answers in tests/conformance/batch/data.  Run by itself, with nothing but the standard library;
`$FAKE_BATCH` is the directory of its files: `state`, `kind`, and `mode`: `down` when it does not answer.
"""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(os.environ["FAKE_BATCH"])
KIND: Final = (PLACE / "kind").read_text().strip()
SLOTS: Final = 8
Job = dict[str, Any]
State = dict[str, Any]


class FailedError(Exception):
    """A command ends with an error: its status, and what it says."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


@contextmanager
def changing() -> Generator[State]:
    """What there is; nobody else looks at it or changes it meanwhile."""
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = PLACE / "state"
        state: State = json.loads(file.read_text()) if file.exists() else {"next": 100, "jobs": {}}
        yield state
        begin_what_fits(state)
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(state))
        draft.rename(file)


def begin_what_fits(state: State) -> None:
    """In the order in which they came; one that does not fit has those behind it wait."""
    jobs = state["jobs"].values()
    free = SLOTS - sum(job["slots"] for job in jobs if job["state"] in {"running", "suspended"})
    for job in jobs:
        if job["state"] != "queued":
            continue
        if job["slots"] > free:
            return
        free -= job["slots"]
        job.update(state="running", began=int(time.time()))
        runner = subprocess.Popen(
            [sys.executable, "-ISE", __file__, "run", job["id"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        job["group"] = runner.pid


def run(id_: str) -> None:
    """The process of a job: run its script, then write down how that ended."""
    script = str(PLACE / f"script.{id_}")
    name = {"lsf": "LSB_JOBID", "htcondor": "KETTLE_BATCH_ID"}.get(KIND, "PBS_JOBID")
    with changing() as state:  # the command that began this process has written that
        job = state["jobs"][id_]
    ran = subprocess.run(
        ["sh", job.get("script", script)],
        env={**os.environ, name: id_},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    with changing() as state:
        if (job := state["jobs"][id_])["state"] != "ended":
            job.update(state="ended", how="exited", status=ran.returncode, ended=int(time.time()))


def add(name: str, slots: int, text: str = "", **more: object) -> str:
    """A job of which the command has read all."""
    with changing() as state:
        number = state["next"]
        id_ = f"{number}.fake" if KIND in {"pbs", "torque"} else str(number)
        if text:
            (PLACE / f"script.{id_}").write_text(text)
        state["next"] += 1
        state["jobs"][id_] = {
            "id": id_,
            "number": number,
            "name": name,
            "slots": slots,
            "state": "queued",
            **more,
        }
    return id_


def order(verb: str, is_meant: Callable[[Job], bool]) -> list[Job]:
    """
    Have jobs that have not ended be removed, held, suspended, or go on; the jobs that were meant, as they were.
    """
    before: list[Job] = []
    with changing() as state:
        for job in state["jobs"].values():
            if not is_meant(job):
                continue
            before.append(dict(job))
            was, begun = job["state"], job["state"] in {"running", "suspended"}
            if verb == "remove" and was != "ended":
                job.update(state="ended", how="removed", status=-signal.SIGKILL, ended=int(time.time()))
                _signal(job, signal.SIGKILL) if begun else None
            elif verb == "stop" and was in {"queued", "running"}:
                job["state"] = "suspended" if begun else "held"
                _signal(job, signal.SIGSTOP) if begun else None
            elif verb == "go" and was in {"held", "suspended"}:
                job["state"] = "running" if begun else "queued"
                _signal(job, signal.SIGCONT) if begun else None
    return before


def _signal(job: Job, number: int) -> None:
    """Its group, if that is still its own."""
    try:
        environment = Path(f"/proc/{job['group']}/environ").read_bytes()
        if f"FAKE_BATCH={PLACE}".encode() in environment:
            os.killpg(job["group"], number)
    except (FileNotFoundError, ProcessLookupError):
        pass  # it writes down its own end


def jobs() -> list[Job]:
    """All of them, as they are now."""
    with changing() as state:
        return list(state["jobs"].values())


def directives(text: str, prefix: str, arguments: list[str]) -> str:
    """All that a script and a command line say to the command that submits."""
    lines = [line.removeprefix(prefix).strip() for line in text.splitlines() if line.startswith(prefix + " ")]
    return " ".join([*lines, *arguments])


def said(text: str, pattern: str, otherwise: str = "") -> str:
    """The last that fits."""
    found = re.findall(pattern, text)
    return found[-1] if found else otherwise


# --- OpenPBS and Torque


def qsub(arguments: list[str]) -> str:
    """Take a job, whose script comes by standard input."""
    text = sys.stdin.read()
    told = directives(text, "#PBS", arguments)
    if said(told, r"-q (\S+)") == "nowhere":
        raise FailedError(170, "qsub: Unknown queue")
    return add(said(told, r"-N (\S+)"), int(said(told, r"(?:ncpus|ppn)=(\d+)", "1")), text)


def qselect(arguments: list[str]) -> str:
    """The ids of jobs of a name."""
    return "\n".join(job["id"] for job in jobs() if job["name"] == arguments[-1])


def qstat(arguments: list[str]) -> str:
    """Whether it answers, or what it says of jobs."""
    if arguments == ["-B"]:
        return "Server Max Tot Que Run Hld Wat Trn Ext Status\nfake 0 0 0 0 0 0 0 0 Active"
    asked = [each for each in arguments if each[0].isdigit()]
    known = {job["id"]: job for job in jobs() if job["id"] in asked}
    answer = _json(known) if "json" in arguments else _xml(known)
    unknown = [f"qstat: Unknown Job Id {each}" for each in asked if each not in known]
    if unknown:
        sys.stdout.write(f"{answer}\n")
        raise FailedError(153, "\n".join(unknown))
    return answer


def _letter(job: Job) -> str:
    ended = "C" if KIND == "torque" else "F"
    return {"queued": "Q", "held": "H", "running": "R", "suspended": "S", "ended": ended}[job["state"]]


def _status(job: Job) -> int | None:
    """As PBS counts it: a signal is 256 more; one that was deleted while it waited has none."""
    if job["state"] != "ended" or "began" not in job:
        return None
    if job["how"] == "removed":
        return 271
    status: int = job["status"]
    return status if status >= 0 else 256 - status


def _json(known: dict[str, Job]) -> str:
    listed: dict[str, Job] = {}
    for id_, job in known.items():
        listed[id_] = {
            "Job_Name": job["name"],
            "Job_Owner": "somebody@login",
            "job_state": _letter(job),
            "queue": "workq",
        }
        if "began" in job:
            listed[id_] |= {"exec_host": "n1/0", "stime": time.ctime(job["began"])}
        if (status := _status(job)) is not None:
            listed[id_]["Exit_status"] = status
    return json.dumps(
        {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": "fake", "Jobs": listed},
        indent=4,
    )


def _xml(known: dict[str, Job]) -> str:
    listed = ""
    for id_, job in known.items():
        more = "<exec_host>n1/0</exec_host><start_time>1</start_time>" if "began" in job else ""
        if (status := _status(job)) is not None:
            more += f"<exit_status>{status}</exit_status>"
        listed += f"<Job><Job_Id>{id_}</Job_Id><Job_Name>{job['name']}</Job_Name><job_state>{_letter(job)}</job_state>{more}</Job>"
    return f'<?xml version="1.0"?>\n<Data>{listed}</Data>'


def _pbs_order(verb: str) -> Callable[[list[str]], str]:
    def ordered(arguments: list[str]) -> str:
        found = order(verb, lambda job: job["id"] == arguments[-1])
        if not found:
            raise FailedError(153, f"{NAME}: Unknown Job Id {arguments[-1]}")
        if found[0]["state"] == "ended":
            raise FailedError(35, f"{NAME}: Job has finished {arguments[-1]}")
        return ""

    return ordered


def qsig(arguments: list[str]) -> str:
    """Suspend a job, or have it go on."""
    return _pbs_order("stop" if arguments[1] == "suspend" else "go")(arguments)


# --- LSF


def bsub(arguments: list[str]) -> str:
    """Take a job, whose script comes by standard input."""
    text = sys.stdin.read()
    told = directives(text, "#BSUB", arguments)
    if said(told, r"-q (\S+)") == "nowhere":
        raise FailedError(255, "nowhere: No such queue. Job not submitted.")
    id_ = add(said(told, r"-J (\S+)"), int(said(told, r"-n (\d+)", "1")), text)
    return f"Job <{id_}> is submitted to default queue <normal>."


def bjobs(arguments: list[str]) -> str:
    """What it says of jobs, by their numbers or by a name."""
    columns = next(each for each in arguments if "jobid" in each).upper().split()
    rest = arguments[arguments.index(" ".join(columns).lower()) + 1 :]
    all_of = jobs()
    if rest[0] == "-J":
        listed = [_columns(job) for job in all_of if job["name"] == rest[1]]
        if not listed:
            raise FailedError(255, f"Job <{rest[1]}> is not found")
    else:
        known = {job["id"]: job for job in all_of}
        listed = [
            _columns(known[id_]) if id_ in known else {"JOBID": id_, "ERROR": f"Job <{id_}> is not found"}
            for id_ in rest
        ]
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(listed), "RECORDS": listed}, indent=2)


def _columns(job: Job) -> Job:
    word = {"queued": "PEND", "held": "PSUSP", "running": "RUN", "suspended": "USUSP"}.get(
        job["state"], "EXIT"
    )
    code = reason = ""
    if job["state"] == "ended":
        status = job["status"]
        word = "EXIT" if status else "DONE"
        code = str(status if status >= 0 else 128 - status) if status else ""
        reason = f"Exited by signal {-status}" if status < 0 else ""
        if job["how"] == "removed":
            reason = "TERM_OWNER: job killed by owner"
    host = "h1" if "began" in job else ""
    return {
        "JOBID": job["id"], "STAT": word, "JOB_NAME": job["name"], "FIRST_HOST": host or "-", "EXIT_CODE": code,
        "EXIT_REASON": reason or "-", "START_TIME": "-", "FINISH_TIME": "-", "CPU_USED": "0.1 second(s)", "MAX_MEM": "2 Mbytes",
    }  # fmt: skip


def _lsf_order(verb: str) -> Callable[[list[str]], str]:
    def ordered(arguments: list[str]) -> str:
        _, name, id_ = arguments
        found = order(verb, lambda job: (job["name"], job["id"]) == (name, id_))
        if not found:
            raise FailedError(255, f"Job <{id_}>: No matching job found")
        if found[0]["state"] == "ended":
            raise FailedError(255, f"Job <{id_}>: Job has already finished")
        return f"Job <{id_}> is being handled"

    return ordered


# --- HTCondor


def condor_submit(arguments: list[str]) -> str:
    """Take a job, whose description is in a file."""
    text = Path(arguments[-1]).read_text()
    name = said(text, r'My\.KettleIntent = "(\S+)"')
    id_ = add(
        name, int(said(text, r"request_cpus = (\d+)", "1")), script=said(text, r"(?m)^arguments = (\S+)$")
    )
    return f"{id_}.0 - {id_}.0"


def _is_meant(constraint: str) -> Callable[[Job], bool]:
    """The constraints that the adapter writes, and no others."""
    if found := re.fullmatch(r'ClusterId == (\d+) && KettleIntent =\?= "(\w+)"', constraint):
        one = found.groups()
        return lambda job: (job["id"], job["name"]) == one
    if found := re.fullmatch(r'stringListMember\(KettleIntent \?: "", "([\w,]+)"\)', constraint):
        names = found[1].split(",")
        return lambda job: job["name"] in names
    assert constraint == "KettleIntent isnt undefined", constraint
    return lambda _: True


_CONDOR: Final = {"queued": 1, "running": 2, "removed": 3, "ended": 4, "held": 5, "suspended": 7}


def _ad(job: Job) -> Job:
    ad: Job = {
        "ClusterId": int(job["id"]),
        "KettleIntent": job["name"],
        "JobStatus": _CONDOR[job["state"]],
    }
    if "began" in job:
        ad |= {"RemoteHost": "slot1@node", "JobStartDate": job["began"]}
    if job["state"] == "ended":
        ad |= {"EnteredCurrentStatus": job["ended"]}
        if job["how"] == "removed":
            return ad | {"JobStatus": _CONDOR["removed"], "RemoveReason": "via condor_rm (by user somebody)"}
        by_signal = job["status"] < 0
        ad |= {"ExitBySignal": by_signal, "ExitSignal" if by_signal else "ExitCode": abs(job["status"])}
    return ad


def condor_q(arguments: list[str]) -> str:
    """Whether it answers, or the jobs that have not ended."""
    if arguments == ["-totals"]:
        return "Total for query: 0 jobs; 0 completed, 0 removed, 0 idle, 0 running, 0 held, 0 suspended"
    is_meant = _is_meant(arguments[arguments.index("-constraint") + 1])
    return json.dumps([_ad(job) for job in jobs() if job["state"] != "ended" and is_meant(job)])


def condor_history(arguments: list[str]) -> str:
    """The jobs that have ended."""
    if "-constraint" in arguments:
        is_meant = _is_meant(arguments[arguments.index("-constraint") + 1])
    else:
        asked = {each for each in arguments if each.isdigit()}

        def is_meant(job: Job, /) -> bool:
            return job["id"] in asked

    return json.dumps([_ad(job) for job in jobs() if job["state"] == "ended" and is_meant(job)])


def _condor_order(verb: str) -> Callable[[list[str]], str]:
    def ordered(arguments: list[str]) -> str:
        is_meant = _is_meant(arguments[-1])
        found = order(verb, lambda job: job["state"] != "ended" and is_meant(job))
        if not found:
            raise FailedError(1, f"Couldn't find any jobs matching constraint {arguments[-1]}")
        return f"Jobs matching constraint {arguments[-1]} have been marked"

    return ordered


PBS: Final = {
    "qsub": qsub, "qselect": qselect, "qstat": qstat, "qsig": qsig,
    "qdel": _pbs_order("remove"), "qhold": _pbs_order("stop"), "qrls": _pbs_order("go"),
}  # fmt: skip
COMMANDS: Final[dict[str, dict[str, Callable[[list[str]], str]]]] = {
    "pbs": PBS,
    "torque": PBS,
    "lsf": {
        "bsub": bsub, "bjobs": bjobs, "bqueues": lambda _: "QUEUE_NAME PRIO STATUS\nnormal 30 Open:Active",
        "bkill": _lsf_order("remove"), "bstop": _lsf_order("stop"), "bresume": _lsf_order("go"),
    },
    "htcondor": {
        "condor_submit": condor_submit, "condor_q": condor_q, "condor_history": condor_history,
        "condor_rm": _condor_order("remove"), "condor_hold": _condor_order("stop"), "condor_suspend": _condor_order("stop"),
        "condor_release": _condor_order("go"), "condor_continue": _condor_order("go"),
    },
}  # fmt: skip
_DOWN: Final = {
    "pbs": "Connection refused\n{0}: cannot connect to server fake (errno=15010)",
    "torque": "Connection refused\n{0}: cannot connect to server fake (errno=111) Connection refused",
    "lsf": "LSF is down. Please wait ...\n{0}: Failed in an LSF library call: Slave LIM configuration is not ready yet",
    "htcondor": "-- Failed to connect to <127.0.0.1:9618>\nERROR: Can't find address of local schedd",
}


def main(name: str, arguments: list[str]) -> int:
    """What the command of this name does."""
    if name == "run":
        run(arguments[0])
        return 0
    with (PLACE / "asked").open("a") as asked:
        asked.write(f"{name}\n")
    if (PLACE / "mode").read_text().strip() == "down":
        sys.stderr.write(_DOWN[KIND].format(name) + "\n")
        return 1
    try:
        sys.stdout.write(COMMANDS[KIND][name](arguments) + "\n")
    except FailedError as failed:
        sys.stderr.write(f"{failed}\n")
        return failed.status
    return 0


if __name__ == "__main__":
    NAME: Final = sys.argv[1]
    sys.exit(main(NAME, sys.argv[2:]))
