"""Freezing a control group."""

from pathlib import Path

from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.cgroup_layout import CgroupLayout


def test_a_group_is_frozen_where_the_kernel_can(tmp_path: Path) -> None:
    """With one word to the kernel, in whatever kind of group there is such a word."""
    for kind in ("v2", "tracking"):
        layout = CgroupLayout(parent=str(tmp_path), origin=str(tmp_path), kind=kind)
        (tmp_path / "can").mkdir(exist_ok=True)
        word = tmp_path / "can" / "cgroup.freeze"
        word.write_text("0")

        assert Cgroup(layout, "can").freeze(frozen=True)
        assert "1" == word.read_text()
        assert Cgroup(layout, "can").freeze(frozen=False)
        assert "0" == word.read_text()


def test_elsewhere_it_is_not(tmp_path: Path) -> None:
    """And says so."""
    (tmp_path / "cannot").mkdir()
    layout = CgroupLayout(parent=str(tmp_path), origin=str(tmp_path), kind="memory")

    assert not Cgroup(layout, "cannot").freeze(frozen=True)
    assert not Cgroup(layout, "absent").freeze(frozen=True)
