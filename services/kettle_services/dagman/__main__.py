"""`kettle run dagman`."""

from kettle.runtime import run
from kettle_services.dagman.settings import DagmanSettings
from kettle_services.dagman.wiring import serve


def main() -> int:
    """Be a dagman."""
    return run("dagman", DagmanSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
