"""Unpacked images: each once, never removed while used, never half there."""

import threading
import time
from pathlib import Path

import pytest

from kettle.execution.containers.images.archives import ImageConfig
from kettle.execution.containers.images.cache import ImageCache
from kettle.execution.containers.policy import ContainerError

KEY, USED, OLD, NEW = (digit * 64 for digit in "0123")


def of_size(size: int) -> ImageConfig:
    return ImageConfig(size=size)


def test_an_image_is_unpacked_once(tmp_path: Path) -> None:
    """Also for two that ask at the same moment: the second waits."""
    begun: list[str] = []

    def unpack(root: str, limit: int) -> ImageConfig:
        begun.append(root)
        time.sleep(0.05)  # long enough for the others to come
        Path(root, "file").write_text("x")
        return of_size(1)

    found: list[str] = []

    def want() -> None:
        image = ImageCache(str(tmp_path), 100).have(KEY, unpack)
        found.append((Path(image.root) / "file").read_text())
        image.release()

    threads = [threading.Thread(target=want) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len(begun)
    assert ["x"] * 5 == found


def test_what_fails_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    """The next job that wants it starts from the beginning."""
    cache = ImageCache(str(tmp_path), 100)

    def fail(root: str, limit: int) -> ImageConfig:
        Path(root, "half").write_text("x")
        raise ContainerError("no image")

    with pytest.raises(ContainerError):
        cache.have(KEY, fail)
    cache.shrink()
    assert [] == [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
    cache.have(KEY, lambda root, limit: of_size(1)).release()


def test_the_longest_unused_go_and_those_in_use_stay(tmp_path: Path) -> None:
    """When they are together larger than the limit."""
    cache = ImageCache(str(tmp_path), 100)
    used = cache.have(USED, lambda root, limit: of_size(60))
    cache.have(OLD, lambda root, limit: of_size(30)).release()
    cache.have(NEW, lambda root, limit: of_size(60)).release()

    assert {USED, NEW} == {path.name for path in tmp_path.iterdir() if path.is_dir()}
    used.release()
    cache.shrink()
    assert {NEW} == {path.name for path in tmp_path.iterdir() if path.is_dir()}


def test_a_draft_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    """Its owner's lock went with it."""
    (tmp_path / f"{KEY}.draft" / "root").mkdir(parents=True)

    ImageCache(str(tmp_path), 100).shrink()

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["", "key", "../" + "0" * 61, "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_a_key_that_is_no_digest_is_refused(tmp_path: Path, key: str) -> None:
    """It names a directory, and must not lead out of the cache."""
    with pytest.raises(ValueError, match="no SHA-256"):
        ImageCache(str(tmp_path / "images"), 100).have(key, lambda root, limit: of_size(1))
    assert [] == list(tmp_path.iterdir())
