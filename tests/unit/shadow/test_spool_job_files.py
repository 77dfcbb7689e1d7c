"""The spool of an access point: files that arrive piece by piece, and what jobs have of them."""

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from kettle.accounts.lookup import Accounts
from kettle.userlog import UserLogError
from kettle_services.shadow.files.access import FileAccess, OwnFileError
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.projections.job_event_logs import JobAppender
from kettle_services.shadow.spool.job_files import SpooledFiles, SpoolError
from kettle_wire.commands.spooling import Part
from kettle_wire.jobs import JobId
from kettle_wire.spooling import Manifest, Procs, Share, SpooledFile

ALL = [Procs(0, 100)]


@pytest.fixture
def files(tmp_path: Path) -> SpooledFiles:
    return SpooledFiles(tmp_path / "spooled", most=1000)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def sent(files: SpooledFiles, data: bytes, cluster: int = 7) -> str:
    """A file that has arrived, by its digest."""
    assert [len(data)] == files.keep(cluster, [Part(digest(data), len(data), 0, data)])
    return digest(data)


def announced(files: SpooledFiles, *lists: dict[str, bytes], shares: list[Share] | None = None) -> str:
    """A manifest that has arrived: of each list of files, by name; the first job has the first, and so on."""
    said = [
        [SpooledFile(name, digest(data), len(data), 0o644) for name, data in each.items()] for each in lists
    ]
    shares = shares or [Share(Procs(proc, 1), proc) for proc in range(len(lists))]
    return sent(files, msgspec.msgpack.encode(Manifest(lists=said, shares=shares)))


def test_a_file_is_there_when_all_of_it_is(files: SpooledFiles) -> None:
    """
    Meanwhile the answer is how much has arrived; a piece that comes twice, or out of turn, changes nothing.
    """
    data, name = b"0123456789", digest(b"0123456789")

    def keep(offset: int, piece: bytes = b"") -> int:
        return files.keep(7, [Part(name, 10, offset, piece)])[0]

    assert 0 == keep(0)
    assert 4 == keep(0, data[:4])
    assert 4 == keep(0, data[:4])
    assert 4 == keep(7, data[7:])
    assert 4 == keep(0)
    announced_one = announced(files, {"x": data})
    assert ([name], [], 0) == files.settle(7, announced_one, ALL)
    assert 10 == keep(4, data[4:])
    assert 10 == keep(0)
    assert ([], [Procs(0, 1)], 10) == files.settle(7, announced_one, ALL)


def test_a_file_begins_anew_after_a_restart(files: SpooledFiles) -> None:
    """Nobody knows the sum of what a predecessor has written, nor whether it is all on the disk."""
    name = digest(b"0123456789")
    assert [4] == files.keep(7, [Part(name, 10, 0, b"0123")])
    again = SpooledFiles(files.root, most=1000)
    assert [0] == again.keep(7, [Part(name, 10, 4, b"456789")])
    assert [10] == again.keep(7, [Part(name, 10, 0, b"0123456789")])


def test_a_file_of_a_cluster_that_has_gone_begins_anew(files: SpooledFiles) -> None:
    """What was counted of it is not on the disk any more."""
    name = digest(b"0123456789")
    assert [4] == files.keep(7, [Part(name, 10, 0, b"0123")])
    files.drop([], [7])
    assert [0] == files.keep(7, [Part(name, 10, 4, b"456789")])
    assert [4] == files.keep(7, [Part(name, 10, 0, b"0123")])
    (files.root / "7" / "objects" / f"{name}.part").unlink()
    assert [0] == files.keep(7, [Part(name, 10, 4, b"456789")])
    assert [10] == files.keep(7, [Part(name, 10, 0, b"0123456789")])
    assert b"0123456789" == (files.root / "7" / "objects" / name).read_bytes()


def test_a_file_that_is_another_is_not_kept(files: SpooledFiles) -> None:
    name = digest(b"expected")
    with pytest.raises(SpoolError) as refused:
        files.keep(7, [Part(name, 8, 0, b"somewhat")])
    assert "changed" == refused.value.code
    assert [8] == files.keep(7, [Part(name, 8, 0, b"expected")])


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Part("0" * 64, 2**40, 0, b"x"), "too_large"),
        (Part("0" * 64, 4, 0, b"12345"), "malformed"),
        (Part("0" * 64, 4, 3, b"12"), "malformed"),
    ],
)
def test_a_size_that_is_not_true_is_refused(files: SpooledFiles, part: Part, code: str) -> None:
    with pytest.raises(SpoolError) as refused:
        files.keep(7, [part])
    assert code == refused.value.code


def test_an_empty_file_is_a_file(files: SpooledFiles) -> None:
    sent(files, b"")
    assert ([], [Procs(0, 1)], 0) == files.settle(7, announced(files, {"empty": b""}), ALL)


