"""
Attacks on the files of an access point that acts with the rights of root: by paths, links, names, groups and races.

Mallory's jobs name files of ada's, of the pool's and of the system's.  Both accounts are numbers that the machine does not
know, since the kernel asks for nothing else.
"""

import os
import pwd
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from kettle.accounts.lookup import Accounts
from kettle.accounts.rights import Rights
from kettle.userlog import UserLogError
from kettle_services.shadow.chirp.remote_files import MOST_OPEN, FileWish, RemoteFiles
from kettle_services.shadow.file_transfer.input_files import InputError, Inputs, Limits
from kettle_services.shadow.file_transfer.output_files import OutputError, place
from kettle_services.shadow.file_transfer.url_signing import Signer
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.projections.job_event_logs import JobAppender
from kettle_services.shadow.spool.file_removal import remove_files
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.ads import Ad
from kettle_wire.commands.chirp import OnPath, OpenFile, Trouble
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import OutputFile

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")

MALLORY, ADA = Rights(70_001, 70_001, (70_001, 70_009)), Rights(70_002, 70_002)
SECRET = "ada's alone"
ROUNDS = 400


class Ground(msgspec.Struct, frozen=True):
    """Who has what."""

    root: Path
    access: FileAccess
    """With mallory's rights."""

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def ada(self) -> Path:
        return self.root / "ada"

    @property
    def mallory(self) -> Path:
        return self.root / "mallory"

    def state(self) -> dict[str, tuple[int, int, bytes]]:
        """Everything that is not mallory's: who owns it, its mode and its bytes."""
        return {
            str(path): (path.stat().st_uid, path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
            for top in (self.ada, self.home)
            for path in (top, *top.rglob("*"))
        }


@pytest.fixture
def ground() -> Iterator[Ground]:
    """
    Directories of both, and a pool's, below one that everybody can enter; what is not mallory's stays as it is.
    """
    root = Path(tempfile.mkdtemp(prefix="kettle-owners-"))
    root.chmod(0o755)
    ground = Ground(root, FileAccess(root / "home").of_owner("mallory", MALLORY))
    for place_, rights, mode in (
        (ground.home, Rights(0, 0), 0o700), (ground.ada, ADA, 0o755), (ground.mallory, MALLORY, 0o700),
    ):  # fmt: skip
        place_.mkdir()
        os.chown(place_, rights.uid, rights.gid)
        place_.chmod(mode)
    for path, rights, mode in (
        (ground.home / "key", Rights(0, 0), 0o600), (ground.ada / "secret", ADA, 0o600),
        (ground.ada / "group", Rights(ADA.uid, 70_009), 0o640), (ground.ada / "others", Rights(ADA.uid, 70_008), 0o640),
    ):  # fmt: skip
        path.write_text(SECRET)
        os.chown(path, rights.uid, rights.gid)
        path.chmod(mode)
    before = ground.state()
    try:
        yield ground
        assert before == ground.state()
    finally:
        shutil.rmtree(root)


def link(ground: Ground, name: str, target: Path | str) -> Path:
    """A link of mallory's."""
    path = ground.mallory / name
    path.symlink_to(target)
    os.chown(path, MALLORY.uid, MALLORY.gid, follow_symlinks=False)
    return path


def job(ground: Ground, **other: str) -> Ad:
    ad: Ad = {"Owner": "mallory", "Iwd": str(ground.mallory), "Cmd": "/bin/true", "TransferExecutable": False}
    return {**ad, **other}


async def read(ground: Ground, ad: Ad) -> list[bytes | None]:
    """The input files of a job, as its machine would get them."""
    inputs = Inputs(
        FileAccess(ground.home), Limits(inline=100, inline_total=1000, total=1 << 20), cache_bytes=1 << 20
    )
    try:
        return [source.file.data for source in await inputs.gather(ad, places=ground.access)]
    finally:
        inputs.close()


async def written(ground: Ground, ad: Ad, name: str = "_condor_stdout") -> None:
    """Bring a result of a job to where its ad says."""

    async def nothing(file: OutputFile) -> AsyncIterator[bytes]:
        raise AssertionError(file)
        yield b""

    file = OutputFile(name=name, mode=0o4777, size=4, data=b"evil")
    await place(ad, [file], nothing, places=ground.access, mark="1.0-1")


@pytest.fixture
def paths(ground: Ground) -> list[str]:
    """
    Ways to files that mallory may not read: by names, by links, and through the open files of the shadow itself.
    """
    link(ground, "link", ground.ada / "secret")
    link(ground, "again", "link")
    link(ground, "place", ground.ada)
    link(ground, "memory", "/proc/self/environ")
    link(ground, "open", "/proc/self/fd")
    return [
        str(ground.ada / "secret"), str(ground.home / "key"), "../ada/secret", "../../../../../etc/shadow", "link", "again",
        "place/secret", "place/others", "memory", "/proc/self/mem", "/proc/1/environ", "open/0", "/etc/shadow",
    ]  # fmt: skip


async def test_what_its_owner_may_not_read_is_no_input(ground: Ground, paths: list[str]) -> None:
    """
    Neither as an input file, nor as the program, standard input, certificate or key, nor read again later.
    """
    for path in paths:
        for ad in (
            job(ground, TransferInput=path), job(ground, In=path), job(ground, x509userproxy=path),
            job(ground, Cmd=path) | {"TransferExecutable": True}, job(ground, TransferPlugins=f"x={path}"),
        ):  # fmt: skip
            with pytest.raises(InputError):
                await read(ground, ad)
        signed = Signer(lifetime=60).sign(
            job(ground, EC2AccessKeyId=path, EC2SecretAccessKey=path),
            ["s3://b/o"],
            ground.access,
            upload=False,
        )
        assert not signed.urls
        assert SECRET not in signed.reason


async def test_groups_count(ground: Ground) -> None:
    """What the owner may read as a member of a group is an input; a file of another group is none."""
    assert [SECRET.encode()] == await read(ground, job(ground, TransferInput=str(ground.ada / "group")))
    with pytest.raises(InputError, match="Permission denied"):
        await read(ground, job(ground, TransferInput=str(ground.ada / "others")))


async def test_a_file_that_was_read_for_its_owner_is_not_given_to_others(ground: Ground) -> None:
    """What is remembered of files is of use to those alone who may read them."""
    inputs = Inputs(
        FileAccess(ground.home), Limits(inline=100, inline_total=1000, total=1 << 20), cache_bytes=1 << 20
    )
    ad = job(ground, TransferInput=str(ground.ada / "secret"))
    try:
        (source,) = await inputs.gather(ad, places=FileAccess(ground.home).of_owner("ada", ADA))
        assert SECRET.encode() == source.file.data == inputs.piece(source, 0, 100)
        with pytest.raises(InputError, match="Permission denied"):
            await inputs.gather(ad, places=ground.access)
    finally:
        inputs.close()


async def test_a_directory_is_searched_with_its_owners_rights(ground: Ground) -> None:
    """
    A tree with a directory that its owner may not list is refused with that name; links in it lead nowhere.
    """
    closed = ground.mallory / "tree" / "closed"
    closed.mkdir(parents=True)
    os.chown(ground.mallory / "tree", MALLORY.uid, MALLORY.gid)
    closed.chmod(0o700)
    with pytest.raises(InputError, match=r"tree/closed failed: Permission denied"):
        await read(ground, job(ground, TransferInput="tree"))
    closed.rmdir()
    (ground.mallory / "tree" / "out").symlink_to(ground.ada / "secret")
    with pytest.raises(InputError, match=r"tree/out failed: Permission denied"):
        await read(ground, job(ground, TransferInput="tree"))


async def test_results_go_where_their_owner_may_write(ground: Ground) -> None:
    """
    Elsewhere there is nothing; a link to another's file is replaced; what is written is the owner's and not setuid.
    """
    link(ground, "place", ground.ada)
    for target in (
        str(ground.ada / "new"), str(ground.home / "new"), "../ada/new", "place/new", "place/secret", "/etc/new",
        str(ground.ada / "deep" / "new"), "/proc/self/fd/new", str(ground.home / "key"),
    ):  # fmt: skip
        with pytest.raises(OutputError):
            await written(ground, job(ground, Out=target))
        with pytest.raises(OutputError):
            await written(ground, job(ground, TransferOutputRemaps=f"f={target}"), "f")
    with pytest.raises(OutputError):
        await written(ground, job(ground, Iwd=str(ground.mallory / "place"), Out="new"))
    link(ground, "out", ground.ada / "secret")
    await written(ground, job(ground, Out="out"))
    await written(ground, job(ground, Out="made/here/a\nname"))
    for path in (ground.mallory / "out", ground.mallory / "made" / "here" / "a\nname"):
        about = path.lstat()
        assert ("evil", MALLORY.uid, MALLORY.gid, 0) == (
            path.read_text(), about.st_uid, about.st_gid, about.st_mode & 0o7000,
        )  # fmt: skip
    assert MALLORY.uid == (ground.mallory / "made" / "here").stat().st_uid


async def test_what_somebody_put_in_the_way_of_a_result_gets_none_of_it(ground: Ground) -> None:
    """In a directory that both may write to, a file by the name of the draft is another one afterwards."""
    shared = ground.root / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    trap = shared / ".out.1.0-1"
    trap.touch()
    os.chown(trap, ADA.uid, ADA.gid)
    with trap.open("rb") as held:
        await written(ground, job(ground, Iwd=str(shared), Out="out"))
        assert b"" == held.read()
    assert MALLORY.uid == (shared / "out").stat().st_uid


def appender(ground: Ground) -> JobAppender:
    """Of a pool on whose machine mallory has an account."""
    spooled = SpooledFiles(ground.home / "spooled", most=1000)
    entry = pwd.struct_passwd(("mallory", "x", MALLORY.uid, MALLORY.gid, "", "/", ""))
    return JobAppender(Owners(Accounts(directory=lambda _: entry), FileAccess(ground.home), spooled))


@pytest.mark.parametrize(
    "target", ["ada/secret", "ada/new", "home/key", "home/new", "/etc/shadow", "/proc/self/fd/1"]
)
def test_a_log_is_its_owners(ground: Ground, target: str) -> None:
    """Through a link, or by its path, nothing else is written or read."""
    path = ground.root / target
    link(ground, "log", path)
    for each in (path, ground.mallory / "log"):
        with pytest.raises(UserLogError):
            appender(ground).append(each, "evil", owner="mallory")
    with suppress(UserLogError):
        assert "" == appender(ground).tail(ground.mallory / "log", owner="mallory")
    appender(ground).append(ground.mallory / "mine", "text", owner="mallory")
    about = (ground.mallory / "mine").stat()
    assert (MALLORY.uid, 0o644) == (about.st_uid, about.st_mode & 0o7777)


def test_chirp_has_its_owners_rights(ground: Ground, paths: list[str]) -> None:
    """Whatever a running job asks of files of others is refused."""
    files = RemoteFiles(str(ground.mallory), ground.access, threading.BoundedSemaphore(MOST_OPEN))
    ada = str(ground.ada)
    wishes: list[FileWish] = [
        *(OpenFile(path, flags) for path in paths for flags in ("r", "rw", "wct")),
        OpenFile(f"{ada}/new", "wc"), OnPath("unlink", [f"{ada}/secret"]), OnPath("rename", [f"{ada}/secret", "mine"]),
        OnPath("rename", ["link", f"{ada}/link"]), OnPath("mkdir", [f"{ada}/d"], [0o777]), OnPath("rmall", [ada]),
        OnPath("chmod", [f"{ada}/secret"], [0o777]), OnPath("chown", ["link"], [MALLORY.uid, MALLORY.gid]),
        OnPath("lchown", ["link"], [0, 0]), OnPath("truncate", [f"{ada}/secret"], [0]), OnPath("access", ["link"], [4]),
        OnPath("symlink", ["x", f"{ada}/x"]), OnPath("link", ["link", f"{ada}/x"]), OnPath("utime", ["link"], [1, 1]),
    ]  # fmt: skip
    try:
        for wish in wishes:
            assert files.carry_out(wish).result in {Trouble.NOT_AUTHORIZED, Trouble.DOESNT_EXIST}, wish
        opened = files.carry_out(OpenFile("new", "rwc", 0o7777))
        assert opened.result > 0
        about = (ground.mallory / "new").stat()
        assert (MALLORY.uid, 0) == (about.st_uid, about.st_mode & 0o7000)
    finally:
        files.close()


def test_a_spooled_job_of_nobody_here_has_its_directory_and_nothing_else(ground: Ground) -> None:
    """Not even what everybody may read, and no links that could lead there."""
    spool = ground.root / "spool"
    own = spool / "7" / "0"
    own.mkdir(parents=True)
    spool.chmod(0o700)
    nobody = Rights(70_010, 70_010)
    os.chown(own, nobody.uid, nobody.gid)
    own.chmod(0o700)
    access = FileAccess(spool).of_owner("laptop", nobody).of_job(own, spool / "7" / "objects", confined=True)
    files = RemoteFiles(str(own), access, threading.BoundedSemaphore(MOST_OPEN))
    try:
        assert files.carry_out(OpenFile("made", "wc", 0o600)).result > 0
        assert files.carry_out(OpenFile(str(own / "made"), "r")).result > 0
        (own / "planted").symlink_to("/etc/passwd")
        (own / "up").symlink_to("../..")
        for wish in (
            OpenFile("/etc/passwd", "r"), OpenFile("planted", "r"), OpenFile("../inputs", "r"), OpenFile("up/7/inputs", "r"),
            OpenFile(str(spool / "8" / "0" / "made"), "wc"), OnPath("symlink", ["/etc", "x"]), OnPath("link", ["made", "y"]),
            OnPath("getdir", [".."]), OnPath("getdir", ["/"]),
        ):  # fmt: skip
            assert Trouble.NOT_AUTHORIZED == files.carry_out(wish).result, wish
    finally:
        files.close()


async def test_results_of_spooled_jobs_come_into_their_directory(ground: Ground) -> None:
    """It is its owner's and lies where the owner cannot enter; no name leads out of it."""
    files = SpooledFiles(ground.home / "spool", most=1000)
    own = files.directory(JobId(7, 0))
    own.mkdir(parents=True)
    files.root.chmod(0o700)
    os.chown(own, MALLORY.uid, MALLORY.gid)
    inside = msgspec.structs.replace(ground, access=files.places(JobId(7, 0), ground.access))
    try:
        await written(inside, job(ground, Iwd=str(own), Out="deep/out"))
        assert MALLORY.uid == (own / "deep" / "out").stat().st_uid
        for target in ("../out", f"{own}/../../8/0/out", str(ground.home / "out")):
            with pytest.raises(OutputError):
                await written(inside, job(ground, Iwd=str(own), Out=target))
        assert ["7"] == [path.name for path in files.root.iterdir()]
        assert ["0"] == [path.name for path in (files.root / "7").iterdir()]
    finally:
        shutil.rmtree(files.root)


def test_results_in_the_spool_are_read_with_the_rights_of_their_owner(ground: Ground) -> None:
    """A link that a job put there, of either kind, leads nowhere."""
    files = SpooledFiles(ground.root / "spool", most=1000)
    own = files.directory(JobId(7, 0))
    own.mkdir(parents=True)
    os.chown(own, MALLORY.uid, MALLORY.gid)
    (own / "result").write_text("mine")
    os.chown(own / "result", MALLORY.uid, MALLORY.gid)
    (own / "soft").symlink_to(ground.ada / "secret")
    assert ["result"] == [each.name for each in files.results(JobId(7, 0), "").files]
    with pytest.raises(OSError, match=r"Too many levels|No such file"):
        files.piece(JobId(7, 0), "soft", 0, 100, log=False)
    os.link(ground.ada / "secret", own / "hard")
    try:
        with pytest.raises(PermissionError):
            files.piece(JobId(7, 0), "hard", 0, 100, log=False)
    finally:
        (own / "hard").unlink()


def test_a_checkpoint_is_removed_with_the_rights_of_its_owner(ground: Ground) -> None:
    """By whom the directory was given to in which it is named; so a URL does not lead to what others keep."""
    (ground.home / "condemned").mkdir()
    os.chown(ground.home / "condemned", MALLORY.uid, MALLORY.gid)
    spooled = SpooledFiles(ground.home / "spooled", most=1000)
    access = Owners(Accounts(), FileAccess(ground.home), spooled).of_directory(ground.home / "condemned")
    (ground.home / "condemned").rmdir()
    assert access.rights == Rights(MALLORY.uid, MALLORY.gid)
    remove = partial(remove_files, f"file://{ground.root}/ada/0001", ["x"], access)
    kept = ground.ada / "0001"
    kept.mkdir()
    (kept / "x").touch()
    try:
        with pytest.raises(PermissionError):
            access.act("remove the checkpoint", kept, remove)
        assert (kept / "x").exists()
    finally:
        shutil.rmtree(kept)


@contextmanager
def exchanged(ground: Ground, name: str, other: Path) -> Generator[None]:
    """While this lasts, a name of mallory's leads in turn to a directory of his own and to another's."""
    honest, turning, over = ground.mallory / "honest", ground.mallory / "turning", threading.Event()
    honest.mkdir(exist_ok=True)
    (honest / "secret").write_text("mine")
    for path in (honest, honest / "secret"):
        os.chown(path, MALLORY.uid, MALLORY.gid)

    def turn() -> None:
        while not over.is_set():
            for target in (honest, other):
                turning.symlink_to(target)
                turning.rename(ground.mallory / name)

    thread = threading.Thread(target=turn)
    (ground.mallory / name).symlink_to(honest)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        (ground.mallory / name).unlink()


async def test_nothing_is_won_by_a_rename_between_look_and_use(ground: Ground) -> None:
    """
    Reading, writing, logs and chirp, in a loop, while a name is exchanged for a link to ada's and to the pool's.
    """
    log = appender(ground)
    files = RemoteFiles(str(ground.mallory), ground.access, threading.BoundedSemaphore(MOST_OPEN))
    seen: Counter[str] = Counter()
    for target in (ground.ada, ground.home):
        with exchanged(ground, "turn", target):
            for _ in range(ROUNDS):
                with suppress(InputError):
                    (data,) = await read(ground, job(ground, TransferInput="turn/secret"))
                    seen[f"read {data!r}"] += 1
                with suppress(OutputError):
                    await written(ground, job(ground, Out="turn/new"))
                    seen["written"] += 1
                with suppress(UserLogError):
                    log.append(ground.mallory / "turn" / "log", "text", owner="mallory")
                    seen["logged"] += 1
                for wish in (OpenFile("turn/chirped", "wct"), OnPath("chmod", ["turn/secret"], [0o644])):
                    seen[f"chirped {files.carry_out(wish).result >= 0}"] += 1
                files.close()
    assert seen.keys() <= {"read b'mine'", "written", "logged", "chirped True", "chirped False"}
