"""`kettle run collector`."""

from kettle.collector.settings import CollectorSettings
from kettle.collector.wiring import serve
from kettle.runtime import run


def main() -> int:
    """Be a collector."""
    return run("collector", CollectorSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
