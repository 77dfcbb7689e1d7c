"""condor_gpu_discovery: what it prints is what a startd understands."""

import pytest

from kettle_services.condor.commands import gpu_discovery
from kettle_services.condor.errors import ToolError, WordsError


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert 0 == gpu_discovery.run("condor_gpu_discovery", list(words))
    return capsys.readouterr().out.splitlines()


def test_simulated_ones_have_the_ids_of_htcondor(capsys: pytest.CaptureFixture[str]) -> None:
    """By short ids; a number without another behind it is one device."""
    assert ['DetectedGPUs="GPU-a0223334, GPU-b1223334"'] == said(capsys, "-simulate:0,2")
    assert ["DetectedXs=CUDA0, CUDA1, CUDA2", "NUM_DETECTED_Xs=3"] == said(
        capsys, "-simulate:3,2,4", "-tag", "Xs", "-by-index", "-config"
    )
    assert "GPU-a0223334-4445-" in said(capsys, "-simulate", "-uuid")[0]


def test_properties_are_those_of_all_and_those_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """As ads, or a line each."""
    detected, common, first, second = said(capsys, "-simulate:3,1,4,1", "-properties")
    assert 'DetectedGPUs="GPU-a0223334, GPU-b1223334"' == detected
    assert "Common=[ DriverVersion=11.2; MaxSupportedVersion=11020; ]" == common
    assert first.startswith('GPU_a0223334=[ id="GPU-a0223334"; Capability=7.5; DeviceName="TITAN RTX"; ')
    assert second.startswith('GPU_b1223334=[ id="GPU-b1223334"; Capability=8.0; ')
    plain = said(capsys, "-simulate:3,1,4,1", "-extra", "-not-nested")
    assert {"CUDAMaxSupportedVersion=11020", "GPU_a0223334ComputeUnits=72"} <= set(plain)
    assert not any(
        line.startswith("Common") for line in said(capsys, "-simulate:3,2", "-properties", "-mixed")
    )


def test_a_machine_without_gpus_has_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no failure."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert ["DetectedGPUs=0"] == said(capsys, "-properties")


@pytest.mark.parametrize(
    "words", [["-simulate:9"], ["-simulate:x"], ["-simulate:0,999"], ["-tag", "a b"], ["x"]]
)
def test_what_cannot_be_meant_is_refused(words: list[str]) -> None:
    """Before anything is printed."""
    with pytest.raises(WordsError):
        gpu_discovery.run("condor_gpu_discovery", words)


def test_what_is_not_carried_out_says_why() -> None:
    """Devices that are listed twice would be given to two jobs."""
    with pytest.raises(ToolError, match="-repeat is not carried out: a device is given to one job at a time"):
        gpu_discovery.run("condor_gpu_discovery", ["-repeat"])