def test_jobs_have_what_the_manifest_says(files: SpooledFiles) -> None:
    """Only those that wait: nobody exchanges the files of a job that may run."""
    sent(files, b"one")
    sent(files, b"two")
    first = announced(files, {"a": b"one", "d/b": b"two"}, shares=[Share(Procs(0, 10), 0)])
    assert ([], [Procs(2, 3), Procs(8, 2)], 6) == files.settle(7, first, [Procs(2, 3), Procs(8, 100)])
    wanted = files.wanted(JobId(7, 3))
    assert [("a", b"one", 0o644), ("d/b", b"two", 0o644)] == [
        (one.name, Path(one.path).read_bytes(), one.mode) for one in wanted
    ]
    with pytest.raises(ValueError, match=r"the files of job 7\.0 are not in the spool"):
        files.wanted(JobId(7, 0))
    second = announced(files, {"other": b"two"}, shares=[Share(Procs(0, 10), 0)])
    assert ([], [Procs(0, 2)], 3) == files.settle(7, second, [Procs(0, 2)])
    again = SpooledFiles(files.root, most=1000)
    assert (["other"], ["a", "d/b"]) == tuple([one.name for one in again.wanted(JobId(7, p))] for p in (1, 9))


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["../x"], "malformed"),
        (["/etc/passwd"], "malformed"),
        (["a", "a"], "malformed"),
        ([f"{i}" for i in range(10_001)], "too_large"),
    ],
)
def test_names_that_make_no_sense_are_refused(files: SpooledFiles, names: list[str], code: str) -> None:
    sent(files, b"x")
    said = Manifest(
        lists=[[SpooledFile(name, digest(b"x"), 0, 0o644) for name in names]], shares=[Share(Procs(0, 1), 0)]
    )
    manifest = sent(files, msgspec.msgpack.encode(said))
    with pytest.raises(SpoolError) as refused:
        files.settle(7, manifest, ALL)
    assert code == refused.value.code


def test_a_job_has_so_much_and_no_more(files: SpooledFiles) -> None:
    sent(files, b"x" * 600)
    sent(files, b"y" * 600)
    with pytest.raises(SpoolError, match="more than 0 MiB together") as refused:
        files.settle(7, announced(files, {"x": b"x" * 600, "y": b"y" * 600}), ALL)
    assert "too_large" == refused.value.code


def test_a_manifest_that_is_none_is_refused(files: SpooledFiles) -> None:
    for data in (b"", b"\xc1", msgspec.msgpack.encode({"lists": []}), msgspec.msgpack.encode([1])):
        with pytest.raises(SpoolError) as refused:
            files.settle(7, sent(files, data), ALL)
        assert "malformed" == refused.value.code
    with pytest.raises(SpoolError):
        files.settle(7, announced(files, {}, shares=[Share(Procs(0, 1), 1)]), ALL)


def test_results_are_regular_files_below_the_jobs_own_directory(files: SpooledFiles, tmp_path: Path) -> None:
    """No link is followed, and none is told: what it leads to need not be the job's."""
    job = JobId(7, 0)
    place = files.directory(job)
    (place / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (place / "deep" / "a").write_bytes(b"A" * 20_000)
    (place / "b").write_text("b")
    (place / "link").symlink_to(tmp_path / "secret")
    (place / "way").symlink_to(tmp_path)
    (place / ".made.7.0-1").write_text("half")
    os.mkfifo(place / "pipe")
    found = files.results(job, "")
    assert [("b", 1, b"b"), ("deep/a", 20_000, None)] == [
        (one.name, one.size, one.data) for one in found.files
    ]
    assert ["deep/a"] == [one.name for one in files.results(job, "b").files]
    assert b"AA" == files.piece(job, "deep/a", 19_998, 100, log=False)
    for name in ("link", "way/secret", "missing"):
        with pytest.raises(OSError, match=r"No such file|Too many levels"):
            files.piece(job, name, 0, 9, log=False)
    for name, log in (
        ("../0/b", False),
        ("/etc/passwd", False),
        ("b", True),
        ("../log.0123456789abcdef", True),
    ):
        with pytest.raises(SpoolError):
            files.piece(job, name, 0, 9, log=log)


def test_nobody_else_sees_them_and_what_has_left_the_queue_is_removed(files: SpooledFiles) -> None:
    sent(files, b"x")
    files.settle(7, announced(files, {"x": b"x"}, {"x": b"x"}), ALL)
    for proc in (0, 1):
        files.wanted(JobId(7, proc))
    sent(files, b"x", cluster=8)
    for place in (files.root, *(path for path in files.root.rglob("*") if path.is_dir())):
        assert 0o700 == place.stat().st_mode & 0o777, place
    assert all(0o600 == path.stat().st_mode & 0o777 for path in files.root.rglob("*") if path.is_file())
    assert ([7, 8], [JobId(7, 0), JobId(7, 1)]) == (files.clusters(), files.jobs())
    files.drop([JobId(7, 0)], [8])
    assert ([7], [JobId(7, 1)]) == (files.clusters(), files.jobs())


def test_a_job_has_business_in_its_own_directory_only(files: SpooledFiles, tmp_path: Path) -> None:
    sent(files, b"x")
    places = files.places(JobId(7, 0), FileAccess(tmp_path))
    places.refuse_own(files.directory(JobId(7, 0)) / "made")
    os.close(places.open_input(files.root / "7" / "objects" / digest(b"x")))
    for other in (
        files.directory(JobId(7, 1)) / "made",
        files.root / "7" / "inputs",
        files.root / "8",
        tmp_path,
    ):
        with pytest.raises(OwnFileError):
            places.refuse_own(other)
    with pytest.raises(OwnFileError):
        places.refuse_own(files.root / "7" / "objects" / digest(b"x"))  # it may be read, and not written


def test_a_log_in_the_spool_has_the_events_of_its_cluster_only(files: SpooledFiles, tmp_path: Path) -> None:
    appender = JobAppender(Owners(Accounts(), FileAccess(tmp_path), files), spool=files.root)
    files.root.mkdir()
    log = files.root / "7" / "log.0123456789abcdef"
    appender.append(log, "000 (007.000.000) 2026-01-01 00:00:00 Job submitted\n...\n", owner="")
    with pytest.raises(UserLogError):
        appender.append(log, "000 (008.000.000) 2026-01-01 00:00:00 Job submitted\n...\n", owner="")
    assert 1 == log.read_text().count("...")
    for path in (files.root / "7" / "inputs", files.root / ".." / "log.0123456789abcdef"):
        with pytest.raises(UserLogError):
            appender.append(path, "000 (007.000.000) 2026-01-01 00:00:00 Job submitted\n...\n", owner="")
