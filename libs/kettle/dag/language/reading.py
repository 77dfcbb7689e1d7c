"""Which command a line is."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from kettle.dag.faults import Faults, PlacelessFault
from kettle.dag.language import files, modifiers, nodes
from kettle.dag.language.commands import Command
from kettle.dag.language.keywords import FORMS, keyword
from kettle.dag.language.lines import Lines
from kettle.dag.language.words import Words
from kettle.dag.structure import NodeKind
from kettle.terminal.nearest_names import did_you_mean

_MANY_LINES: Final[dict[str, Callable[[Words, Lines], Command]]] = {
    "JOB": partial(nodes.node, NodeKind.JOB),
    "FINAL": partial(nodes.node, NodeKind.FINAL),
    "PROVISIONER": partial(nodes.node, NodeKind.PROVISIONER),
    "SERVICE": partial(nodes.node, NodeKind.SERVICE),
    "SUBDAG": nodes.subdag,
    "SUBMIT_DESCRIPTION": nodes.submit_description,
}
"""Commands behind which a description may follow."""

_ONE_LINE: Final[dict[str, Callable[[Words], Command]]] = {
    "PARENT": nodes.dependency,
    "WEAK": nodes.weak_dependency,
    "VARS": modifiers.variables,
    "SCRIPT": modifiers.script,
    "RETRY": modifiers.retry,
    "PRIORITY": modifiers.priority,
    "CATEGORY": modifiers.category,
    "DONE": modifiers.done,
    "MAXJOBS": modifiers.max_jobs,
    "ABORT_DAG_ON": modifiers.abort_dag_on,
    "PRE_SKIP": modifiers.pre_skip,
    "TOLERANCE": modifiers.tolerance,
    "SAVE_POINT_FILE": modifiers.save_point_file,
    "SPLICE": nodes.splice,
    "INCLUDE": nodes.include,
    "CONNECT": nodes.connect,
    "PIN_IN": partial(nodes.pin, is_in=True),
    "PIN_OUT": partial(nodes.pin, is_in=False),
    "DOT": files.dot,
    "NODE_STATUS_FILE": files.node_status_file,
    "JOBSTATE_LOG": files.jobstate_log,
    "CONFIG": files.config,
    "ENV": files.environment,
    "SET_JOB_ATTR": files.set_job_attr,
    "REJECT": files.reject,
}


_FIRST: Final = frozenset({*_MANY_LINES, "SPLICE", "REJECT", "DOT", "NODE_STATUS_FILE", "JOBSTATE_LOG"})
"""What is carried out first, so that other lines may stand before the nodes that they speak of."""


class Reader:
    """
    The commands of one file, with the numbers of their lines, in two passes.

    A line that cannot be read is a fault, and no command.
    """

    def __init__(self, text: str, file: str, faults: Faults) -> None:
        self._lines = Lines(text)
        self._file = file
        self._faults = faults
        self._later: list[tuple[int, str]] = []

    def first(self) -> Iterator[tuple[int, Command]]:
        """Nodes, splices, descriptions and what else is independent of the order."""
        while (found := self._lines.next()) is not None:
            number, line = found
            words = Words(line)
            name = self._keyword(number, words)
            if name in _ONE_LINE and name not in _FIRST:
                self._later.append(found)
            elif name and (command := self._command(number, name, words)) is not None:
                yield number, command

    def second(self) -> Iterator[tuple[int, Command]]:
        """All others, after the first pass has come to its end."""
        for number, line in self._later:
            words = Words(line)
            if (command := self._command(number, self._keyword(number, words), words)) is not None:
                yield number, command

    def _keyword(self, number: int, words: Words) -> str:
        try:
            return keyword(words.next())
        except PlacelessFault as fault:
            self._faults.add(self._file, number, str(fault))
            return ""

    def _command(self, number: int, name: str, words: Words) -> Command | None:
        try:
            command = self._read(name, words)
        except PlacelessFault as fault:
            self._faults.add(self._file, number, f"{name}: {fault}; its form is {FORMS[name]}")
            return None
        if command is None:
            self._faults.add(
                self._file, number, f"{name!r} is no command of a DAG file{did_you_mean(name, FORMS)}"
            )
            return None
        for note in words.notes:
            self._faults.warn(self._file, number, f"{name}: {note}")
        return command

    def _read(self, name: str, words: Words) -> Command | None:
        if (read := _ONE_LINE.get(name)) is not None:
            return read(words)
        if (read_on := _MANY_LINES.get(name)) is not None:
            return read_on(words, self._lines)
        return None
