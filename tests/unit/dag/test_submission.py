"""condor_submit_dag: its options, and the description that it writes."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kettle.dag.submission.command_line import OptionError, by_name, parsed
from kettle.dag.submission.loading import load, partial_file
from kettle.dag.submission.options import SubmitDagOptions
from kettle.dag.submission.preparing import PreparationError, Prepared, Site, prepare, prepare_within
from kettle.jobs.quoting import environment_of, split_v2
from kettle.submit import Site as SubmitSite
from kettle.submit import expand, parse

GETENV = (
    "getenv      = CONDOR_CONFIG,_CONDOR_*,KETTLE_HOME,KETTLE_NATS_*,KETTLE_POOL,PATH,PYTHONPATH,PERL*,PEGASUS_*,TZ,HOME,USER,LANG,LC_ALL,ASAN_OPTIONS,"
    "LSAN_OPTIONS,BEARER_TOKEN,BEARER_TOKEN_FILE"
)
ARGUMENTS = (
    'arguments = "-p 0 -f -l . -Lockfile a.dag.lock -Dag a.dag -CsdVersion '
    "$CondorVersion:' '25.0.1' '2026-01-01' '$ -dagman /usr/bin/condor_dagman -AutoRescue 1\""
)
VERSION = "$CondorVersion: 25.0.1 2026-01-01 $"


def prepared(
    directory: Path,
    *words: str,
    knobs: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Prepared:
    return prepare(parsed(words), site(directory, knobs, environ))


def site(
    directory: Path, knobs: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Site:
    return Site(
        directory=directory,
        environ=environ or {},
        knob=(knobs or {}).get,
        version=VERSION,
        dagman="/usr/bin/condor_dagman",
    )


def lines(directory: Path, name: str = "a.dag") -> list[str]:
    return (directory / f"{name}.condor.sub").read_text().splitlines()


def arguments(directory: Path, name: str = "a.dag") -> str:
    return next(line for line in lines(directory, name) if line.startswith("arguments"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "a.dag").write_text("JOB A a.sub\n")
    return tmp_path


def test_description(work: Path) -> None:
    """The job that runs a DAG has the lines that programs look for."""
    prepared(work, "a.dag")

    assert [line for line in lines(work) if not line.startswith("#")] == [
        "universe    = scheduler",
        "executable  = /usr/bin/condor_dagman",
        GETENV,
        "output      = a.dag.lib.out",
        "error       = a.dag.lib.err",
        "log         = a.dag.dagman.log",
        "should_transfer_files = NO",
        "remove_kill_sig = SIGUSR1",
        'My.OtherJobRemoveRequirements = "DAGManJobId =?= $(cluster)"',
        "My.RequestCpus = 0",
        "on_exit_remove = (ExitSignal =?= 11 || (ExitCode =!= UNDEFINED && ExitCode >=0 && ExitCode <= 2))",
        ARGUMENTS,
        'environment = "_CONDOR_DAGMAN_LOG=a.dag.dagman.out _CONDOR_MAX_DAGMAN_LOG=0"',
        "queue",
    ]


def test_description_is_understood(work: Path) -> None:
    """The description makes a job of the scheduler universe, with the arguments that were meant."""
    (work / "it's $(X).dag").write_text("JOB A a.sub\n")
    prepared(work, "-batch-name", 'a "b"', "it's $(X).dag")
    source = work / "it's $(X).dag.condor.sub"
    here = SubmitSite(arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False)
    submission = expand(parse(source.read_text(), source=str(source), cwd=work, environ={}), here)

    job = submission.job(0)
    words = split_v2(str(job["Arguments"]))

    assert (job["JobUniverse"], job["RequestCpus"]) == (7, 0)
    assert words[words.index("-Dag") + 1] == "it's $(X).dag"
    assert job["JobBatchName"] == 'a "b"'
    assert str(job["Out"]).endswith("it's $(X).dag.lib.out")
    assert (
        environment_of(split_v2(str(job["Environment"])))["_CONDOR_DAGMAN_LOG"] == "it's $(X).dag.dagman.out"
    )


@pytest.mark.parametrize("line", ["request_cpus = 2", "RequestCpus = 2", "My.RequestCpus = 2"])
def test_a_dag_job_may_ask_for_cores(work: Path, line: str) -> None:
    """It asks for none, unless a line of its submitter does."""
    prepared(work, "-append", line, "a.dag")
    source = work / "a.dag.condor.sub"
    here = SubmitSite(arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False)
    submission = expand(parse(source.read_text(), source=str(source), cwd=work, environ={}), here)
    assert 2 == submission.job(0)["RequestCpus"]


def test_all_options(work: Path) -> None:
    """Every option reaches the description or the arguments."""
    (work / "c.config").write_text("")
    (work / "more.sub").write_text("+One = 1\n")
    (work / "r").write_text("DONE A\n")
    words = (
        "-maxidle 5 -MaxJobs 6 -maxpre 7 -maxpost 8 -maxhold 9 -alwaysrunpost -priority 3 -usedagdir -debug 4 "
        "-notification error -suppress_notification -config c.config -insert_sub_file more.sub -append +Two=2 -a +Three=3 "
        "-include_env A,B -insert_env X=1;Y=2 -outfile_dir out -rescuefile r -verbose -submitmethod 1 "
        "-allowversionmismatch -import_env -autorescue 0 -batch-name many a.dag"
    )
    prepared(work, *words.split(), environ={"SHELL": "/bin/sh", "BAD": "a;b"})
    said = lines(work)

    for expected in (
        "-Debug 4 -Lockfile a.dag.lock",
        "-MaxIdle 5 -MaxJobs 6 -MaxPre 7 -MaxPost 8 -MaxHold 9 -AlwaysRunPost -CsdVersion",
        "-Priority 3 -RescueFile r -verbose -notification never -dagman",
        "-UseDagDir -outfile_dir out -AutoRescue 0 -AllowVersionMismatch -import_env -include_env A,B -insert_env X=1;Y=2",
        "-suppress_notification -SubmitMethod 1",
    ):
        assert expected in arguments(work)
    assert said[-5:] == ["notification = error", "+One = 1", "+Two=2", "+Three=3", "queue"]
    assert 'My.JobBatchName = "many"' in said
    environment = next(line for line in said if line.startswith("environment"))
    assert "SHELL=/bin/sh X=1 Y=2 _CONDOR_DAGMAN_LOG=out/a.dag.dagman.out" in environment
    assert f"_CONDOR_DAGMAN_CONFIG_FILE={work / 'c.config'}" in environment
    assert "BAD" not in environment


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-maxjob", "Error: Option -MaxJobs (-maxjob) requires an additional argument"),
        ("-maxjobs x a.dag", "Error: -maxjobs (-MaxJobs) additional argument required to be a integer"),
        ("-unknown a.dag", "Error: Unknown flag '-unknown' provided"),
        ("-zzz a.dag", "Error: Unknown flag '-zzz' provided"),
        ("a.dag -maxjobs 3", "ERROR: no arguments allowed after DAG file name(s)"),
        ("-batch-name -f a.dag", "Error: Option -Batch-Name (-batch-name) requires an additional argument"),
        (
            "-alwaysrunpost -dontalwaysrunpost a",
            "Error: Both -AlwaysRunPost and -DontAlwaysRunPost can't be used",
        ),
        (
            "-dorescuefrom 1 -load_save x a",
            "Error: -load_save can not be used with the following flag: -DoRescueFrom",
        ),
    ],
)
def test_refused_words(words: str, message: str) -> None:
    """What makes no sense is refused in HTCondor's words."""
    with pytest.raises(OptionError) as caught:
        parsed(words.split())

    assert str(caught.value).startswith(message)


