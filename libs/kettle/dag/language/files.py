"""Words into the commands that name files, and those that are for the job which runs the DAG."""

from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import Config, Environment, JobAttribute, JobstateLog, Reject
from kettle.dag.language.keywords import keyword
from kettle.dag.language.nodes import required, unexpected
from kettle.dag.language.words import Words
from kettle.dag.structure import Dot, NodeStatusFile


def dot(words: Words) -> Dot:
    """DOT; of opposite words the last one counts."""
    path = required(words.next(trim=True), "the file")
    update, overwrite, header = False, True, ""
    while word := words.next():
        match keyword(word):
            case "UPDATE" | "DONT_UPDATE":
                update = keyword(word) == "UPDATE"
            case "OVERWRITE" | "DONT_OVERWRITE":
                overwrite = keyword(word) == "OVERWRITE"
            case "INCLUDE":
                header = required(words.next(trim=True), "the header file behind INCLUDE")
            case _:
                raise unexpected(word, ("UPDATE", "DONT-UPDATE", "OVERWRITE", "DONT-OVERWRITE", "INCLUDE"))
    return Dot(path, update, overwrite, header)


def node_status_file(words: Words) -> NodeStatusFile:
    """NODE_STATUS_FILE."""
    path = required(words.next(trim=True), "the file")
    seconds, always = 60, False
    while word := words.next():
        if keyword(word) == "ALWAYS_UPDATE":
            always = True
        elif word[:1].isdigit():
            seconds = words.number(word, "the number of seconds", least=0)
        else:
            raise unexpected(word, ("ALWAYS-UPDATE",))
    return NodeStatusFile(path, seconds, always)


def jobstate_log(words: Words) -> JobstateLog:
    """JOBSTATE_LOG."""
    path = required(words.next(trim=True), "the file")
    words.end()
    return JobstateLog(path)


def config(words: Words) -> Config:
    """CONFIG."""
    path = required(words.next(trim=True), "the file")
    words.end()
    return Config(path)


def environment(words: Words) -> Environment:
    """ENV."""
    action = words.next()
    if keyword(action) not in {"SET", "GET"}:
        raise unexpected(action, ("SET", "GET")) if action else PlacelessFault("SET or GET is missing")
    rest = required(words.rest(), "what is set or got")
    if keyword(action) == "SET":
        return Environment(assignments=rest)
    return Environment(inherited=tuple(rest.replace(",", " ").split()))


def set_job_attr(words: Words) -> JobAttribute:
    """SET_JOB_ATTR."""
    assignment = required(words.rest(), "the attribute")
    name, sign, expression = assignment.partition("=")
    if not sign or not name.strip() or not expression.strip():
        raise PlacelessFault(f"{assignment!r} is no attribute = expression")
    return JobAttribute(assignment)


def reject(words: Words) -> Reject:
    """REJECT."""
    words.end()
    return Reject()
