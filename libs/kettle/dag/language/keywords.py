"""The names of the commands; the case of letters makes no difference, nor does `-` or `_`."""

from typing import Final

FORMS: Final = {
    "JOB": "JOB <node> <submit description> [DIR <directory>] [NOOP] [DONE]",
    "FINAL": "FINAL <node> <submit description> [DIR <directory>] [NOOP] [DONE]",
    "PROVISIONER": "PROVISIONER <node> <submit description> [DIR <directory>] [NOOP] [DONE]",
    "SERVICE": "SERVICE <node> <submit description> [DIR <directory>] [NOOP] [DONE]",
    "SUBDAG": "SUBDAG EXTERNAL <node> <DAG file> [DIR <directory>] [NOOP] [DONE]",
    "SPLICE": "SPLICE <name> <DAG file> [DIR <directory>]",
    "INCLUDE": "INCLUDE <DAG file>",
    "SUBMIT_DESCRIPTION": "SUBMIT-DESCRIPTION <name> { <lines of the description> }",
    "CATEGORY": "CATEGORY <node> <category>",
    "PARENT": "[WEAK] PARENT <node>... CHILD <node>...",
    "WEAK": "[WEAK] PARENT <node>... CHILD <node>...",
    "SCRIPT": "SCRIPT [DEFER <status> <seconds>] [DEBUG <file> STDOUT|STDERR|ALL] PRE|POST|HOLD <node> <executable> "
    "<argument>...",
    "RETRY": "RETRY <node> <number> [UNLESS-EXIT <value>]",
    "ABORT_DAG_ON": "ABORT-DAG-ON <node> <value> [RETURN <exit code>]",
    "VARS": 'VARS <node> [PREPEND|APPEND] <name>="<value>"...',
    "PRIORITY": "PRIORITY <node> <number>",
    "PRE_SKIP": "PRE_SKIP <node> <exit code>",
    "TOLERANCE": "TOLERANCE <node> <number>[%] [FAIL-FAST|WAIT]",
    "DONE": "DONE <node>",
    "MAXJOBS": "MAXJOBS <category> <number>",
    "CONFIG": "CONFIG <file>",
    "DOT": "DOT <file> [UPDATE|DONT-UPDATE] [OVERWRITE|DONT-OVERWRITE] [INCLUDE <header file>]",
    "NODE_STATUS_FILE": "NODE_STATUS_FILE <file> [<seconds>] [ALWAYS-UPDATE]",
    "JOBSTATE_LOG": "JOBSTATE_LOG <file>",
    "SAVE_POINT_FILE": "SAVE_POINT_FILE <node> [<file>]",
    "SET_JOB_ATTR": "SET_JOB_ATTR <attribute> = <expression>",
    "ENV": "ENV SET <name>=<value>;... or ENV GET <name>...",
    "REJECT": "REJECT",
    "CONNECT": "CONNECT <splice> <splice>",
    "PIN_IN": "PIN_IN <node> <number>",
    "PIN_OUT": "PIN_OUT <node> <number>",
}
"""Each command with its form."""

RESERVED: Final = frozenset({"PARENT", "CHILD", "ALL_NODES"})
"""Words that are no names of nodes, in capitals."""


def keyword(word: str) -> str:
    """A word as it is compared with the words of the language."""
    return word.upper().replace("-", "_")


def is_all_nodes(name: str) -> bool:
    """Whether a command speaks of every node."""
    return name.upper() == "ALL_NODES"