def test_shortened_flags() -> None:
    """A flag may be shortened; of several the first in the order of the alphabet is meant."""
    options = parsed(["-maxi", "3", "-no_s", "-FORCE", "a.dag", "b.dag"])

    assert (options.max_idle, options.do_submit, options.force) == (3, False, True)
    assert (options.dag_files, options.is_multi) == (["a.dag", "b.dag"], True)


def test_line_ends() -> None:
    """No word can add a line to the description."""
    with pytest.raises(OptionError, match="has a line end"):
        parsed(["-batch-name", "x\nqueue 1000", "a.dag"])
    with pytest.raises(OptionError, match="has a line end"):
        parsed(["a\nqueue.dag"])


def test_options_by_name() -> None:
    """The bindings call options as HTCondor does, with values of their own types."""
    options = SubmitDagOptions()
    for name, value in {
        "MaxIdle": 4,
        "force": True,
        "PostRun": False,
        "BatchName": "x",
        "AppendLines": "+A=1",
    }.items():
        by_name(name, value, options)

    assert (options.max_idle, options.force, options.post_run) == (4, True, False)
    assert (options.batch_name, options.append_lines) == ("x", ["+A=1"])
    with pytest.raises(OptionError, match="there is no option MaxIdl of a DAG"):
        by_name("MaxIdl", 1, options)


