"""What else a machine has: named, discovered, found."""

import os
from pathlib import Path

import pytest

from kettle.execution.system.gpus import find_gpus
from kettle.runtime import SettingsError
from kettle_services.startd.machine.custom_resources import take_inventory
from kettle_services.startd.machine.resource_discovery import parse_discovery
from kettle_services.startd.settings import StartdSettings

DISCOVERY = """\
DetectedGPUs="GPU-ddc1c098, GPU-9dc7c6d6"
Common=[ DriverVersion=12.2; MaxSupportedVersion=12020; ]
GPU_ddc1c098=[ id="GPU-ddc1c098"; Capability=7.0; DeviceName="Tesla V100-PCIE-32GB"; GlobalMemoryMb=32511; ]
GPU_9dc7c6d6=[ id="GPU-9dc7c6d6"; Capability=8.0; DeviceName="NVIDIA A100-SXM4-40GB"; GlobalMemoryMb=40537; ]
"""
FLAT = """\
DetectedGPUs="CUDA0, CUDA1"
CUDACapability=6.0
CUDA0DeviceName="Tesla P100"
CUDA1DeviceName="Tesla P40"
DetectedFPGAs=2
"""
INFORMATION = """\
Model: \t\t Tesla V100-PCIE-32GB
IRQ:   \t\t 180
GPU UUID: \t GPU-1a2b3c4d-0000-1111-2222-333344445555
Video BIOS: \t 88.00.48.00.02
Bus Type: \t PCIe
Bus Location: \t 0000:3b:00.0
Device Minor: \t 0
"""


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without GPUs' programs."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    return path


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return str(path)


def test_what_a_discovery_prints_is_understood() -> None:
    """Nested properties, those of all devices too."""
    found = parse_discovery(DISCOVERY)

    assert ["GPUs"] == list(found)
    gpus = found["GPUs"]
    assert isinstance(gpus, dict)
    assert ["GPU-ddc1c098", "GPU-9dc7c6d6"] == list(gpus)
    assert {
        "DriverVersion": 12.2,
        "MaxSupportedVersion": 12020,
        "Capability": 8.0,
        "DeviceName": "NVIDIA A100-SXM4-40GB",
        "GlobalMemoryMb": 40537,
    } == gpus["GPU-9dc7c6d6"]


def test_the_older_form_is_understood() -> None:
    """Properties that begin with the device's name or with its kind's; a resource that has only a number."""
    assert {
        "GPUs": {
            "CUDA0": {"Capability": 6.0, "DeviceName": "Tesla P100"},
            "CUDA1": {"Capability": 6.0, "DeviceName": "Tesla P40"},
        },
        "FPGAs": 2,
    } == parse_discovery(FLAT)


def test_one_device_is_not_taken_for_another_whose_name_begins_alike() -> None:
    """CUDA1 and CUDA10."""
    text = 'DetectedGPUs="CUDA1, CUDA10"\nCUDA1=[ A=1; ]\nCUDA10=[ A=10; ]\nCUDA10B=2\n'

    assert {"GPUs": {"CUDA1": {"A": 1}, "CUDA10": {"A": 10, "B": 2}}} == parse_discovery(text)


def test_ids_that_are_numbers_have_only_properties_of_their_own() -> None:
    """There is no kind of device that has no name."""
    text = 'DetectedFPGAs="0, 1"\nCommon=[ A=1; ]\nOther=2\n'

    assert {"FPGAs": {"0": {"A": 1}, "1": {"A": 1}}} == parse_discovery(text)


def test_a_device_that_is_named_twice_is_refused() -> None:
    """It would be given away once, and nobody would know why."""
    with pytest.raises(SettingsError, match="DetectedGPUs has CUDA0 more than once"):
        parse_discovery('DetectedGPUs="CUDA0, CUDA1, CUDA0, CUDA1"\n')


@pytest.mark.parametrize(
    "text", ["hello world\n", "DetectedGPUs=\n", "DetectedGPUs={1}\n", 'DetectedGPUs="a\n']
)
def test_what_is_no_output_of_a_discovery_is_refused(text: str) -> None:
    """With the setting that names the program."""
    with pytest.raises(SettingsError, match="KETTLE_STARTD_DISCOVERY"):
        parse_discovery(text)


