"""From a launcher to a command, and the handling of its errors."""

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final, NoReturn, Protocol, TextIO, cast

from kettle.client.connections import short_process
from kettle.command_server.starting import start_if_useful
from kettle.terminal.text import TerminalText

COMMANDS: Final = {
    "condor_submit": ("submit", "jobs from a submit description"),
    "condor_q": ("q", "jobs in the queue"),
    "condor_rm": ("act", "take jobs out of the queue"),
    "condor_hold": ("act", "keep jobs from running"),
    "condor_release": ("act", "let held jobs run again"),
    "condor_suspend": ("act", "suspend running jobs"),
    "condor_continue": ("act", "have suspended jobs go on"),
    "condor_vacate_job": ("act", "have running jobs leave their machines"),
    "condor_history": ("history", "jobs that have left the queue"),
    "condor_adstash": ("adstash", "ads of jobs that have left the queue, into files for a search engine"),
    "condor_qsub": ("qsub", "jobs of scripts that were written for PBS or Grid Engine"),
    "condor_run": ("run", "a command line as a job, with its output and its exit status"),
    "condor_watch_q": ("watch_q", "watch jobs: a table with bars, drawn again as they come on"),
    "condor_wait": ("wait", "wait until a job event log says that jobs have ended"),
    "condor_userlog": ("userlog", "how long jobs ran where, by their job event logs"),
    "condor_qedit": ("edit", "give attributes of jobs other values"),
    "condor_prio": ("edit", "set or change the priority of jobs"),
    "condor_transfer_data": ("transfer_data", "fetch what jobs left that were submitted with their files"),
    "condor_status": ("status", "the slots and the other parts of the pool"),
    "condor_tail": ("tail", "files of a job that runs"),
    "condor_ssh_to_job": ("ssh_to_job", "a shell or a command beside a job that runs"),
    "condor_now": ("now", "run a job at once, in the place of others of yours"),
    "condor_chirp": ("chirp", "what a job asks of its access point; for programs of jobs"),
    "condor_dag_checker": ("dag_checker", "everything that is wrong with DAG files"),
    "condor_submit_dag": ("submit_dag", "a DAG: jobs that wait for each other"),
    "condor_dagman": ("dagman", "runs a DAG; condor_submit_dag starts it"),
    "condor_transform_ads": ("transform_ads", "try transforms of jobs on ads"),
    "condor_userprio": ("userprio", "how users and groups share the pool"),
    "condor_qusers": ("qusers", "who has jobs in the queue"),
    "condor_who": ("who", "the jobs and the daemons of this machine"),
    "condor_vacate": ("vacate", "have all jobs leave machines"),
    "condor_drain": ("drain", "empty a machine"),
    "condor_on": ("daemons", "switch daemons on"),
    "condor_off": ("daemons", "switch daemons off"),
    "condor_restart": ("daemons", "restart daemons"),
    "condor_reconfig": ("daemons", "have daemons read their settings again"),
    "condor_reschedule": ("reschedule", "nothing: there is no need to"),
    "condor_fetchlog": ("fetchlog", "what the daemons of this machine wrote"),
    "condor_top": ("top", "how busy the daemons are"),
    "condor_gpu_discovery": ("gpu_discovery", "the GPUs of this machine"),
    "condor_advertise": ("advertise", "not carried out: nobody speaks for another's daemon"),
    "condor_config_val": ("config_val", "the value of a knob"),
    "condor_ping": ("ping", "as whom a daemon takes you, and what you may do there"),
    "condor_test_token": ("test_token", "a token to try out what the pool would make of it"),
    "condor_token_create": ("token_create", "make a token that the key of the pool signs"),
    "condor_token_fetch": ("token_fetch", "have the pool make a token for you"),
    "condor_token_request": ("token_request", "ask for a token that an administrator approves"),
    "condor_token_request_list": ("token_request_list", "the tokens that were asked for"),
    "condor_token_request_approve": ("token_request_approve", "let a token be given that was asked for"),
    "condor_token_request_auto_approve": (
        "token_request_auto_approve",
        "let what daemons of a network ask for be given",
    ),
    "condor_token_list": ("token_list", "the tokens that you have"),
    "condor_store_cred": ("store_cred", "keep a token of a service for your jobs"),
    "condor_job_router_info": ("job_router_info", "routes, and where jobs would go by them"),
    "condor_router_q": ("router_q", "jobs that have a route, route by route"),
    "condor_ce_history": ("ce", "condor_history of a compute entrypoint"),
    "condor_ce_hold": ("ce", "condor_hold of a compute entrypoint"),
    "condor_ce_job_router_info": ("job_router_info", "condor_job_router_info of a compute entrypoint"),
    "condor_ce_ping": ("ce", "condor_ping of a compute entrypoint"),
    "condor_ce_q": ("ce", "condor_q of a compute entrypoint"),
    "condor_ce_qedit": ("ce", "condor_qedit of a compute entrypoint"),
    "condor_ce_reconfig": ("ce", "condor_reconfig of a compute entrypoint"),
    "condor_ce_release": ("ce", "condor_release of a compute entrypoint"),
    "condor_ce_rm": ("ce", "condor_rm of a compute entrypoint"),
    "condor_ce_router_q": ("router_q", "condor_router_q of a compute entrypoint"),
    "condor_ce_run": ("ce_run", "a command line through a compute entrypoint"),
    "condor_ce_status": ("ce", "condor_status of a compute entrypoint"),
    "condor_ce_submit": ("ce", "condor_submit to a compute entrypoint"),
    "condor_ce_trace": ("ce_trace", "a job all the way through a compute entrypoint"),
    "condor_ce_transfer_data": ("ce", "condor_transfer_data of a compute entrypoint"),
    "condor_ce_transform_ads": ("ce", "condor_transform_ads"),
    "condor_ce_verify_config": ("ce_verify_config", "whether an entrypoint can use its routes"),
    "condor_version": ("version", "the version of HTCondor that these commands are like"),
}
"""Each command, with the module in `commands` that is it, and what it is for."""

