"""
Templates, of which each is compiled when it is first wanted: all of them together would be half of what a gateway does when it starts.

They are read at its start, and are of its version also when another one is installed meanwhile.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined, Template

from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.wording import counted, number, size, span, stamp
from kettle_services.gateway.rest.failures import words_of_signal

_DIRECTORY: Final = Path(__file__).parent / "templates"


class Templates:
    """Makes HTML of views."""

    def __init__(self, directory: Path = _DIRECTORY) -> None:
        texts = {
            path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8")
            for path in directory.rglob("*.html")
        }
        self._environment: Final = Environment(
            loader=DictLoader(texts),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            cache_size=-1,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Any] = {
            "counted": counted, "number": number, "size": size, "signal": words_of_signal, "span": span, "stamp": stamp,
        }  # fmt: skip
        self._environment.filters.update(filters)

    @property
    def names(self) -> list[str]:
        """Of all of them."""
        return self._environment.list_templates()

    def compiled(self, template: str) -> Template:
        """One of them; raises jinja2.TemplateError: it is wrong, or there is none of this name."""
        return self._environment.get_template(template)

    def render(self, template: str, frame: Frame, view: msgspec.Struct) -> str:
        """A page, or a part of one; raises jinja2.TemplateError."""
        return self.compiled(template).render(frame=frame, view=view)
