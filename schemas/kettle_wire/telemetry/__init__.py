"""
The telemetry of all services: metrics, spans and fields of logs, each declared once.

    metrics.METRICS              every metric; the instruments of the services are made of these
    metrics.of_service("schedd") those of one role
    traces.SPANS                 every span that is no command
    traces.LOG_FIELDS            what each line of a log has

`docs/reference/telemetry.md` and `schemas/json/telemetry.json` are made from it.
"""
