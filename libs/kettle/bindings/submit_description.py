"""Submit: a submit description as a mapping, with its queue statement."""

from __future__ import annotations

import os
import random
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final, Self, TypeAlias

from kettle.bindings import submit_statements
from kettle.bindings.ads import ClassAd
from kettle.bindings.enumerations import SubmitMethod
from kettle.bindings.errors import HTCondorValueError
from kettle.bindings.pool_connections import ask, pool_here
from kettle.client import ClientError, login_name, prepare
from kettle.submit import Submission, SubmitError
from kettle.submit.errors import PlacelessError
from kettle.submit.macros import CLUSTER, Expander
from kettle.submit.queue_statement import Iteration, QueueItem, read_iteration

Items: TypeAlias = "Iterable[str] | Iterable[Mapping[str, Any]]"

_SEPARATOR: Final = re.compile(r"\s*,\s*|\s+")


class Submit(MutableMapping[str, str]):
    r"""
    A submit description: names without regard to case, values as they are written.

        Submit({"executable": "/bin/echo", "arguments": "$(word)"})
        Submit("executable = /bin/echo\nqueue 3")
    """

    bytes_allowed: ClassVar[bool] = False

    def __init__(
        self,
        input: Mapping[str, Any] | str | None = None,
        queue: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._texts: dict[str, tuple[str, str]] = {}
        self._queue = ""
        self._more: tuple[str, ...] = ()
        self._method = int(SubmitMethod.PythonBindings)
        match input:
            case None:
                pass
            case str():
                read = submit_statements.read(input)
                self._queue, self._more = read.queue, read.more
                for name, text in read.assignments.items():
                    self._set(name, text)
            case Mapping():
                self.update(input)
            case _:  # pyright: ignore[reportUnnecessaryComparison]
                raise TypeError("input must be a dictionary mapping string to strings, a string, or None")
        self.update(kwargs)
        if queue is not None:
            self.setQArgs(queue)

    def __getitem__(self, key: str) -> str:
        try:
            return self._texts[_key(key)][1]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("key must be a string")
        self._set(key, self._text(value))

    def _set(self, key: str, text: str) -> None:
        name = f"MY.{key[1:]}" if key.startswith("+") else key
        first = self._texts.get(name.lower(), (name, ""))[0]
        self._texts[name.lower()] = (first, text)

    def _text(self, value: Any) -> str:
        if isinstance(value, bytes) and self.bytes_allowed:
            value = value.decode("utf-8", "surrogateescape")
        if not isinstance(value, str | int | float | PurePath | ClassAd):
            raise TypeError("value must be a string")
        text = repr(value) if isinstance(value, ClassAd) else str(value)
        if "\n" in text:
            raise ValueError(f"a value is one line, and this has several: {text!r}")
        return text

    def __delitem__(self, key: str) -> None:
        del self._texts[_key(key)]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._texts.values())

    def __len__(self) -> int:
        return len(self._texts)

    def __str__(self) -> str:
        return self._lines() + " ".join(["queue", *([self.getQArgs()] if self.getQArgs() else [])]) + "\n"

    def __repr__(self) -> str:
        return f"Submit({self})"

    def _lines(self) -> str:
        return "".join(
            f"{name} @=end\n{text}\n@end\n" if "\n" in text or text.endswith("\\") else f"{name} = {text}\n"
            for name, text in self._texts.values()
        )

    def expand(self, attr: str) -> str:
        """A value with its macros put in; raises KeyError if there is none of this name."""
        live = {"process": "0", "procid": "0", "node": "", "step": "0", "row": "0", "itemindex": "0"}
        try:
            return self._expander(live).expand(self[attr]).replace(CLUSTER, "1")
        except PlacelessError as error:
            raise HTCondorValueError(f"{attr}: {error}") from error

    def getQArgs(self) -> str:
        """What stands behind the word `queue`, the items that stand in the description included."""
        return "\n".join([self._queue, *self._more])

    def setQArgs(self, args: str) -> None:
        """Replace it."""
        if not isinstance(args, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("args must be a string")
        first, *more = args.split("\n")
        self._queue, self._more = first.strip(), tuple(more)

    def itemdata(self, qargs: str | None = None) -> Iterator[dict[str, str]] | None:
        """The items of the queue statement, or of another; None if it has none."""
        iteration = self._iteration(self.getQArgs() if qargs is None else qargs)
        if not iteration.variables or not iteration.rows:
            return None
        return iter([dict(zip(iteration.variables, row.values, strict=True)) for row in iteration.rows])

    def getSubmitMethod(self) -> int:
        """What JobSubmitMethod will be."""
        return self._method

    def setSubmitMethod(
        self, method_value: SubmitMethod | int = -1, allow_reserved_values: bool = False
    ) -> None:
        """Say how these jobs come into the queue: a number from 100 on, unless others are allowed."""
        if int(method_value) < SubmitMethod.UserSet and not allow_reserved_values:
            raise ValueError(f"a submit method of one's own is {int(SubmitMethod.UserSet)} or more")
        self._method = int(method_value)

    def issue_credentials(self) -> str | None:
        """
        What to do for credentials that these jobs need and the pool does not have; None: they are there.
        """
        if not self.get("use_oauth_services", "").strip():
            return None
        from kettle.client.jobs.stored_credentials import missing_credentials

        ad = self.submission(1, None).ad
        return missing_credentials(ad, ask(pool_here(), lambda client: client.iam.credentials())) or None

    def jobs(
        self,
        count: int = 0,
        itemdata: Items | None = None,
        clusterid: int = 1,
        procid: int = 0,
        qdate: int = 0,
        owner: str = "",
    ) -> Iterator[ClassAd]:
        """The ads of the jobs as they would be, without any pool."""
        return self._ads(count, itemdata, clusterid, procid, qdate, owner)

    procs = jobs

    def _ads(
        self, count: int, items: Items | None, cluster: int, first: int, qdate: int, owner: str
    ) -> Iterator[ClassAd]:
        submission = self.submission(count, items)
        owner, _, domain = (owner or login_name()).partition("@")
        user = f"{owner}@{domain or socket.gethostname()}"  # as a schedd spells it that was told no domain
        known = {"ClusterId": cluster, "QDate": qdate or int(time.time()), "Owner": owner, "User": user}
        from kettle import classad

        for proc in range(submission.count):
            wire = {name: _numbered(value, cluster) for name, value in submission.job(proc).items()}
            wire |= known | {"ProcId": first + proc}
            yield self._ad_kind().around(classad.ClassAd.from_wire(wire))

    @classmethod
    def _ad_kind(cls) -> type[ClassAd]:
        return ClassAd

    def submission(self, count: int = 0, items: Items | None = None, queue: str | None = None) -> Submission:
        """
        The jobs, ready to be sent.  `queue` stands for the queue statement, `items` for its items, `count` for how
        often each is queued.

        Raises:
            HTCondorValueError: the description is refused.
        """
        iteration = self._iteration(self.getQArgs() if queue is None else queue, lenient=items is not None)
        if items is not None:
            iteration = _with_items(iteration, items)
        if count:
            iteration = Iteration(count, iteration.variables, iteration.rows)
        try:
            return prepare(
                f"{self._lines()}queue\n",
                source="Submit",
                submit_method=self._method,
                iteration=iteration,
                tolerant=True,
            )
        except (SubmitError, ClientError) as error:
            raise HTCondorValueError(str(error)) from error

    def _expander(self, more: Mapping[str, str] | None = None) -> Expander:
        table = {**(more or {}), **{key: text for key, (_, text) in self._texts.items()}}
        return Expander(table, os.environ, entropy=random.SystemRandom())

    def _iteration(self, text: str, *, lenient: bool = False) -> Iteration:
        first, *more = text.split("\n")
        lines = iter(more)
        try:
            if lenient and (names := submit_statements.item_names(first)) is not None:
                return Iteration(names.times, names.variables, (QueueItem(0, ("",) * len(names.variables)),))
            expanded = self._expander().expand(first)
            return read_iteration(expanded, cwd=Path.cwd(), more=lambda: next(lines, None))
        except PlacelessError as error:
            raise HTCondorValueError(f"queue {first}: {error}") from error

    @classmethod
    def from_dag(cls, filename: str, options: Mapping[str, int | bool | str] | None = None) -> Self:
        """
        The description of the job that runs a DAG; `DAG.condor.sub` is written, as condor_submit_dag does.

        Raises:
            OSError: there is no such DAG file.
            HTCondorValueError: something is wrong with it, or with the options.
        """
        from kettle.bindings.dag_description import described

        return cls(described(filename, options or {}))

    @staticmethod
    def from_dag_options() -> list[str]:
        """The options of `from_dag`."""
        from kettle.bindings.dag_description import option_names

        return option_names()


def _with_items(iteration: Iteration, items: Items) -> Iteration:
    """A queue statement with the same variables, if there are any, and these items."""
    rows: list[QueueItem] = []
    variables = iteration.variables
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            if not rows:
                variables = tuple(map(str, item))
            if set(variables) != set(item):
                raise HTCondorValueError(
                    f"item {index} has {', '.join(map(str, item))}, the first one had {', '.join(variables)}"
                )
            rows.append(QueueItem(index, tuple(str(item[name]) for name in variables)))
        elif isinstance(item, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            variables = variables or ("Item",)
            rows.append(QueueItem(index, _fields(item, len(variables))))
        else:
            raise TypeError(f"an item is a string or a dictionary, not {type(item).__name__}")
    if not rows:
        raise HTCondorValueError("there are no items, so there is no job")
    return Iteration(iteration.count, variables, tuple(rows), inline=False)


def _fields(item: str, wanted: int) -> tuple[str, ...]:
    fields = _SEPARATOR.split(item.strip(), wanted - 1) if wanted > 1 else [item.strip()]
    return tuple(fields + [""] * (wanted - len(fields)))


def _numbered(value: Any, cluster: int) -> Any:
    return value.replace(CLUSTER, str(cluster)) if isinstance(value, str) else value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError("key must be a string")
    return f"my.{key[1:]}".lower() if key.startswith("+") else key.lower()