def test_words_of_the_file(work: Path) -> None:
    """CONFIG, ENV and SET_JOB_ATTR of the DAG file are for the job that runs it."""
    (work / "dag.config").write_text("")
    (work / "a.dag").write_text(
        'JOB A a.sub\nCONFIG dag.config\nENV SET X=1;Y=2\nENV GET P Q\nSET_JOB_ATTR Who = "me"\n'
    )
    prepared(work, "a.dag")

    assert 'My.Who = "me"' in lines(work)
    assert "-include_env P -include_env Q -insert_env X=1;Y=2" in arguments(work)
    assert any(line.startswith("getenv") and line.endswith("BEARER_TOKEN_FILE,P,Q") for line in lines(work))
    (work / "other").write_text("")
    with pytest.raises(PreparationError, match="Conflicting DAGMan config files"):
        prepared(work, "-f", "-config", "other", "a.dag")


def test_faults_are_told_at_once(work: Path) -> None:
    """A DAG that could not run is not submitted, and nothing is written."""
    (work / "a.dag").write_text("JOB A a.sub\nPARENT A CHILD B\n")
    with pytest.raises(PreparationError, match=r"a\.dag, line 2: no node or splice is called B"):
        prepared(work, "a.dag")

    assert [path.name for path in work.iterdir()] == ["a.dag"]


def test_nothing_is_overwritten_unasked(work: Path) -> None:
    """What an earlier submission left stays, unless -f says otherwise, or it is gone on from."""
    prepared(work, "a.dag")
    (work / "a.dag.lib.out").write_text("x")
    with pytest.raises(PreparationError) as caught:
        prepared(work, "a.dag")
    assert str(caught.value).startswith(
        'ERROR: "a.dag.condor.sub" already exists.\nERROR: "a.dag.lib.out" already exists.\n'
    )
    (work / "a.dag.rescue001").write_text("DONE A\n")
    (work / "a.dag.rescue002").write_text("DONE A\n")

    assert prepared(work, "a.dag").messages == ("Running rescue DAG 2",)
    assert prepared(work, "-f", "a.dag").messages == ()
    assert sorted(path.name for path in work.iterdir()) == [
        "a.dag",
        "a.dag.condor.sub",
        "a.dag.rescue001.old",
        "a.dag.rescue002.old",
    ]


def test_rescue_by_number(work: Path) -> None:
    """The rescue file that is asked for by its number is there."""
    (work / "a.dag.rescue003").write_text("")
    prepared(work, "-dorescuefrom", "3", "-autorescue", "0", "a.dag")

    assert "-DoRescueFrom 3" in arguments(work)
    with pytest.raises(
        PreparationError, match=r"-dorescuefrom 4 specified, but rescue DAG file .* does not exist"
    ):
        prepared(work, "-dorescuefrom", "4", "a.dag")


