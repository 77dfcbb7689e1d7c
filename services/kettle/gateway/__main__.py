"""`kettle run gateway`."""

from kettle.gateway.settings import GatewaySettings
from kettle.gateway.wiring import serve
from kettle.runtime import run


def main() -> int:
    """Be a gateway."""
    return run("gateway", GatewaySettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
