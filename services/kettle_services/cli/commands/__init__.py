"""
The subcommands: a module is imported when its command is typed, so that none pays for another's imports.

Each module has `HELP` (what it does, with examples), `arguments(parser)` and `run(arguments, screen) -> exit status`.
"""

from keyword import iskeyword
from typing import Final

GROUPS: Final[dict[str, dict[str, str]]] = {
    "your jobs": {
        "submit": "send jobs to the pool",
        "q": "the jobs in the queue",
        "wait": "wait until jobs have ended",
        "why": "why a job is where it is",
        "events": "what happened to a job",
        "history": "jobs that have left the queue",
        "tail": "the output of a job that runs",
        "exec": "run a program beside a job",
        "ssh": "a shell beside a job",
        "services": "what running jobs publish, and who uses it",
        "connect": "reach a service of a running job from here",
        "hold": "keep jobs from running",
        "prio": "set or change the priority of jobs",
        "release": "let held jobs run again",
        "vacate": "have running jobs leave their machines",
        "suspend": "suspend running jobs",
        "continue": "continue suspended jobs",
        "now": "run a job in the place of others of yours",
        "edit": "give attributes of jobs other values",
        "rm": "take jobs out of the queue",
        "publish": "within a job: let people reach one of its ports",
        "unpublish": "within a job: let them reach it no more",
        "dag": "check and draw DAG files, and see how far they are",
        "workflow": "check and translate documents of workflows",
        "data": "see whether files can be fetched by their URLs",
        "tasks": "many small commands, which a few jobs work through",
        "session": "clusters of Dask, notebooks and programs with which you work",
        "dask": "clusters of Dask, whose scheduler and workers are jobs",
    },
    "the pool": {
        "up": "start the pool of this machine",
        "down": "stop it",
        "status": "what the pool consists of and does",
        "web": "its pages, in a browser",
        "demo": "see all of it work, in a pool that is thrown away",
    },
    "who may do what": {
        "login": "sign in at an issuer of tokens",
        "logout": "forget its tokens",
        "whoami": "who the pool takes you for, and why you may do what",
        "token": "tokens with which programs act for you",
        "credential": "tokens of services that the pool keeps for your jobs",
    },
    "for language models": {
        "mcp": "tools with which a model asks about the pool",
    },
    "the language of ads": {
        "classad": "try out expressions, convert and match ads",
    },
    "coming from HTCondor": {
        "condor-env": "put the condor_* commands into a shell",
        "convert": "turn a condor_config into a kettle.toml",
    },
    "for those who run a pool": {
        "on": "switch daemons of a host on",
        "off": "switch them off",
        "restart": "end them and start them again",
        "config": "check, show and compare the settings",
        "reconfig": "have them read their settings again",
        "iam": "who may do what: check the files, try a credential",
        "health": "ask a service of this machine how it is",
        "logs": "what the daemons of this host wrote",
        "log-level": "have a daemon of this host log more or less",
        "doctor": "what is wrong here, and what to do about it",
        "run": "be one service of a pool",
        "drain": "empty a machine, or have it take work again",
        "site": "set up the server of a pool of many machines",
        "pool": "machines that come when jobs wait, and go when they are idle",
        "ce": "routes for jobs that come from elsewhere",
        "worker": "let machines join by a token",
        "schedd": "let access points join by a token",
        "ban": "let somebody in no more",
        "unban": "let him in again",
        "audit": "what was done about who may do what",
        "flock": "let jobs use other pools, and other pools' jobs use this one",
        "pki": "certificates, so that the pool's connections are encrypted",
        "usage": "what was used, by whom, where and when",
        "fairshare": "who may have which part of the pool, who has it, and over time",
        "userprio": "priorities, factors and usage of submitters",
        "what-if": "the past with other quotas, factors, policies or machines",
        "simulate": "jobs on machines that nobody has, on a fast clock",
        "log": "read, prove and repair the event log",
        "upgrade": "can this version serve the pool, and the last step of an upgrade",
        "backup": "back the pool up, prove a backup, bring the pool back",
        "schema": "schemas of events and commands, for programs",
        "completion": "complete commands in a shell",
        "version": "which Kettle this is",
    },
}

COMMANDS: Final = {name: says for group in GROUPS.values() for name, says in group.items()}


MEANT: Final = {
    "queue": "q", "jobs": "q", "list": "q", "ps": "q", "remove": "rm", "delete": "rm", "cancel": "rm", "kill": "rm",
    "resume": "continue", "start": "up", "stop": "down", "info": "status", "nodes": "status", "output": "tail",
    "qedit": "edit", "priority": "prio", "settings": "config", "users": "userprio",
    "tls": "pki", "certificates": "pki", "browse": "web", "dashboard": "web", "ui": "web",
}  # fmt: skip
"""Words that people try, and the subcommand that does it."""

_ELSEWHERE: Final = {"condor-env": "kettle_services.condor.condor_env"}
"""
Subcommands that another component brings along; it imports this one, so only their names are known here.
"""


def module_of(name: str) -> str:
    """
    The module of a subcommand: hyphens are underscores in its name, and a keyword of Python gets an underscore.
    """
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    return f"kettle_services.cli.commands.{name.replace('-', '_')}{'_' * iskeyword(name)}"
