"""
Templates, all of them compiled before the gateway serves: one that cannot be is found then.

To compile them takes half a second of a core, so what comes of it is kept beside the bytecode of our modules, and under the
same conditions: where this process may write there and was not told to leave none.
"""

import hashlib
import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, Template
from jinja2.bccache import Bucket

from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.wording import counted, number, size, span, stamp
from kettle_services.gateway.rest.failures import words_of_signal

_DIRECTORY: Final = Path(__file__).parent / "templates"
_KEPT: Final = Path(cache_from_source(__file__)).parent
_FILTERS: Final[Mapping[str, Any]] = {
    "counted": counted, "number": number, "size": size, "signal": words_of_signal, "span": span, "stamp": stamp,
}  # fmt: skip


class Templates:
    """Makes HTML of views."""

    def __init__(self, directory: Path = _DIRECTORY, *, kept: Path = _KEPT) -> None:
        """
        `kept`: where compiled templates are looked for, and left.

        Raises:
            jinja2.TemplateError: a template is wrong.
        """
        environment = Environment(
            loader=FileSystemLoader(directory),
            undefined=StrictUndefined,
            auto_reload=False,
            cache_size=-1,
            bytecode_cache=_Bytecode(kept),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(_FILTERS)
        self._compiled: Final[dict[str, Template]] = {
            name: environment.get_template(name) for name in environment.list_templates()
        }

    def render(self, template: str, frame: Frame, view: msgspec.Struct) -> str:
        """A page, or a part of one."""
        return self._compiled[template].render(frame=frame, view=view)


class _Bytecode(FileSystemBytecodeCache):
    """
    Compiled templates, each valid for one text, and for this module and those of the filters as they are.

    How a text is read is said here, and a filter of a constant is called when a template is compiled.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(str(directory))
        made_by = {__file__, *(inspect.getfile(each) for each in _FILTERS.values())}
        self._made_by: Final = b"".join(Path(file).read_bytes() for file in sorted(made_by))

    def get_source_checksum(self, source: str) -> str:
        return hashlib.sha256(self._made_by + source.encode()).hexdigest()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):  # who may not write there compiles them at each start
                super().dump_bytecode(bucket)