def test_a_program_of_the_administrator_tells(tmp_path: Path) -> None:
    """It is run at the start; one that fails is no machine without devices, but refused."""
    good = program(tmp_path / "good", f"/bin/cat <<'END'\n{DISCOVERY}END\n")
    bad = program(tmp_path / "bad", "echo no driver >&2; exit 3\n")

    assert {"GPUs": 2} == take_inventory(StartdSettings(discovery=[good, "-properties"])).counts
    with pytest.raises(SettingsError, match="ended with 3: no driver"):
        take_inventory(StartdSettings(discovery=[bad]))
    with pytest.raises(SettingsError, match="cannot be run"):
        take_inventory(StartdSettings(discovery=[str(tmp_path / "none")]))


def test_a_driver_that_does_not_know_the_capability_is_asked_without(bare: Path, tmp_path: Path) -> None:
    """Values that a card does not have are left out; a line that is no device is passed over."""
    program(
        bare / "nvidia-smi",
        'case "$*" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2 ;; esac\n'
        'echo "GPU-1, Tesla K80, 11441, 418.87.00, 00000000:05:00.0"\n'
        'echo "GPU-2, Tesla K80, [N/A], 418.87.00, 00000000:06:00.0"\n'
        'echo "Unable to determine the device handle"\n',
    )

    gpus = find_gpus(tmp_path)

    assert gpus is not None
    assert ["GPU-1", "GPU-2"] == list(gpus)
    assert (11441, "Tesla K80", "418.87.00") == tuple(
        gpus["GPU-1"][name] for name in ("GlobalMemoryMb", "DeviceName", "DriverVersion")
    )
    assert "GlobalMemoryMb" not in gpus["GPU-2"]


def test_the_heading_tells_the_version_of_cuda(bare: Path, tmp_path: Path) -> None:
    """Which jobs ask for with gpus_minimum_runtime and cuda_version."""
    program(
        bare / "nvidia-smi",
        'if [ "$1" ]; then echo "GPU-b, A100, 1, 5, 0:0, 8.0"; exit; fi\n'
        'echo "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4  |"\n',
    )

    gpus = find_gpus(tmp_path)

    assert gpus is not None
    assert (12040, 8.0) == (gpus["GPU-b"]["MaxSupportedVersion"], gpus["GPU-b"]["Capability"])


def test_a_broken_driver_is_a_machine_without_gpus(bare: Path, tmp_path: Path) -> None:
    """Other jobs can run there all the same."""
    program(bare / "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9\n")

    assert {} == find_gpus(tmp_path)


def test_without_the_program_the_driver_s_files_tell(tmp_path: Path) -> None:
    """A device that the driver has not begun to use has no id yet, and is left out."""
    for bus, text in (("0000:3b:00.0", INFORMATION), ("0000:af:00.0", "GPU UUID: \t GPU-????????-????\n")):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text(text)

    assert {
        "GPU-1a2b3c4d-0000-1111-2222-333344445555": {
            "DeviceName": "Tesla V100-PCIE-32GB",
            "DevicePciBusId": "0000:3b:00.0",
        }
    } == find_gpus(tmp_path)


def test_settings_name_devices_with_properties_and_take_some_away() -> None:
    """What is offline is not given away; tags may be spelt in any case."""
    inventory = take_inventory(
        StartdSettings(
            machine_resources={"GPUs": ["GPU-a", "GPU-b"], "Licences": 5},
            machine_resource_properties={"gpus": {"GPU-a": {"Capability": 8.0}}},
            offline_machine_resources={"gpus": ["GPU-b"]},
        )
    )

    assert ({"GPUs": 1, "Licences": 5}, {"GPUs": ["GPU-b"]}) == (inventory.counts, inventory.offline)
    assert {"Capability": 8.0} == inventory.devices["GPUs"]["GPU-a"].properties


def test_a_card_that_failed_takes_itself_out_and_nothing_else(bare: Path, tmp_path: Path) -> None:
    """Whatever its line says, and whatever the settings know about it."""
    program(
        bare / "nvidia-smi",
        'echo "[Unknown Error], A100, 1, 5, 0:0, 8.0"\n'
        'echo "[N/A], A100, 1, 5, 0:0, 8.0"\n'
        "printf '\\377\\n'\n"
        'echo "GPU-b, A100, 1, 5, 0:0, 8.0"\n',
    )
    settings = StartdSettings(
        offline_machine_resources={"GPUs": ["GPU-a"]},
        machine_resource_properties={"GPUs": {"GPU-a": {"Rack": 1}, "GPU-b": {"Rack": 2}}},
    )

    inventory = take_inventory(settings, proc=tmp_path)

    assert (["GPU-b"], {"GPUs": ["GPU-a"]}) == (list(inventory.devices["GPUs"]), inventory.offline)
    assert 2 == inventory.devices["GPUs"]["GPU-b"].properties["Rack"]


