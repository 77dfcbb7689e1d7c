"""
What surrounds the work of every service: settings, the runner, health, telemetry, logs.

    class ScheddSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
        shard: int = 0

    async def serve(rt: Runtime, settings: ScheddSettings) -> None:
        log = await rt.enter(...)           # closed in reverse order
        rt.loop(relay(log), name="relay")   # a failure stops the process
        rt.ready()
        await rt.stopping.wait()            # SIGTERM; finish what has begun, then return

    raise SystemExit(run("schedd", ScheddSettings, serve))
"""

from kettle.runtime.lifeline import Lifeline, make_lifeline
from kettle.runtime.service import (
    DRAIN_S,
    EXIT_CLEAN,
    EXIT_FAILED,
    EXIT_RENEWED,
    EXIT_SETTINGS,
    SETTINGS_SAID,
    How,
    Runtime,
    leaves,
    run,
)
from kettle.runtime.setting_types import Hidden, Secret, redact
from kettle.runtime.settings import ROLES, OwnerSettings, Settings
from kettle.runtime.settings_problems import SettingsError
from kettle.runtime.systemd_notify import Notification, Notifier, NotifyListener
from kettle.runtime.telemetry import Span, Telemetry

__all__ = [
    "DRAIN_S",
    "EXIT_CLEAN",
    "EXIT_FAILED",
    "EXIT_RENEWED",
    "EXIT_SETTINGS",
    "ROLES",
    "SETTINGS_SAID",
    "Hidden",
    "How",
    "Lifeline",
    "Notification",
    "Notifier",
    "NotifyListener",
    "OwnerSettings",
    "Runtime",
    "Secret",
    "Settings",
    "SettingsError",
    "Span",
    "Telemetry",
    "leaves",
    "make_lifeline",
    "redact",
    "run",
]
