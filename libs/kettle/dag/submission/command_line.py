"""Words of a command line into options; mistakes are told in HTCondor's words, which programs read."""

import re
from collections.abc import Sequence
from typing import Final

from kettle.dag.submission.options import EXCLUSIVE, FLAGS, OPTIONS, ORDERS, Flag, SubmitDagOptions

OF_DAEMONS: Final = ("-p", "0", "-f", "-l", ".")
"""What daemons of HTCondor are told, and the arguments of condor_dagman begin with."""
_SORTED: Final = sorted(FLAGS, key=str.lower)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")


class OptionError(ValueError):
    """A command line, or a set of options, makes no sense; the message is for the person."""


def parsed(words: Sequence[str]) -> SubmitDagOptions:
    """The options and DAG files of a command line; raises `OptionError`."""
    return _Parser(words).options


def of_dagman(words: Sequence[str]) -> SubmitDagOptions:
    """The options among the arguments of condor_dagman; raises `OptionError`."""
    count = len(OF_DAEMONS)
    return parsed(words[count:] if tuple(words[:count]) == OF_DAEMONS else words)


def by_name(name: str, value: object, options: SubmitDagOptions) -> None:
    """Set an option by the name that HTCondor's bindings have for it; raises `OptionError`."""
    flag = OPTIONS.get(name.lower())
    if flag is None:
        raise OptionError(f"there is no option {name} of a DAG")
    _set(options, flag, name, str(int(value)) if isinstance(value, bool) else str(value))


class _Parser:
    """One command line."""

    def __init__(self, words: Sequence[str]) -> None:
        self.options = SubmitDagOptions()
        self._words = words
        self._at = 0
        self._said: dict[str, str] = {}
        """Fields with the flag that said them first."""
        while self._at < len(words):
            self._take(words[self._at])
            self._at += 1

    def _take(self, word: str) -> None:
        if not word.startswith("-"):
            _set(self.options, FLAGS["-Dag"], "the name of a DAG file", word)
        elif self.options.dag_files and "-dag" not in map(str.lower, self._words):
            raise OptionError("ERROR: no arguments allowed after DAG file name(s)")
        else:
            self._flag(word.lower())

    def _flag(self, word: str) -> None:
        name = next((flag for flag in _SORTED if flag.lower() >= word), "")
        if not name.lower().startswith(word):
            raise OptionError(f"Error: Unknown flag '{word}' provided")
        flag = FLAGS[name]
        self._refuse_exclusive(name, flag)
        if flag.kind == "switch":
            before = self._said.setdefault(flag.field, name)
            if before.lower() != name.lower() and FLAGS[before].value != flag.value:
                raise OptionError(f"Error: Both {before} and {name} can't be used at the same time")
            setattr(self.options, flag.field, flag.value)
            return
        self._said.setdefault(flag.field, name)
        self._at += 1
        following = self._words[self._at : self._at + 1]
        if not following or (flag.kind != "number" and following[0].startswith("-")):
            raise OptionError(f"Error: Option {name} ({word}) requires an additional argument")
        _set(self.options, flag, f"{word} ({name}) additional argument", following[0])

    def _refuse_exclusive(self, name: str, flag: Flag) -> None:
        others = sorted(EXCLUSIVE.get(flag.field, frozenset()) & self._said.keys())
        if others:
            said = ",".join(sorted((self._said[other] for other in others), key=str.lower))
            flags = "flags" if len(others) > 1 else "flag"
            raise OptionError(f"Error: {name} can not be used with the following {flags}: {said}")


def _set(options: SubmitDagOptions, flag: Flag, what: str, text: str) -> None:
    if not text:
        raise OptionError(f"Error: {what} was empty")
    if not text.isprintable():
        raise OptionError(f"Error: {what} has a line end or another character that cannot be shown")
    match flag.kind:
        case "number":
            if not _NUMBER.fullmatch(text):
                raise OptionError(f"Error: {what} required to be a integer")
            setattr(options, flag.field, int(text))
        case "switch":
            if text.lower() not in {"true", "false", "0", "1"}:
                raise OptionError(f"Error: {what} required to be a bool")
            setattr(options, flag.field, text.lower() in {"true", "1"})
        case "texts":
            getattr(options, flag.field).append(text.strip() if flag.field == "add_to_env" else text)
        case "text":
            if flag.field == "order" and text not in ORDERS:
                raise OptionError(f"Error: {what} is one of {', '.join(ORDERS)}, and not {text}")
            is_quoted = flag.field == "batch_name" and len(text) > 1 and text[0] == text[-1] == '"'
            setattr(options, flag.field, text[1:-1] if is_quoted else text)
