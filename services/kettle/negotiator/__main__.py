"""`kettle run negotiator`."""

from kettle.negotiator.settings import NegotiatorSettings
from kettle.negotiator.wiring import serve
from kettle.runtime import run


def main() -> int:
    """Be a negotiator."""
    return run("negotiator", NegotiatorSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
