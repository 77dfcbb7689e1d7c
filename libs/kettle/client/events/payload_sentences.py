"""What events about payloads of pilots say, in a sentence each."""

from kettle_wire.events.payload import PayloadBegun, PayloadEvent, PayloadOver


def payload_sentence(event: PayloadEvent) -> tuple[str, str]:
    """As in `the pilot of ada runs atlas.4711 for bob (atlas) on node7`, and its meaning for colours."""
    match event:
        case PayloadBegun(by=by, payload=payload):
            vo = f" ({payload.vo})" if payload.vo else ""
            host = f" on {payload.host}" if payload.host else ""
            return f"the pilot of {by} runs {payload.name} for {payload.owner}{vo}{host}", "running"
        case PayloadOver(by=by, name=name, exit_code=code):
            said = "" if code is None else f" with exit code {code}"
            return f"{name} in the pilot of {by} has ended{said}", ""
        case _:
            return f"the pilot of {event.by} is over, with all that it runs", "dim"