SERVED: Final = frozenset(
    {
        *(
            "condor_submit",
            "condor_q",
            "condor_rm",
            "condor_hold",
            "condor_release",
            "condor_suspend",
            "condor_continue",
        ),
        *(
            "condor_vacate_job",
            "condor_history",
            "condor_qedit",
            "condor_prio",
            "condor_status",
            "condor_userprio",
        ),
        *("condor_qusers", "condor_config_val", "condor_version"),
    }
)
"""Those that a command server may carry out: short, asked for in loops, and without a terminal of their own."""

_VERSION: Final = frozenset({"-version", "--version"})
_HELP: Final = frozenset({"-help", "--help", "-h", "-?"})
_PIPE_CLOSED: Final = 128 + 13  # what a shell calls the end by SIGPIPE


class _Command(Protocol):
    HELP: dict[str, str]

    def run(self, name: str, words: list[str], /) -> int: ...


def command(name: str, installation: str = "") -> NoReturn:
    """
    Run one command, with the arguments of this process; for launchers.

    `installation`: for those that a command server carries out, see `kettle.command_server.asking.context`.
    """
    if name == "condor_dagman":
        # It hears of its removal from its service. That may come at any time, also while most is not loaded yet.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    short_process.defer_loading()
    status = main(name, sys.argv[1:])
    if name in SERVED:
        start_if_useful("kettle_services.condor.command_server", installation)
    short_process.exit_quickly(status)


def main(name: str, words: list[str]) -> int:
    """Run a command; its exit status."""
    status = 1
    sys.stdout = cast("TextIO", TerminalText(sys.stdout))
    sys.stderr = cast("TextIO", TerminalText(sys.stderr))
    try:
        try:
            status = _guarded(name, words)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Python must not try to write what is left once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _PIPE_CLOSED
    except OSError as error:  # what cannot be written
        _say(f"{name}: {error.strerror}")
        return 1
    return status


def _guarded(name: str, words: list[str]) -> int:
    from kettle.client.connections.condor_config import heed_token_file
    from kettle.client.errors import ClientError
    from kettle_services.condor.errors import ToolError, WordsError

    heed_token_file(os.environ)
    if words and words[0] in _VERSION:
        name, words = "condor_version", []
    module = cast("_Command", import_module(f"kettle_services.condor.commands.{COMMANDS[name][0]}"))
    short_process.resume_collection()
    if words and words[0] in _HELP:
        sys.stdout.write(module.HELP[name])
        return 0
    try:
        return module.run(name, words)
    except WordsError as error:
        _say(f"{name}: {error}\nsee what it takes with: {name} -help")
        return error.status
    except ToolError as error:
        _say(str(error))
        return error.status
    except UnicodeEncodeError as error:
        _say(f"{name}: {error.object!r:.200} is not UTF-8: it can be neither sent nor printed")
    except ClientError as error:
        _say(f"\nERROR: {error}" if name == "condor_submit" else f"{name}: {error}")
    return 1


def _say(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