def test_rescue_file_with_a_fault(work: Path) -> None:
    """A rescue file of another DAG is told of before anything is submitted; with -f it is not looked at."""
    (work / "a.dag.rescue001").write_text("DONE B\n")
    with pytest.raises(PreparationError, match=r"a\.dag\.rescue001, line 1: no node is called B"):
        prepared(work, "a.dag")

    assert prepared(work, "-f", "a.dag").messages == ()


def test_where_a_dag_goes_on(work: Path) -> None:
    """
    A save file is found by its name alone, and of rescue files the newest is used, unless another one is named.
    """
    (work / "a.dag.rescue001").write_text("DONE A\n")
    (work / "a.dag.rescue002").write_text("")
    (work / "b.dag_multi.rescue001").write_text("")

    def goes_on(*words: str, **knobs: str) -> str:
        return partial_file(parsed([*words, "a.dag"]), work, knobs.get)

    assert goes_on() == "a.dag.rescue002"
    assert goes_on("-autorescue", "0") == ""
    assert goes_on(DAGMAN_AUTO_RESCUE="false") == ""
    assert goes_on(DAGMAN_MAX_RESCUE_NUM="1") == "a.dag.rescue001"
    assert goes_on("-dorescuefrom", "1") == "a.dag.rescue001"
    assert goes_on("-rescuefile", "other") == "other"
    assert goes_on("-load_save", "A.save") == "save_files/A.save"
    assert goes_on("-load_save", "./A.save") == "./A.save"
    assert goes_on("b.dag") == "b.dag_multi.rescue001"
    assert load(parsed(["-dorescuefrom", "1", "a.dag"]), work, lambda _: None).nodes[0].is_done


def test_update(work: Path) -> None:
    """A description that is written again keeps the limits that nobody says again."""
    prepared(work, "-maxjobs", "4", "-maxidle", "5", "a.dag")
    prepared(work, "-update_submit", "-maxidle", "6", "a.dag")

    assert "-MaxIdle 6 -MaxJobs 4 " in arguments(work)


def test_recursion(work: Path) -> None:
    """
    On request the descriptions of DAGs within the DAG are written, with the options that hold for them, too.
    """
    (work / "a.dag").write_text("SUBDAG EXTERNAL B b.dag DIR sub\n")
    (work / "sub").mkdir()
    (work / "sub" / "b.dag").write_text("JOB A a.sub\n")
    prepared(work, "-do_recurse", "-maxjobs", "3", "-include_env", "X", "a.dag")

    inner = arguments(work / "sub", "b.dag")
    assert "-include_env X -do_recurse -update_submit" in inner
    assert "-MaxJobs" not in inner


def test_dag_within_when_it_starts(work: Path) -> None:
    """
    A DAG within is described when its node starts, with the node's priority and that of the outer one; a retry keeps its rescue files.
    """
    (work / "a.dag").write_text("SUBDAG EXTERNAL B b.dag DIR sub\nPRIORITY B 7\n")
    (work / "sub").mkdir()
    (work / "sub" / "b.dag").write_text("JOB A a.sub\n")
    (work / "sub" / "b.dag.rescue001").write_text("DONE A\n")
    options = parsed(["-f", "-maxjobs", "3", "-priority", "3", "-dagman", "/bin/true", "a.dag"])
    node = load(options, work, lambda _: None).nodes[0]

    prepare_within(node, options, site(work), is_retry=True)
    assert "-Priority 10 -dagman /bin/true -AutoRescue 1 -update_submit" in arguments(work / "sub", "b.dag")
    assert (work / "sub" / "b.dag.rescue001").exists()
    prepare_within(node, options, site(work), is_retry=False)
    assert "-AutoRescue 1 -force -update_submit" in arguments(work / "sub", "b.dag")
    assert (work / "sub" / "b.dag.rescue001.old").exists()


def test_there_is_no_dagman(work: Path) -> None:
    """Without a program that runs DAGs nothing is written."""
    nowhere = Site(directory=work, environ={}, knob=lambda _: None, version=VERSION, dagman="")
    with pytest.raises(PreparationError, match="Failed to locate condor_dagman executable in PATH"):
        prepare(parsed(["a.dag"]), nowhere)
