from kettle.dask.versions import mismatch, own_versions

OURS = {"python": "3.11.7", "distributed": "2026.8.0", "dask": "2026.8.0", "numpy": "2.4.6"}


def said(**theirs: str) -> str:
    return mismatch(OURS, {**OURS, **theirs}, we="the kernel", they="the image")


def test_what_has_to_be_equal() -> None:
    """Dask's packages to the last number, Python in the first two, others not at all."""
    assert "" == said(python="3.11.2", numpy="1.26")
    assert "the image has distributed 2025.1, the kernel has distributed 2026.8.0" == said(
        distributed="2025.1"
    )
    assert "the image has python 3.13.1, the kernel has python 3.11.7" == said(python="3.13.1")


def test_nothing_is_wrong_with_what_nobody_has_said() -> None:
    """A scheduler that has not told its versions is not refused for it."""
    assert "" == mismatch(OURS, {}, we="we", they="they")


def test_own_versions_are_complete() -> None:
    """What is compared is there."""
    assert {"python", "distributed", "dask"} <= own_versions().keys()
