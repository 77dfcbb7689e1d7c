"""condor_config_val: values, where they come from, and which files are read."""

from pathlib import Path

import pytest

from kettle_services.condor.commands.config_val import run


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file that is read."""
    path = tmp_path / "condor_config"
    path.write_text("# first\nA = 1 \\\n  2\nB = $(A) b\nC @=end\n x\n@end\nMyKnob = y\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(path))
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("_CONDOR_D", "from here")
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert status == run("condor_config_val", list(words))
    return capsys.readouterr().out


def test_a_knob_is_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Value, place and text, of files with continued lines, of variables, and of what is so without anybody's word.
    """
    assert f"B = 1   2 b\n # at: {file}, line 4\n # raw: B = $(A) b\n" == said(capsys, "-v", "B")
    assert f"myknob = y\n # at: {file}, line 8\n # raw: MyKnob = y\n" == said(capsys, "-verbose", "myknob")
    assert "D = from here\n # at: Environment\n # raw: D = from here\n" == said(capsys, "-v", "D")
    assert " # at: <Default>\n" in said(capsys, "-v", "LIBEXEC")
    assert "" == said(capsys, "-v", "NOWHERE", status=1)
    assert "$(A) b\n" == said(capsys, "-raw", "B")


def test_what_was_set_and_where(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of the file, as it was written."""
    assert f"Configuration source:\n\t{file}\n" == said(capsys, "-config")
    summary = said(capsys, "-summary")
    assert f"\n#\n# from {file}\n#\nA = 1   2\nB = $(A) b\nC =  x\nMyKnob = y\n" in summary
    assert "\n# from Environment\n#\nd = from here\n" in summary


def test_directories_have_values(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pool has some, and the installation others."""
    assert f"{tmp_path / 'home' / 'log'}\n" == said(capsys, "LOG")
    spool = said(capsys, "SPOOL").strip()
    assert f"{spool}/history" == said(capsys, "HISTORY").strip()
    assert f"{said(capsys, 'RELEASE_DIR').strip()}/lib" == said(capsys, "LIB").strip()
    assert file.exists()
