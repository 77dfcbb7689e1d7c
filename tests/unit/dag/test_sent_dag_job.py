"""The job of a DAG whose files are sent, which is all that a token has run on the access point."""

from typing import Any

import pytest

from kettle.dag.submission.sent_dag_job import SentDag, dag_job_ad, difference
from kettle.jobs.quoting import join_v2
from kettle_wire.ads.types import Ad, Expr

PYTHON = "/opt/kettle/bin/python3"
HOMES = ("/var/lib/kettle", "/run/kettle/ada")
DAG = SentDag(file="x.dag", files=["x.dag", "done.rescue"], rescue_file="done.rescue", max_idle=50)
SHOWN: Ad = {"JobBatchName": "mine", "JobPrio": 3, "ProminenceWorkflowSize": 4}
PROGRAM = ("-I", "-m", "kettle_services.condor.dagman")


def made(dag: SentDag = DAG, environment: tuple[str, ...] = (f"KETTLE_HOME={HOMES[1]}",), **more: Any) -> Ad:
    return {**dag_job_ad(dag, interpreter=PYTHON, environment=environment), **SHOWN, **more}


def other(ad: Ad) -> str:
    return difference(ad, interpreter=PYTHON, homes=HOMES)


@pytest.mark.parametrize(
    "ad",
    [
        made(),
        made(environment=()),
        made(SentDag(file="a.json", files=["a.json"], max_jobs=2), KettleWorkflowFile="a.json"),
        {name.lower(): value for name, value in made().items()},
        made(Cmd="/opt/kettle/bin/python3.11"),
    ],
)
def test_what_the_gateway_makes_is_the_job_of_a_workflow(ad: Ad) -> None:
    """Whatever its options, with what is only shown of it."""
    assert "" == other(ad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Cmd", "/bin/sh"),
        ("Cmd", "/opt/kettle/bin/../../../tmp/python3"),
        ("Cmd", "/opt/kettle/bin/pythonx"),
        ("Cmd", Expr('"/opt/kettle/bin/python3"')),
        ("Arguments", join_v2(["-c", "import os"])),
        ("Arguments", join_v2([*PROGRAM[1:], "-Lockfile", "x.dag.lock", "-Dag", "x.dag"])),
        ("Arguments", join_v2([*PROGRAM, "-Lockfile", "/home/ada/.bashrc", "-Dag", "x.dag"])),
        ("Arguments", join_v2([*PROGRAM, "-Lockfile", "x.dag.lock", "-Dag", "/home/ada/x.dag"])),
        ("Arguments", join_v2([*PROGRAM, "-Lockfile", "x.dag.lock", "-Dag", "x.dag", "-dagman", "/bin/sh"])),
        ("Arguments", join_v2([*PROGRAM, "-Lockfile", "x.dag.lock", "-Dag", "x.dag", "-insert_env", "LD_PRELOAD=x"])),
        ("Arguments", "'"),
        ("Environment", join_v2([f"KETTLE_HOME={HOMES[0]}", "LD_PRELOAD=./x.so"])),
        ("Environment", join_v2(["KETTLE_HOME=."])),
        ("Environment", join_v2(["CONDOR_CONFIG=mine"])),
        ("In", "/home/ada/.ssh/id_rsa"),
        ("TransferInput", "x.dag,done.rescue,/home/ada/.ssh/id_rsa"),
        ("TransferInput", "done.rescue"),
        ("TransferExecutable", True),
        ("TransferExecutable", 0),
        ("Out", "/home/ada/.bashrc"),
        ("RemoveKillSig", "SIGKILL"),
        ("OnExitRemove", Expr("false")),
        ("TransferOutputRemaps", "x.dag.lib.out=/home/ada/.bashrc"),
        ("UserLog", "/home/ada/.bashrc"),
        ("Iwd", "/home/ada"),
        ("Env", "LD_PRELOAD=./x.so"),
        ("Args", "-c pass"),
        ("PreCmd", "/bin/sh"),
        ("KettleWorkflowFile", "/home/ada/x.json"),
        ("KettleTasks", "[]"),
    ],
)  # fmt: skip
def test_whatever_else_it_says_is_named(name: str, value: Any) -> None:
    """An attribute that is otherwise, or one that is not in it at all."""
    expected = "Arguments" if name == "Arguments" else name
    assert expected == other(made(**{name: value}))


def test_one_attribute_in_two_spellings_is_none() -> None:
    """Which of them counts is not asked."""
    assert "an attribute that is said twice" == other(made(cmd=PYTHON))


@pytest.mark.parametrize("name", dag_job_ad(DAG, interpreter=PYTHON, environment=()))
def test_nothing_of_it_may_be_left_out(name: str) -> None:
    """What it has not said would be filled in by others."""
    ad = made()
    del ad[name]
    assert other(ad)
