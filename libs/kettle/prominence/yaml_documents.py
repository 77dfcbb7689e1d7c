"""
Documents in YAML, as the JSON that they stand for.

What JSON cannot say is refused and not guessed: anchors and aliases, by which a few lines could stand for more than there is memory
for, tags, several documents in one text, keys that are no words.  A plain word is a number, `true`, `false` or `null` where it would
be one in JSON, and else a text: a country `no` is no truth value, and the digits of a number are kept as they are written.
"""

import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kettle.prominence.faults import DocumentRefused, Fault

YAML_TYPES: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_MOST_DEPTH: Final = 100
_JSON_WORD: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")
_NOTHING: Final = frozenset({"", "~"})


class YamlMissingError(Exception):
    """PyYAML is not installed here."""


@functools.cache
def _yaml() -> Any:
    """
    PyYAML, which has no types of its own and is only loaded where somebody sends YAML.  Raises YamlMissingError.
    """
    try:
        return importlib.import_module("yaml")
    except ModuleNotFoundError as error:
        raise YamlMissingError(
            "documents in YAML are not read here, because PyYAML is not installed: send JSON, or have kettle[yaml] installed"
        ) from error


def json_of(text: bytes) -> bytes:
    """
    The document as JSON.

    Raises:
        DocumentRefused: it is no YAML, or says what JSON cannot say; with the line.
        YamlMissingError: nobody can read it here.
    """
    yaml = _yaml()
    try:
        plain = text.decode()
        return "".join(_Writer(yaml).written(plain)).encode()
    except UnicodeDecodeError as error:
        raise DocumentRefused([Fault("", "the document is no text in UTF-8")]) from error
    except yaml.YAMLError as error:
        raise DocumentRefused(
            [Fault("", f"the document is no YAML: {' '.join(str(error).split())}")]
        ) from error


class _Open:
    """A list or a map that is being written."""

    def __init__(self, *, is_map: bool) -> None:
        self.is_map = is_map
        self.keys: set[str] = set()
        self.has_key = False
        """Whether what comes next is the value of a key."""
        self.is_empty = True


class _Writer:
    """Writes one document, event by event; nothing of it is held but what is open."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._open: list[_Open] = []
        self._documents = 0

    def written(self, text: str) -> Iterator[str]:
        """Raises DocumentRefused, and what PyYAML raises."""
        yaml = self._yaml
        for event in yaml.parse(text, Loader=self._loader):
            match event:
                case yaml.DocumentStartEvent():
                    self._documents += 1
                    if self._documents > 1:
                        raise _refused(event, "there is a second document; send one")
                case yaml.AliasEvent():
                    raise _refused(event, f"*{event.anchor} is an alias: write out what it stands for")
                case yaml.ScalarEvent():
                    yield from self._scalar(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    yield from self._begin(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    yield "}" if self._open.pop().is_map else "]"
                case _:
                    pass
        if not self._documents:
            raise DocumentRefused([Fault("", "the document is empty")])

    def _begin(self, event: Any) -> Iterator[str]:
        is_map = isinstance(event, self._yaml.MappingStartEvent)
        _require_plain(event)
        if self._expects_key():
            raise _refused(event, "a key has to be a word")
        if len(self._open) >= _MOST_DEPTH:
            raise _refused(event, f"the document is more than {_MOST_DEPTH} levels deep")
        yield from self._before_value()
        self._open.append(_Open(is_map=is_map))
        yield "{" if is_map else "["

    def _scalar(self, event: Any) -> Iterator[str]:
        _require_plain(event)
        value: str = event.value
        if self._expects_key():
            place = self._open[-1]
            if value in place.keys:
                raise _refused(event, f"the key {value} is there twice")
            place.keys.add(value)
            yield "" if place.is_empty else ","
            place.is_empty, place.has_key = False, True
            yield f"{_quoted(value)}:"
            return
        yield from self._before_value()
        is_plain = event.style is None or event.style == ""
        if is_plain and value in _NOTHING:
            yield "null"
        else:
            yield value if is_plain and _JSON_WORD.fullmatch(value) else _quoted(value)

    def _expects_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_map and not self._open[-1].has_key

    def _before_value(self) -> Iterator[str]:
        if not self._open:
            return
        place = self._open[-1]
        if place.is_map:
            place.has_key = False
        elif not place.is_empty:
            yield ","
        place.is_empty = False


def _require_plain(event: Any) -> None:
    """Raises DocumentRefused for what has another meaning than it shows."""
    if event.anchor is not None:
        raise _refused(event, f"&{event.anchor} is an anchor: write out what it stands for where it is used")
    if event.tag is not None and event.tag != "!":
        raise _refused(event, f"{event.tag} is a tag, and a document has none")


def _refused(event: Any, sentence: str) -> DocumentRefused:
    return DocumentRefused([Fault("", f"line {event.start_mark.line + 1}: {sentence}")])


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
