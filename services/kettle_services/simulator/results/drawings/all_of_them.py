"""The drawings of a result by the names of their files."""

from kettle_services.simulator.results.drawings import curves
from kettle_services.simulator.results.drawings.gantt import gantt
from kettle_services.simulator.results.result import Result


def drawn(result: Result) -> dict[str, str]:
    """Each as the text of an SVG."""
    return {
        "gantt.svg": gantt(result),
        "cores.svg": curves.cores_in_use(result),
        "shares.svg": curves.shares(result),
        "waits.svg": curves.waits(result),
    }
