"""`kettle run gateway`."""

from kettle.runtime import open_file_limit, run
from kettle_services.gateway.settings import GatewaySettings
from kettle_services.gateway.wiring import serve


def main() -> int:
    """Be a gateway."""
    open_file_limit.allow_many()
    return run("gateway", GatewaySettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
