"""Which device files belong to which GPU."""

from pathlib import Path

import pytest

from kettle.execution.system.nvidia import nodes

LISTED = ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia10", "/dev/nvidiactl", "/dev/nvidia-uvm"]
SHARED = ["/dev/nvidiactl", "/dev/nvidia-uvm"]


@pytest.mark.parametrize(
    ("assigned", "shown"),
    [
        ([], []),
        (["GPU-a"], ["/dev/nvidia0", *SHARED]),
        (["GPU-b"], ["/dev/nvidia1", *SHARED]),
        (["GPU-c", "GPU-a"], ["/dev/nvidia0", "/dev/nvidia10", *SHARED]),
        (["MIG-1"], LISTED),
        (["GPU-a", "MIG-1"], LISTED),
    ],
)
def test_a_job_sees_the_nodes_of_its_gpus_and_what_all_share(
    tmp_path: Path, assigned: list[str], shown: list[str]
) -> None:
    """None without a GPU; where the driver does not know a device, its node cannot be told from others."""
    for name, minor in (("GPU-a", 0), ("GPU-b", 1), ("GPU-c", 10)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "information").write_text(f"GPU UUID: \t {name}\nDevice Minor: \t {minor}\n")

    assert shown == nodes(LISTED, assigned, tmp_path)
