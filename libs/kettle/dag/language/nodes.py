"""Words into the commands that make nodes and order them."""

from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import (
    Connect,
    Dependency,
    Include,
    NodeCommand,
    Pin,
    Splice,
    SubmitDescription,
)
from kettle.dag.language.keywords import RESERVED, keyword
from kettle.dag.language.lines import Lines, begins_description
from kettle.dag.language.words import Words
from kettle.dag.structure import NodeKind
from kettle.terminal.nearest_names import did_you_mean


def required(word: str, meaning: str) -> str:
    """A word that must be there."""
    if not word:
        raise PlacelessFault(f"{meaning} is missing")
    return word


def unexpected(word: str, known: tuple[str, ...]) -> PlacelessFault:
    """The fault of a word that has no meaning where it stands."""
    return PlacelessFault(f"{word!r} has no meaning here{did_you_mean(word, known)}")


def node(kind: NodeKind, words: Words, lines: Lines) -> NodeCommand:
    """JOB, FINAL, PROVISIONER, SERVICE; SUBDAG behind its EXTERNAL."""
    name = required(words.next(), "the name of the node")
    submit = required(
        words.next(trim=True), "the DAG file" if kind is NodeKind.SUBDAG else "the submit description"
    )
    description = None
    if kind is not NodeKind.SUBDAG and begins_description(submit):
        description, rest = lines.description(submit)
        submit, words = "", Words(rest)
    if name.upper() in RESERVED:
        raise PlacelessFault(f"{name} is a word of the language and no name of a node")
    directory, is_noop, is_done = "", False, False
    while word := words.next():
        match keyword(word):
            case "NOOP":
                is_noop = True
            case "DONE":
                is_done = True
            case "DIR":
                directory = required(words.next(trim=True), "the directory behind DIR")
            case _:
                raise unexpected(word, ("DIR", "NOOP", "DONE"))
    return NodeCommand(kind, name, submit, description, directory, is_noop, is_done)


def subdag(words: Words, lines: Lines) -> NodeCommand:
    """SUBDAG EXTERNAL."""
    if keyword(words.next()) != "EXTERNAL":
        raise PlacelessFault("the word EXTERNAL is missing")
    return node(NodeKind.SUBDAG, words, lines)


def submit_description(words: Words, lines: Lines) -> SubmitDescription:
    """SUBMIT-DESCRIPTION."""
    name = required(words.next(), "the name of the description")
    opening = required(words.next(), "the description")
    if not begins_description(opening):
        raise PlacelessFault(f"a description begins with {{ or @=END, not with {opening!r}")
    return SubmitDescription(name, lines.description(opening)[0])


def splice(words: Words) -> Splice:
    """SPLICE."""
    name = required(words.next(), "the name of the splice")
    path = required(words.next(trim=True), "the DAG file")
    directory = ""
    if word := words.next():
        if keyword(word) != "DIR":
            raise unexpected(word, ("DIR",))
        directory = required(words.next(trim=True), "the directory behind DIR")
    words.end()
    return Splice(name, path, directory)


def weak_dependency(words: Words) -> Dependency:
    """WEAK PARENT ... CHILD ..."""
    if keyword(words.next()) != "PARENT":
        raise PlacelessFault("the word PARENT behind WEAK is missing")
    return dependency(words, is_weak=True)


def dependency(words: Words, *, is_weak: bool = False) -> Dependency:
    """PARENT ... CHILD ...; names that stand there twice count once."""
    names = words.all()
    middle = next((at for at, name in enumerate(names) if name.upper() == "CHILD"), None)
    if middle is None:
        raise PlacelessFault("the word CHILD is missing")
    parents = tuple(dict.fromkeys(names[:middle]))
    children = tuple(dict.fromkeys(name for name in names[middle + 1 :] if name.upper() != "CHILD"))
    if not parents:
        raise PlacelessFault("no node stands before CHILD")
    if not children:
        raise PlacelessFault("no node stands behind CHILD")
    return Dependency(parents, children, is_weak)


def include(words: Words) -> Include:
    """INCLUDE."""
    path = required(words.next(trim=True), "the file")
    words.end()
    return Include(path)


def connect(words: Words) -> Connect:
    """CONNECT."""
    parent = required(words.next(), "the name of the first splice")
    child = required(words.next(), "the name of the second splice")
    words.end()
    return Connect(parent, child)


def pin(words: Words, *, is_in: bool) -> Pin:
    """PIN_IN, PIN_OUT."""
    name = required(words.next(), "the name of the node")
    number = words.number(words.next(), "the number of the pin", least=1)
    words.end()
    return Pin(name, number, is_in)
