"""What a shadow can be told, and what it cannot."""

import pytest

from kettle.runtime.settings_problems import SettingsError
from kettle_services.shadow.settings import ShadowSettings


@pytest.mark.parametrize("name", ["default_userlog_format_options", "event_log_format_options"])
def test_options_of_logs_that_there_are_not(name: str) -> None:
    """A shadow does not start with them, and says which there are."""
    variable = f"KETTLE_SHADOW_{name.upper()}"
    with pytest.raises(SettingsError, match=rf"{variable}(?s:.*)'YAML' is no option .* there are XML, JSON"):
        ShadowSettings.load("shadow", environ={variable: "YAML"})
    assert "UTC" == getattr(ShadowSettings.load("shadow", environ={variable: "UTC"}), name)