@pytest.mark.parametrize(
    "settings",
    [
        StartdSettings(offline_machine_resources={"GPUs": ["GPU-a"]}),
        StartdSettings(machine_resource_properties={"GPUs": {"GPU-a": {"Rack": 1}}}),
    ],
)
def test_without_a_driver_what_is_said_about_gpus_is_passed_over(
    tmp_path: Path, settings: StartdSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """One file of settings may serve machines with and without GPUs; the log reports it."""
    assert {} == take_inventory(settings, proc=tmp_path / "none").counts
    assert "does not have" in caplog.text


def test_after_a_failed_search_the_machine_knows_that_it_has_gpus(bare: Path, tmp_path: Path) -> None:
    """None can be given away, and so jobs must not see those that are there."""
    program(bare / "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9\n")

    assert {"GPUs": {}} == take_inventory(StartdSettings(), proc=tmp_path / "none").devices
    assert {} == take_inventory(StartdSettings(discover_gpus=False), proc=tmp_path / "none").devices


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_program_that_cannot_be_killed_is_not_waited_for(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs in a driver: here the signal is kept from it until the machine has been looked at."""
    latch, done = tmp_path / "latch", tmp_path / "done"

    def kept(_group: int, _signal: int) -> None:
        """It does not arrive."""

    os.mkfifo(latch)
    program(bare / "nvidia-smi", f"read line <{latch}; : >{done}\n")
    monkeypatch.setattr(os, "killpg", kept)

    assert {} == find_gpus(tmp_path, patience_s=0.2)
    assert not done.exists()
    latch.write_text("now\n")


def test_gpus_are_looked_for_unless_the_discovery_tells_about_them(bare: Path, tmp_path: Path) -> None:
    """A program that knows FPGAs says nothing about GPUs."""
    program(bare / "nvidia-smi", 'echo "GPU-b, A100, 1, 5, 0:0, 8.0"\n')
    fpgas = program(tmp_path / "fpgas", "echo DetectedFPGAs=2\n")
    none = program(tmp_path / "none", "echo DetectedGPUs=0\n")

    assert {"FPGAs": 2, "GPUs": 1} == take_inventory(StartdSettings(discovery=[fpgas])).counts
    assert {"GPUs": 0} == take_inventory(StartdSettings(discovery=[none])).counts


def test_gpus_have_one_name() -> None:
    """However the settings spell it: the job's environment and its container look for that name."""
    inventory = take_inventory(StartdSettings(machine_resources={"gpus": ["GPU-a"]}))

    assert ({"GPUs": 1}, ["GPUs"]) == (inventory.counts, list(inventory.devices))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (StartdSettings(machine_resources={"Cpus": 2}), "cannot be the name of a resource"),
        (StartdSettings(machine_resources={"a b": 2}), "cannot be the name of a resource"),
        (StartdSettings(machine_resources={"GPUs": 1, "gpus": 2}), "cannot be the name of a resource"),
        (StartdSettings(machine_resources={"GPUs": ["a", "a"]}), "names an id twice"),
        (StartdSettings(machine_resources={"GPUs": ["a,b"]}), "cannot be an id"),
        (StartdSettings(machine_resources={"GPUs": ["a-b", "a_b"]}), "too much alike"),
        (StartdSettings(offline_machine_resources={"FPGAs": ["a"]}), "the machine has no FPGAs"),
        (
            StartdSettings(machine_resources={"GPUs": ["a"]}, offline_machine_resources={"GPUs": ["b"]}),
            "there is no 'b'; there is a",
        ),
        (
            StartdSettings(machine_resources={"GPUs": 1}, machine_resource_properties={"GPUs": {"a": {}}}),
            "there is none with an id",
        ),
    ],
)
def test_what_cannot_be_is_refused(settings: StartdSettings, words: str) -> None:
    """The sentence names the setting."""
    with pytest.raises(SettingsError, match="KETTLE_STARTD_") as refused:
        take_inventory(settings)

    assert words in str(refused.value)
