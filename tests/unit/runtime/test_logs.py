import io
import json
import logging
import sys
from collections.abc import Generator

import pytest

from kettle.runtime import logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Generator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)


def test_off_a_terminal_every_line_is_json() -> None:
    """A line carries time, level, service and fields."""
    stream = io.StringIO()
    logs.setup("schedd", stream=stream)
    logging.getLogger("kettle_services.schedd").info("took %s", "job", extra={"cluster": 7, "path": {1}})

    line = json.loads(stream.getvalue())
    assert line.pop("ts").endswith("+00:00")
    assert line == {
        "level": "info", "role": "schedd", "logger": "kettle_services.schedd", "msg": "took job", "cluster": 7, "path": [1],
    }  # fmt: skip


def test_on_a_terminal_it_is_text_with_colours() -> None:
    """A person reads a sentence."""
    stream = Terminal()
    logs.setup("schedd", stream=stream)
    logging.getLogger("kettle").warning("odd", extra={"cluster": 7})
    assert "\x1b[33mwarning\x1b[0m schedd: odd" in stream.getvalue()
    assert "cluster=7" in stream.getvalue()


def test_secrets_are_not_written() -> None:
    """
    Neither a field that is named like a secret nor the password of a URL reaches the log, nor does one in a traceback.
    """
    stream = io.StringIO()
    logs.setup("schedd", stream=stream)
    logging.getLogger("kettle").error(
        "at postgresql://u:pa55@h/d",
        exc_info=RuntimeError("no nats://u:pa55@h"),
        extra={"db_password": "pa55", "url": "nats://u:pa55@h"},
    )
    assert "pa55" not in stream.getvalue()
    assert json.loads(stream.getvalue())["url"] == "nats://u:***@h"


def test_level_is_obeyed() -> None:
    """What is below the level is not written; chatty libraries are held to warnings."""
    stream = io.StringIO()
    logs.setup("schedd", level="info", stream=stream)
    logging.getLogger("kettle").debug("d")
    logging.getLogger("nats").info("n")
    assert stream.getvalue() == ""


def test_line_names_its_trace() -> None:
    """
    A line written within a span carries the id of its trace; a process that does not trace imports nothing for that.
    """
    from opentelemetry.sdk.trace import TracerProvider

    stream = io.StringIO()
    logs.setup("schedd", stream=stream)
    with TracerProvider(shutdown_on_exit=False).get_tracer("t").start_as_current_span("s") as span:
        logging.getLogger("kettle").info("within")
    expected = format(span.get_span_context().trace_id, "032x")
    assert expected == json.loads(stream.getvalue())["trace_id"]
    assert "opentelemetry.trace" in sys.modules


def test_a_level_is_changed_while_it_runs() -> None:
    """From now on, and for libraries that say much at most their warnings."""
    root = logging.getLogger()
    before = root.level
    try:
        logs.change_level("debug")
        assert (logging.DEBUG, logging.WARNING) == (root.level, logging.getLogger("nats").level)
        logs.change_level("error")
        assert (logging.ERROR, logging.ERROR) == (root.level, logging.getLogger("nats").level)
    finally:
        logs.change_level(logging.getLevelName(before))
