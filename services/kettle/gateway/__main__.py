"""`kettle run gateway`."""

from kettle.gateway.settings import GatewaySettings
from kettle.gateway.wiring import serve
from kettle.runtime import open_files, run


def main() -> int:
    """Be a gateway."""
    open_files.allow_many()
    return run("gateway", GatewaySettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
