"""`kettle run sessions`."""

from kettle.runtime import run
from kettle_services.sessions.settings import SessionsSettings
from kettle_services.sessions.wiring import serve


def main() -> int:
    """Be a service of interactive sessions."""
    return run("sessions", SessionsSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
