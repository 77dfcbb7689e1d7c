"""Templates, all of them compiled when the gateway starts: one that cannot be is found then."""

from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.wording import counted, number, size, span, stamp
from kettle_services.gateway.rest.failures import words_of_signal

_DIRECTORY: Final = Path(__file__).parent / "templates"


class Templates:
    """Makes HTML of views."""

    def __init__(self, directory: Path = _DIRECTORY) -> None:
        """Raises jinja2.TemplateError: a template is wrong."""
        environment = Environment(
            loader=FileSystemLoader(directory),
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
        environment.filters.update(filters)
        self._compiled: Final[dict[str, Template]] = {
            name: environment.get_template(name) for name in environment.list_templates()
        }

    def render(self, template: str, frame: Frame, view: msgspec.Struct) -> str:
        """A page, or a part of one."""
        return self._compiled[template].render(frame=frame, view=view)
