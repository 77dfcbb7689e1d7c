"""
`$(name)`, `$(name:default)` and `$FUNCTION(...)`: the text substitution under all of the language.

Names are compared without regard to case, functions with it.  A reference that is not well formed stays as it is.
`$$(...)` is not expanded here: it is kept for the time when the job is matched with a machine.
"""

import os
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kettle.classad import NOTHING, Context
from kettle.submit.errors import MacroError
from kettle.submit.functions import FUNCTIONS, is_path_function, path_parts

CLUSTER: Final = "$(ClusterId)"
"""
What `$(Cluster)` and `$(ClusterId)` become: the number is known to the schedd alone, and it puts it in.
"""

MOST_STEPS: Final = 100_000
"""Macros put in for one text: those that refer to each other twice grow without bound."""
LONGEST: Final = 4 << 20
"""Characters that a value of a description comes to."""

_OPENING: Final = re.compile(r"\$(\$?)([A-Za-z_]*)\(")
_NAME: Final = re.compile(r"\s*([A-Za-z0-9_.]+)\s*")
_CLUSTER_NAMES: Final = frozenset({"cluster", "clusterid", "joblistid"})


class Expander:
    """
    Expands text with the macros of one queue statement, and notices whether the result may differ between jobs.

    `seen` are the names that were looked up, in lower case.

    `live` holds what changes from job to job (the item, the process number); `varied` is set, and never cleared
    here, as soon as an expansion looked at one of those or drew a random number. `context` is what expressions in
    functions may see and take, `directory` where the relative paths of `$Ff()` start, `longest` how many characters an expansion may come to; None: any number.
    """

    def __init__(
        self,
        table: Mapping[str, str],
        environ: Mapping[str, str],
        *,
        entropy: random.Random,
        context: Context = NOTHING,
        longest: int | None = None,
    ) -> None:
        self.environ = environ
        self.context = context
        self.live: Mapping[str, str] = {}
        self.entropy = entropy
        self.varied = False
        self.directory: Callable[[], str] = os.getcwd
        self.seen: set[str] = set()
        self._table = table
        self._longest = longest
        self._within: list[str] = []
        self._steps = 0

    def expand(self, text: str) -> str:
        """The text with every macro replaced by its value; raises MacroError."""
        if "$" not in text:
            return text
        if not self._within:
            self._steps = 0
        done: list[str] = []
        position = length = 0
        while (match := _OPENING.search(text, position)) is not None:
            done.append(text[position : match.start()])
            position = match.end()
            end = _closing(text, position)
            value = None if match[1] or end is None else self._replacement(match[2], text[position:end])
            if value is None or end is None:
                done.append(match[0])
            else:
                done.append(value)
                position = end + 1
                length += len(value)
                if self._longest is not None and length > self._longest:
                    raise MacroError(f"'{text[:60]}' becomes longer than {self._longest:,} characters")
        done.append(text[position:])
        return "".join(done)

    def value(self, name: str) -> str | None:
        """The expanded value of a macro; None if it is not defined."""
        key = name.lower()
        self.seen.add(key)
        if key in _CLUSTER_NAMES:
            return CLUSTER
        if key in self.live:
            self.varied = True
            text: str | None = self.live[key]
        else:
            text = self._table.get(key)
        if text is None or "$" not in text:
            return text
        if key in self._within:
            loop = " -> ".join([*self._within[self._within.index(key) :], key])
            raise MacroError(f"the macro $({name}) is defined by itself: {loop}")
        self._within.append(key)
        try:
            return self.expand(text)
        finally:
            self._within.pop()

    def resolve(self, argument: str) -> str:
        """The argument of a function macro: the name of a macro, or text."""
        match = _NAME.fullmatch(argument)
        found = self.value(match[1]) if match else None
        return self.expand(argument).strip() if found is None else found

    def draw(self) -> random.Random:
        """The source of random numbers, for a function macro: each job gets its own."""
        self.varied = True
        return self.entropy

    def _replacement(self, function: str, body: str) -> str | None:
        if function in FUNCTIONS:
            return FUNCTIONS[function](body, self)
        if is_path_function(function):
            wanted = self.directory() if "f" in function else ""
            return path_parts(function, self.resolve(body), directory=wanted)
        if function:
            return None
        name, colon, default = body.partition(":")
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise MacroError(f"$({match[1]}): more than {MOST_STEPS:,} macros would be put into one text")
        if match[1] == "DOLLAR":
            return "$"
        return self.value(match[1]) or (self.expand(default) if colon else "")


def _closing(text: str, position: int) -> int | None:
    """Where the parenthesis that is open at `position` closes."""
    depth = 1
    while True:
        closes = text.find(")", position)
        if closes < 0:
            return None
        depth += text.count("(", position, closes) - 1
        if depth == 0:
            return closes
        position = closes + 1


def names_used(text: str) -> Iterator[str]:
    """
    The lower-case names that a text refers to as macros, those in defaults and function arguments included.
    """
    position = 0
    while (match := _OPENING.search(text, position)) is not None:
        position = match.end()
        end = _closing(text, position)
        if match[1] or end is None:
            continue
        body = text[position:end]
        for part in body.split(",") if match[2] else [body.partition(":")[0]]:
            if name := _NAME.fullmatch(part):
                yield name[1].lower()


def substitute_self(name: str, text: str, current: str) -> str:
    """The one expansion at assignment: a macro that names itself means the value it had so far."""
    if "$" not in text:
        return text
    own = re.compile(rf"(?<!\$)\$\(\s*{re.escape(name)}\s*(?::([^()]*))?\)", re.IGNORECASE)
    return own.sub(lambda found: current or found[1] or "", text)


def unclosed(text: str) -> str:
    """The first macro call that is not closed, from its dollar on; empty if there is none."""
    position = 0
    while (match := _OPENING.search(text, position)) is not None:
        position = match.end()
        if not match[1] and _closing(text, position) is None:
            return text[match.start() :]
    return ""
