"""Templates for all tests of a process: each compiles what no other has wanted before."""

from typing import Final

from kettle_services.gateway.pages.rendering import Templates

TEMPLATES: Final = Templates()
