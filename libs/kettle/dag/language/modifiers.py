"""Words into the commands that say something of nodes that another line has made."""

from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import (
    Abort,
    Category,
    Done,
    MaxJobs,
    PreSkip,
    Priority,
    Retry,
    SavePoint,
    ScriptCommand,
    ToleranceCommand,
    Vars,
)
from kettle.dag.language.keywords import is_all_nodes, keyword
from kettle.dag.language.nodes import required, unexpected
from kettle.dag.language.words import Words
from kettle.dag.structure import AbortRule, Script, ScriptKind, Tolerance, Variable
from kettle.terminal.nearest_names import did_you_mean

_NODE = "the name of the node"


def script(words: Words) -> ScriptCommand:
    """SCRIPT; what stands behind the node's name is taken literally."""
    defer_status, defer_seconds, debug_file, debug_streams = None, 0, "", ""
    while (word := keyword(words.next())) not in {"PRE", "POST", "HOLD"}:
        match word:
            case "DEFER":
                defer_status = words.number(words.next(), "the exit code behind DEFER")
                defer_seconds = words.number(words.next(), "the number of seconds of DEFER", least=0)
            case "DEBUG":
                debug_file = required(words.next(trim=True), "the file behind DEBUG")
                debug_streams = keyword(
                    required(words.next(), "STDOUT, STDERR or ALL behind the file of DEBUG")
                )
                if debug_streams not in {"STDOUT", "STDERR", "ALL"}:
                    raise PlacelessFault(f"DEBUG takes STDOUT, STDERR or ALL, not {debug_streams!r}")
            case "":
                raise PlacelessFault("PRE, POST or HOLD is missing")
            case _:
                near = did_you_mean(word, ("PRE", "POST", "HOLD", "DEFER", "DEBUG"))
                raise PlacelessFault(f"PRE, POST or HOLD is wanted, not {word!r}{near}")
    node = required(words.next(), _NODE)
    command = required(words.rest(), "the executable of the script")
    return ScriptCommand(
        node,
        ScriptKind(word),
        Script(command, defer_status, defer_seconds, debug_file, debug_streams),
    )


def retry(words: Words) -> Retry:
    """RETRY."""
    node = required(words.next(), _NODE)
    retries = words.number(words.next(), "the number of retries", least=0)
    unless_exit = None
    if word := words.next():
        if keyword(word) != "UNLESS_EXIT":
            raise unexpected(word, ("UNLESS-EXIT",))
        unless_exit = words.number(words.next(), "the value behind UNLESS-EXIT")
    words.end()
    return Retry(node, retries, unless_exit)


def abort_dag_on(words: Words) -> Abort:
    """ABORT-DAG-ON."""
    node = required(words.next(), _NODE)
    value = words.number(words.next(), "the value that aborts the DAG")
    exit_code = None
    if word := words.next():
        if keyword(word) != "RETURN":
            raise unexpected(word, ("RETURN",))
        exit_code = words.number(words.next(), "the exit code behind RETURN", least=0, most=255)
    words.end()
    return Abort(node, AbortRule(value, exit_code))


def variables(words: Words) -> Vars:
    """VARS."""
    node = required(words.next(), _NODE)
    placement = keyword(words.peek())
    has_placement = placement in {"PREPEND", "APPEND"}
    if has_placement:
        words.next()
    found: list[Variable] = []
    while pair := words.pair():
        name, value = pair
        if name in {"+", "My."}:
            raise PlacelessFault(f"{name!r} is no name of a variable; an attribute has a name behind it")
        if name.startswith("+"):
            name = f"My.{name[1:]}"
        if name.lower().startswith("queue"):
            raise PlacelessFault(
                f"a variable cannot be called {name!r}: names that begin with 'queue' are statements"
            )
        found.append(Variable(name, value, placement == "APPEND"))
    if not found:
        raise PlacelessFault('there is no name="value"')
    return Vars(node, tuple(found), has_placement)


def priority(words: Words) -> Priority:
    """PRIORITY."""
    node = required(words.next(), _NODE)
    number = words.number(words.next(), "the priority")
    words.end()
    return Priority(node, number)


def pre_skip(words: Words) -> PreSkip:
    """PRE_SKIP."""
    node = required(words.next(), _NODE)
    code = words.number(words.next(), "the exit code", least=0, most=255)
    words.end()
    if code == 0:
        words.notes.append("an exit code of 0 skips nothing")
    return PreSkip(node, code)


def tolerance(words: Words) -> ToleranceCommand:
    """TOLERANCE; the sign of per cent may stand apart."""
    node = required(words.next(), _NODE)
    amount = words.next()
    is_percent = amount.endswith("%")
    if is_percent:
        amount = amount[:-1]
    elif words.peek() == "%":
        is_percent = bool(words.next())
    number = words.number(amount, "the number of jobs that may fail", least=0)
    fail_fast = None
    if word := words.next():
        mode = keyword(word)
        if mode not in {"FAIL_FAST", "WAIT"}:
            raise unexpected(word, ("FAIL-FAST", "WAIT"))
        fail_fast = mode == "FAIL_FAST"
    words.end()
    return ToleranceCommand(node, Tolerance(number, is_percent, fail_fast))


def done(words: Words) -> Done:
    """DONE."""
    node = required(words.next(), _NODE)
    words.end()
    return Done(node)


def save_point_file(words: Words) -> SavePoint:
    """SAVE_POINT_FILE."""
    node = required(words.next(), _NODE)
    if is_all_nodes(node):
        raise PlacelessFault("ALL_NODES cannot stand here: every node has its own save file")
    path = words.next(trim=True)
    words.end()
    return SavePoint(node, path)


def category(words: Words) -> Category:
    """CATEGORY."""
    node = required(words.next(), _NODE)
    name = required(words.next(), "the name of the category")
    words.end()
    return Category(node, name)


def max_jobs(words: Words) -> MaxJobs:
    """MAXJOBS."""
    name = required(words.next(), "the name of the category")
    limit = words.number(words.next(), "the number of nodes", least=0)
    words.end()
    return MaxJobs(name, limit)
