"""condor_who: the processes of a job."""

import os
import subprocess

from kettle_services.condor.commands.who import process_ids


def test_all_processes_below_the_first() -> None:
    """Also those that a process below it has started."""
    script = "sh -c 'echo $$; read line; exit 0'; exit 0"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout is not None
        assert shell.stdin is not None
        below = shell.stdout.readline().strip()
        assert f"{shell.pid},{below}" == process_ids(shell.pid)
        assert {str(shell.pid), below} <= set(process_ids(os.getpid()).split(","))
        shell.stdin.write("\n")
        shell.stdin.flush()


def test_of_a_job_without_processes_nothing_is_known() -> None:
    assert "?" == process_ids(0)
