"""`kettle run collector`."""

from kettle.runtime import run
from kettle_services.collector.settings import CollectorSettings
from kettle_services.collector.wiring import serve


def main() -> int:
    """Be a collector."""
    return run("collector", CollectorSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
