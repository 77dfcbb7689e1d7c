"""What became of each knob of an HTCondor configuration."""

from pathlib import Path

from kettle_services.cli.condor_config.conversion import convert

CONFIG = """\
CONDOR_HOST = cm.example.org
POOL_NAME = physics
START = KeyboardIdle > 15 * 60 && $(MORE)
MORE = LoadAvg < 0.3
SHARED_PORT_PORT = 9618
NUM_CPUS = many
MAX_JOBS_PER_OWNER = 500
NO_SUCH_KNOB = 7
"""


def test_each_knob_has_a_fate(tmp_path: Path) -> None:
    """Taken, used by others, without a meaning, or for somebody to decide; each at its line."""
    path = tmp_path / "condor_config"
    path.write_text(CONFIG)
    lines = convert([path], {}).account
    assert [str(number) for number in range(1, 9)] == [each.place.rpartition(":")[2] for each in lines]
    fates = {each.knob: each.fate for each in lines}
    assert "decide" == fates["CONDOR_HOST"] == fates["NUM_CPUS"] == fates["NO_SUCH_KNOB"]
    assert ("decide", "used") == (fates["POOL_NAME"], fates["MORE"])
    assert "taken" == fates["START"] == fates["MAX_JOBS_PER_OWNER"]
    assert "no meaning" == fates["SHARED_PORT_PORT"]
    whys = {each.knob: each.why for each in lines}
    assert "startd.start" in whys["START"]
    assert "listen on no port" in whys["SHARED_PORT_PORT"]
