#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["pandaharvester"]
# ///
"""
PanDA's Harvester: its classes for HTCondor submit workers, one batch by way of a spool, see how they are, and kill one.

They use commands for submissions and the module for the rest, as Harvester has it; the service around them is not started.
"""

import os
import re
import subprocess

from proof import prove, until

COMMON = """\
[logger]
loghost = 127.0.0.1
monport-apache = 9
method = GET
encoding = url
monurlprefix = /
logdir = {place}
nemitters = 1
migrated = True
log_level = DEBUG
"""
HARVESTER = """\
[master]
harvester_id = test-harvester
loggername = harvester
[db]
verbose = False
useInspect = False
nConnections = 1
engine = sqlite
database_filename = {place}/harvester.db
[fifo]
fifoModule = pandaharvester.harvesterfifo.sqlite_fifo
fifoClass = SqliteFifo
database_filename = {place}/$(TITLE).db
[monitor]
checkInterval = 1
[qconf]
configFile = queues.json
"""
WORKER = """\
executable = {place}/worker.sh
arguments = {word}
output = {place}/$(harvesterWorkerID).out
error = {place}/$(harvesterWorkerID).err
log = {place}/$(harvesterWorkerID).log
transfer_executable = True
should_transfer_files = YES
when_to_transfer_output = ON_EXIT_OR_EVICT
periodic_remove = (JobStatus == 2 && (CurrentTime - EnteredCurrentStatus) > 86400)
request_memory = 64
+harvesterID = "test-harvester"
harvesterWorkerID = {number}
+harvesterWorkerID = "{number}"
queue 1
"""


def drive(options):
    """Submit, monitor and sweep workers as Harvester's plugins for HTCondor do."""
    here = os.getcwd()
    os.environ["PANDA_HOME"] = here
    os.makedirs("etc/panda")
    for name, text in (("panda_common", COMMON), ("panda_harvester", HARVESTER)):
        with open(f"etc/panda/{name}.cfg", "w") as file:
            file.write(text.format(place=here))
    with open("worker.sh", "w") as file:
        file.write('#!/bin/sh\necho "worker with $1"\ncase $1 in stay) sleep 600;; bad) exit 64;; esac\n')
    os.chmod("worker.sh", 0o755)

    from pandaharvester.harvestercore import core_utils  # the others need it to be there

    from pandaharvester.harvestercore.work_spec import WorkSpec
    from pandaharvester.harvestermisc.htcondor_utils import CondorJobSubmit
    from pandaharvester.harvestermonitor.htcondor_monitor import HTCondorMonitor
    from pandaharvester.harvestersweeper.htcondor_sweeper import HTCondorSweeper

    asked = subprocess.run(["condor_status", "-schedd", "-af", "Name"], capture_output=True, text=True, check=True)
    host = f"{asked.stdout.split()[0]},None"
    submitter = CondorJobSubmit(id=host)
    monitor, sweeper = HTCondorMonitor(), HTCondorSweeper(preparatorBasePath=None)

    def submitted(words, first, spool):
        """Workers, one for each word."""
        described = [
            WORKER.format(place=here, word=word, number=first + number) for number, word in enumerate(words)
        ]
        ids, said = submitter.submit(described, use_spool=spool)
        assert len(words) == len(ids), said
        workers = []
        for number, batch in enumerate(ids):
            worker = WorkSpec()
            worker.workerID, worker.batchID, worker.submissionHost = first + number, batch, host
            worker.status = WorkSpec.ST_submitted
            worker.submitTime = worker.startTime = None
            workers.append(worker)
        return workers

    def states(workers):
        """Of each, what the monitor says."""
        for worker in workers:
            worker.submitTime = core_utils.naive_utcnow()
        good, said = monitor.check_workers(workers)
        assert good
        return [state for state, _ in said]

    workers = submitted(["good", "bad", "stay"], 1, spool=False)
    expected = [WorkSpec.ST_finished, WorkSpec.ST_failed, WorkSpec.ST_running]
    until("the ends of two workers", lambda: states(workers) == expected, options.timeout)
    assert [0, 64] == [worker.nativeExitCode for worker in workers[:2]]
    with open("1.out") as file:
        assert "worker with good\n" == file.read()

    killed = sweeper.kill_workers(workers[2:])
    assert [(True, "")] == killed, killed
    until("the end of the killed one", lambda: states(workers[2:]) == [WorkSpec.ST_cancelled], options.timeout)
    assert [(True, "")] == sweeper.kill_workers(workers[2:]), "one that is gone counts as killed"

    spooled = submitted(["good", "good"], 11, spool=True)
    assert re.fullmatch(r"\d+\.0", spooled[0].batchID)
    until("the ends of spooled workers", lambda: states(spooled) == [WorkSpec.ST_finished] * 2, options.timeout)
    return (
        "three workers and two by way of a spool were submitted, one ended well and one badly, each as it is told; "
        "one was killed, and killing it again was no error"
    )


if __name__ == "__main__":
    prove(drive)
