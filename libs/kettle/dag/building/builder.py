"""
Each command carried out.

A file is read once; its commands are carried out in two passes, so that a line may speak of nodes that are made further
down.  The first pass makes nodes and reads spliced files, with everything that is in them; the second does the rest, in
the order of the file.  An included file is read in the second pass, again with two passes of its own.
"""

import posixpath
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from kettle.dag.building.drafts import Drafts, beside
from kettle.dag.building.lookup import node_called
from kettle.dag.building.modifying import modified
from kettle.dag.building.node_making import add_node, refuse_name
from kettle.dag.building.options import UNBOUNDED, Bounds, Options
from kettle.dag.building.ordering import order
from kettle.dag.building.scope import Scope, SplicedScope
from kettle.dag.building.settings import say
from kettle.dag.faults import DagError, Fault, Faults, PlacelessFault
from kettle.dag.language.commands import (
    Category,
    Command,
    Config,
    Connect,
    Dependency,
    Environment,
    Include,
    JobAttribute,
    JobstateLog,
    MaxJobs,
    Modifier,
    NodeCommand,
    Pin,
    Reject,
    SavePoint,
    Splice,
    SubmitDescription,
    Vars,
)
from kettle.dag.language.keywords import is_all_nodes
from kettle.dag.language.reading import Reader
from kettle.dag.structure import Dot, Node, NodeStatusFile, SpliceUse

MOST_NESTED: Final = 100
"""Files within files: splices in splices, and what they include."""
_VARIABLES: Final = 8
"""So many variables of a node cost as much as a change."""


class Builder:
    """Reads files and carries their commands out."""

    def __init__(
        self, read: Callable[[str], str], options: Options, faults: Faults, bounds: Bounds = UNBOUNDED
    ) -> None:
        self._read = read
        self._options = options
        self._faults = faults
        self._most_changes = bounds.changes
        self._changes = 0
        self._open: list[str] = []
        self.drafts = Drafts()

    def file(self, path: str, scope: Scope) -> None:
        """Read a file into a scope; raises `PlacelessFault` if it cannot be read at all."""
        name = posixpath.normpath(path)
        text = self._text(path, name)
        drafts = self.drafts
        before, drafts.file = drafts.file, len(drafts.files)
        drafts.files.append(path)
        self._open.append(name)
        reader = Reader(text, path, self._faults)
        for commands in (reader.first(), reader.second()):
            for line, command in commands:
                try:
                    self._carry_out(command, line, path, scope)
                except PlacelessFault as fault:
                    self._faults.add(path, line, str(fault))
        self._open.pop()
        drafts.file = before

    def _text(self, path: str, name: str) -> str:
        if name in self._open:
            chain = " -> ".join([*self._open[self._open.index(name) :], name])
            raise PlacelessFault(f"{path} is read while it is being read: {chain}")
        if len(self._open) > MOST_NESTED:
            raise PlacelessFault(f"{path} is nested too deeply: at most {MOST_NESTED} files within files")
        try:
            text = self._read(path)
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise PlacelessFault(f"{path} cannot be read: {reason}") from error
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise PlacelessFault(f"{path} has a zero byte in line {line}; a DAG file is text")
        return text

    def _carry_out(self, command: Command, line: int, path: str, scope: Scope) -> None:
        match command:
            case NodeCommand():
                add_node(
                    command,
                    self.drafts,
                    scope,
                    self._options,
                    path=path,
                    line=line,
                    warn=self._warning(path, line),
                )
            case Dependency() | Connect() | Pin():
                order(command, self.drafts, scope)
            case SubmitDescription():
                scope.descriptions[command.name] = command.text
            case Splice():
                self._splice(command, path, scope)
            case Include():
                self.file(self._located(command.path, path, scope), scope)
            case Config() | Environment() | JobAttribute():
                self._say_of_job(command, line, path, scope)
            case Dot() | NodeStatusFile() | JobstateLog() if scope.outer is not None:
                self._faults.warn(
                    path,
                    line,
                    "DOT, NODE_STATUS_FILE and JOBSTATE_LOG mean nothing in a file that is spliced into another one",
                )
            case MaxJobs() | Dot() | NodeStatusFile() | JobstateLog() | Reject():
                say(command, self.drafts, scope)
            case _:
                self._modify(command, line, path, scope)

    def _say_of_job(
        self, command: Config | Environment | JobAttribute, line: int, path: str, scope: Scope
    ) -> None:
        """Only the files of the command line speak of the job that runs the DAG."""
        if len(self._open) > 1:
            self._faults.warn(
                path, line, "CONFIG, ENV and SET_JOB_ATTR mean nothing in a file that another one reads"
            )
            return
        if isinstance(command, Config):
            command = replace(command, path=self._located(command.path, path, scope))
        say(command, self.drafts, scope)

    def _located(self, file: str, path: str, scope: Scope) -> str:
        """A file that is named in the one at `path`."""
        return beside(posixpath.dirname(path) if self._options.use_dag_directory else scope.directory, file)

    def _splice(self, command: Splice, path: str, scope: Scope) -> None:
        refuse_name(command.name, self.drafts, scope, self._options)
        name = scope.spelt(command.name)
        directory = self._located(command.directory, path, scope) if command.directory else scope.directory
        inner = Scope(prefix=f"{scope.prefix}{name}+", directory=directory, number=scope.number, outer=scope)
        self.drafts.scopes.append(inner)
        first = len(self.drafts.nodes)
        spliced = (
            beside(directory, command.path) if command.directory else self._located(command.path, path, scope)
        )
        self.file(spliced, inner)
        self.drafts.splices.append(
            SpliceUse(scope.full(command.name), spliced, first, len(self.drafts.nodes))
        )
        scope.splices[name] = SplicedScope(inner, self.drafts.initial(first), self.drafts.terminal(first))

    def _modify(self, command: Modifier, line: int, path: str, scope: Scope) -> None:
        indices: Sequence[int] = (
            scope.ordinary if is_all_nodes(command.node) else (node_called(command.node, scope),)
        )
        if not indices:
            raise PlacelessFault(
                "ALL_NODES stands for no node: this file makes none, nor one that it included before"
            )
        command = self._completed(command, path, scope)
        warn = self._warning(path, line)
        nodes = self.drafts.nodes
        if self._most_changes is not None:
            self._count(nodes, indices, line, path, self._most_changes)
        for index in indices:
            nodes[index] = modified(nodes[index], command, warn)

    def _count(self, nodes: Sequence[Node], indices: Sequence[int], line: int, path: str, most: int) -> None:
        """Raises `DagError`: it is too much.  Another variable costs more, the more a node has."""
        for index in indices:
            self._changes += 1 + len(nodes[index].variables) // _VARIABLES
            if self._changes > most:
                sentence = f"the commands change nodes more than {most:,} times: say less with ALL_NODES, or send the DAG in parts"
                raise DagError(Fault(path, line, sentence))

    def _completed(self, command: Modifier, path: str, scope: Scope) -> Modifier:
        """A command with what depends on the place where it stands."""
        match command:
            case SavePoint(path=""):
                return replace(command, path=f"{command.node}-{posixpath.basename(path)}.save")
            case Category():
                return replace(command, category=scope.category(command.category))
            case Vars(has_placement=False) if self._options.append_variables:
                return replace(
                    command, variables=tuple(replace(each, is_appended=True) for each in command.variables)
                )
            case _:
                return command

    def _warning(self, path: str, line: int) -> Callable[[str], None]:
        return lambda sentence: self._faults.warn(path, line, sentence)
