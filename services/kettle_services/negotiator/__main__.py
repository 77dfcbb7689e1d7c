"""`kettle run negotiator`."""

from kettle.runtime import run
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.negotiator.wiring import serve


def main() -> int:
    """Be a negotiator."""
    return run("negotiator", NegotiatorSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
