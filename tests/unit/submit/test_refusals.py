"""What a submit file must not say."""

from pathlib import Path

import pytest

from kettle.submit import Site, SubmitError, expand, parse

SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here")
HEAD = "executable = /bin/sleep\n"
NODES = "universe = parallel\nmachine_count = 2\n"


def refusal(text: str, cwd: Path, *, given: dict[str, str] | None = None) -> SubmitError:
    with pytest.raises(SubmitError) as caught:
        expand(parse(text, source="job.sub", cwd=cwd, environ={}, given=given), SITE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD + "request_memroy = 2GB\nqueue\n", 2, "did you mean 'request_memory'?"),
        (HEAD + "argumentz = 5\nqueue\n", 2, "did you mean 'arguments'?"),
        (HEAD + "\n# talk\nnonsense = 5\nqueue\n", 4, "write $(nonsense)"),
        (HEAD + "seed = 5\narguments = $(sed)\nqueue\n", 2, "did you mean 'sed'?"),
        (HEAD + "request_cpu = 2\nqueue\n", 2, "did you mean 'request_cpus'?"),
        (HEAD + "request_memmory = 2\nqueue\n", 2, "did you mean 'request_memory'?"),
        (HEAD + "Request_Gpsu = 2\nqueue\n", 2, "did you mean 'request_gpus'?"),
        (HEAD + "deferral_time = -5\nqueue\n", 2, "must be a whole number of seconds"),
        (HEAD + 'deferral_time = "noon"\nqueue\n', 2, "must be a whole number of seconds"),
        (HEAD + "deferral_window = 5\nqueue\n", 2, "goes with deferral_time"),
        (HEAD + "deferral_time = 5\ncron_hour = 1\nqueue\n", 2, "not both"),
        (HEAD + "cron_hour = 24\nqueue\n", 2, "from 0 to 23"),
        (HEAD + "cron_minute = often\nqueue\n", 2, "like 1-5 or */15"),
        (HEAD + "cron_month = 2\ncron_day_of_month = 30\nqueue\n", 3, "no year has the days"),
        (HEAD + "accounting_group = a b\nqueue\n", 2, "no name of a group"),
        (HEAD + "accounting_group_user = a b\nqueue\n", 2, "no name of a user"),
        (HEAD + "accounting_group = a\nnice_user = true\nqueue\n", 2, "say one of the two"),
        (HEAD + "concurrency_limits = a, b c:x\nqueue\n", 2, "'c:x' is no concurrency limit"),
        (HEAD + "concurrency_limits = a:0\nqueue\n", 2, "between 0.000001 and"),
        (HEAD + "concurrency_limits_expr = 1 +\nqueue\n", 2, "is not an expression"),
        (HEAD + "concurrency_limits = a\nconcurrency_limits_expr = b\nqueue\n", 3, "say one of them"),
        (HEAD + "tool_daemon_cmd = x\nqueue\n", 2, "not carried out"),
        (HEAD + "manifest_dir = ../m\nqueue\n", 2, "leads out of the sandbox"),
        (HEAD + "x509userproxy = missing\nqueue\n", 2, "missing does not exist; make one (voms-proxy-init)"),
        (HEAD + "x509userproxy = /dev\nqueue\n", 2, "the proxy file /dev is a directory"),
        (HEAD + "x509userproxy = /dev/null\nqueue\n", 2, "the proxy file /dev/null is empty"),
        (HEAD + "use_x509userproxy = maybe\nqueue\n", 2, "use_x509userproxy"),
        (HEAD + "transfer_input = foo\ninput = /dev/zero\nqueue\n", 2, "transfer_input"),
        (HEAD + "transfer_output = false\nqueue\n", 2, "leave out output = FILE"),
        (HEAD + "hold = perhaps\nqueue\n", 2, "hold must be true or false"),
        (HEAD + "noop_job = 1 +\nqueue\n", 2, "is not an expression"),
        (HEAD + "stack_size = large\nqueue\n", 2, "stack_size must be a whole number"),
        (HEAD + "match_list_length = -1\nqueue\n", 2, "must be 0 or more"),
        (HEAD + "image_size = huge\nqueue\n", 2, "image_size must be an amount of at least 1 KiB"),
        (HEAD + "disk_usage = 0\nqueue\n", 2, "disk_usage must be an amount"),
        (HEAD + "cuda_version = 12\nqueue\n", 2, "add: request_gpus = 1"),
        (HEAD + "request_gpus = 1\ncuda_version = new\nqueue\n", 3, "must be a version, as 12.4"),
        (HEAD + "request_gpus = 1\ngpus_minimum_capability = 7 +\nqueue\n", 3, "is not an expression"),
        (HEAD + "request_memory = 2 GB, 1 GB\nqueue\n", 2, "must be more than the one before it"),
        (HEAD + "retry_request_memory = 64\nqueue\n", 2, "and than what is asked for"),
        (HEAD + "retry_request_memory_increase = Cpus\nqueue\n", 2, "an expression that refers to RequestMemory"),
        (HEAD + "retry_request_memory = 1 GB\nretry_request_memory_max = 2 GB\nqueue\n", 3, "remove this line"),
        (HEAD + "shell = echo\nqueue\n", 2, "say one of them"),
        ("shell = echo\narguments = a\nqueue\n", 2, "shell has no arguments"),
        (HEAD + 'arguments = a\narguments2 = "a"\nqueue\n', 3, "say one of them"),
        (HEAD + "arguments2 = a\nqueue\n", 2, "enclosed in double quotes"),
        (HEAD + "environment2 = A=1\nqueue\n", 2, "enclosed in double quotes"),
        (HEAD + "output_directory = a\noutput_destination = http://x/\nqueue\n", 3, "say one of them"),
        (HEAD + "docker_image = a\ncontainer_service_names = web\nqueue\n", 3, "add: web_container_port = NUMBER"),
        (HEAD + "docker_image = a\ncontainer_service_names = web\nweb_container_port = 0\nqueue\n", 4, "from 1 to 65535"),
        (HEAD + "docker_image = a\ncontainer_service_names = w-b\nqueue\n", 3, "'w-b' is no name"),
        (HEAD + "docker_image = a\ndocker_network_type = none\ncontainer_service_names = w\nqueue\n", 3, "nobody reaches"),
        (HEAD + "use feature : gpus\nqueue\n", 2, "write use template : NAME"),
        (HEAD + "use template : Absent\nqueue\n", 2, "set the knob SUBMIT_TEMPLATE_Absent"),
        (HEAD + "use template : 1a\nqueue\n", 2, "'1a' is no name of a template"),
        (HEAD + "include : absent.sub\nqueue\n", 2, "cannot include absent.sub: there is no such file"),
        (HEAD + "include quickly : absent.sub\nqueue\n", 2, "'include quickly' is not understood"),
        (HEAD + "include :\nqueue\n", 2, "needs the name of a file, or a command"),
        (HEAD + "include : /no/such/program |\nqueue\n", 2, "cannot run '/no/such/program'"),
        (HEAD + "include command : /bin/sh -c 'echo no >&2; exit 3'\nqueue\n", 2, "failed with exit code 3: no"),
        (HEAD + "queue x from /bin/false |\n", 2, "'/bin/false' failed with exit code 1"),
        (HEAD + "queue x from /bin/true |\n", 2, "/bin/true | is empty"),
        (HEAD + "queue x from /usr/bin/printf 'a\\0b' |\n", 2, "it is not text"),
        (HEAD + "max_retries = -1\nqueue\n", 2, "max_retries must be 0 or more"),
        (HEAD + "max_retries = many\nqueue\n", 2, "max_retries must be a whole number"),
        (HEAD + "periodic_hold = NumJobStarts >\nqueue\n", 2, "not an expression"),
        (HEAD + "require_memory = Memory > 7\nqueue\n", 2, "say it in requirements"),
        (HEAD + "require_gpus = Capability > 7\nqueue\n", 2, "add: request_gpus = 1"),
        (HEAD + "request_gpus = 1\nrequire_gpus = Capability >\nqueue\n", 3, "is not an expression"),
        ("queue\n", 1, "there is no executable"),
        ("executable = /no/such/file\nqueue\n", 1, "/no/such/file does not exist"),
        ("executable = .\nqueue\n", 1, "is a directory"),
        (HEAD + "input = absent.txt\nqueue\n", 2, "absent.txt does not exist"),
        (HEAD + "transfer_input_files = absent.txt\nqueue\n", 2, "absent.txt does not exist"),
        (HEAD + "transfer_input_files = s3://b/k\nqueue\n", 3, "need aws_access_key_id_file = FILE"),
        (HEAD + "output_destination = gs://b/k\nqueue\n", 3, "need aws_access_key_id_file = FILE"),
        (HEAD + "aws_secret_access_key_file = absent\nqueue\n", 2, "absent does not exist"),
        (HEAD + "s3_endpoint = s3.site.org\nqueue\n", 2, "write https://HOST"),
        (HEAD + "transfer_exclude_files = a, !b\nqueue\n", 2, "'!b': what is excluded"),
        (HEAD + "transfer_input_files = $(Process).txt\nqueue 3\n", 2, "0.txt does not exist"),
        (HEAD + "output = nowhere/out\nqueue\n", 2, "there is no directory"),
        (HEAD + "initialdir = nowhere\nqueue\n", 2, "is not a directory"),
        (HEAD + "requirements = Memory >\nqueue\n", 2, "is not an expression"),
        (HEAD + "requirements = Requirements && true\nqueue\n", 2, "refers to itself"),
        (HEAD + "rank = (1\nqueue\n", 2, "is not an expression"),
        (HEAD + "+Seed = 1 # the seed\nqueue\n", 2, "a comment stands on a line of its own"),
        (HEAD + '+Owner = "root"\nqueue\n', 2, "set by the schedd"),
        (HEAD + "request_cpus = 0\nqueue\n", 2, "more than zero, not 0"),
        (HEAD + "request_cpus = -1\nqueue\n", 2, "more than zero, not -1"),
        (HEAD + "request_cpus = 3 - 4\nqueue\n", 2, "more than zero, not 3 - 4"),
        (HEAD + "request_memory = -2GB\nqueue\n", 2, "more than zero, not -2GB"),
        (HEAD + "request_memory = 0\nqueue\n", 2, "more than zero"),
        (HEAD + "request_disk = 0 MB\nqueue\n", 2, "more than zero"),
        (HEAD + "request_disk = 5 parsecs\nqueue\n", 2, "is not an expression"),
        (HEAD + "request_gpus = -1\nqueue\n", 2, "zero or more, not -1"),
        (HEAD + "priority = high\nqueue\n", 2, "whole number"),
        (HEAD + "universe = java\nqueue\n", 2, "use vanilla"),
        (HEAD + "universe = parallel\nqueue\n", 2, "machine_count = N"),
        (HEAD + "universe = parallel\nmachine_count = 0\nqueue\n", 3, "from 1 to 1000, not 0"),
        (HEAD + "machine_count = 4\nqueue\n", 2, "write: universe = parallel"),
        (f"{HEAD}{NODES}checkpoint_exit_code = 85\nqueue\n", 4, "make no checkpoints"),
        (f"{HEAD}{NODES}when_to_transfer_output = on_exit_or_evict\nqueue\n", 4, "write ON_EXIT"),
        (HEAD + "universe = container\nqueue\n", 2, "needs an image"),
        (HEAD + "container_image = absent\nqueue\n", 2, "write docker://absent"),
        (HEAD + "container_image = absent.tar\nqueue\n", 2, "absent.tar does not exist"),
        (HEAD + "container_image = a.tar\ntransfer_container = false\nqueue\n", 2, "its absolute path"),
        (HEAD + "docker_image = a\ncontainer_image = b\nqueue\n", 2, "exclude each other"),
        (HEAD + "docker_image = a\ndocker_network_type = bridge\nqueue\n", 3, "host or none"),
        (HEAD + "docker_image = a\ncontainer_target_dir = x\nqueue\n", 3, "an absolute path"),
        (HEAD + "docker_image = a\ndocker_pull_policy = never\nqueue\n", 3, "always or missing"),
        (HEAD + "universe = vanila\nqueue\n", 2, "there is no universe 'vanila'"),
        (HEAD + "notify_user = ann@\nqueue\n", 2, "'ann@' is no mail address: write ann@example.org"),
        (HEAD + f"notify_user = {'a,' * 11}\nqueue\n", 2, "11 addresses, and at most 10 are taken"),
        (HEAD + "notification = sometimes\nqueue\n", 2, "never, always"),
        (HEAD + "transfer_executable = perhaps\nqueue\n", 2, "true or false"),
        (HEAD + "should_transfer_files = maybe\nqueue\n", 2, "YES, NO or IF_NEEDED"),
        (HEAD + "when_to_transfer_output = NEVER\nqueue\n", 2, "must be ON_EXIT, ON_SUCCESS or"),
        (HEAD + "transfer_output_files = a, ../b\nqueue\n", 2, "../b leads out of the sandbox"),
        (HEAD + "transfer_output_files = /tmp/b\nqueue\n", 2, "/tmp/b leads out of the sandbox"),
        (HEAD + "transfer_input_files = http://x/\nqueue\n", 2, "does not end with the name of a file"),
        (HEAD + "transfer_output_remaps = a=b;c\nqueue\n", 2, "transfer_output_remaps: 'c' has no ="),
        (HEAD + "transfer_plugins = foo\nqueue\n", 2, "transfer_plugins: 'foo' is no plugin"),
        (HEAD + "transfer_plugins = foo=absent\nqueue\n", 2, "absent does not exist"),
        (HEAD + "output_destination = /data\nqueue\n", 2, "must be a URL"),
        (HEAD + "checkpoint_destination = file:///pool/key?\nqueue\n", 2, "has a path only, without ? and #"),
        (HEAD + "checkpoint_destination = file:///a/../b\nqueue\n", 2, "has no . and .. in it"),
        (HEAD + "checkpoint_destination = s3://bucket/c\nqueue\n", 2, "nothing here would remove them there"),
        (HEAD + "max_transfer_input_mb = 1 +\nqueue\n", 2, "is not an expression"),
        (HEAD + "docker_image = a\nshould_transfer_files = NO\nqueue\n", 4, "a container cannot have"),
        (HEAD + 'arguments = a"b\nqueue\n', 2, "double quote"),
        (HEAD + "arguments = \"it's\"\nqueue\n", 2, "never closed"),
        (HEAD + 'environment = "A"\nqueue\n', 2, "not NAME=value"),
        (HEAD + "queue x in ()\n", 2, "has no items: the list is empty"),
        (HEAD + "queue x from (\n)\n", 2, "has no items"),
        (HEAD + "queue x matching *.nothing\n", 2, "nothing matches *.nothing"),
        (HEAD + "queue x from absent.txt\n", 2, "cannot read the items from absent.txt"),
        (HEAD + "queue x in [5:] (a b)\n", 2, "the slice leaves none"),
        (HEAD + "queue x in (a b\n", 2, "never closed"),
        (HEAD + "queue 0\n", 2, "makes no job"),
        (HEAD + "queue -1\n", 2, "cannot queue -1 jobs"),
        (HEAD + "queue 1.5\n", 2, "not a number of jobs"),
        (HEAD + "queue name\n", 2, "queue NAME in (A B C)"),
        (HEAD + "queue 2 - \n", 2, "not a number of jobs"),
        (HEAD + "gibberish\nqueue\n", 2, "neither NAME = VALUE nor"),
        (HEAD + "a = $(b)\nb = $(a)\narguments = $(a)\nqueue\n", 4, "defined by itself: a -> b -> a"),
        (HEAD + "if $(x) == 5\nendif\nqueue\n", 2, "is not a condition"),
        (HEAD + "if true\nqueue\n", 2, "has no endif"),
        (HEAD + "endif\nqueue\n", 2, "without an if"),
        (HEAD + "error : stop here\nqueue\n", 2, "stop here"),
        (HEAD + "arguments = $INT(x)\nx = abc\nqueue\n", 2, "is not a number"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_refused(text: str, line: int, words: str, tmp_path: Path) -> None:
    """One sentence, with the file and the line that has to be changed."""
    error = refusal(text, tmp_path)
    assert str(error).startswith(f"job.sub, line {line}: ")
    assert words in str(error)
    assert "\n" not in str(error)


def test_a_file_without_a_queue_statement_is_refused(tmp_path: Path) -> None:
    """Nothing would be submitted, which nobody can want."""
    assert "job.sub: there is no queue statement" in str(refusal(HEAD, tmp_path))


def test_an_unused_assignment_on_the_command_line_is_refused(tmp_path: Path) -> None:
    """A misspelt name=value would otherwise submit the sweep with the old value."""
    error = refusal(HEAD + "arguments = $(seed)\nqueue\n", tmp_path, given={"sead": "7"})
    assert str(error).startswith("command line: ")
    assert "did you mean 'seed'?" in str(error)


def test_a_missing_file_of_a_later_job_is_found(tmp_path: Path) -> None:
    """Every job's files are looked at, not only the first job's."""
    (tmp_path / "0.txt").touch()
    error = refusal(HEAD + "transfer_input_files = $(Process).txt\nqueue 2\n", tmp_path)
    assert "1.txt does not exist" in str(error)


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    """The shadow could not read it either."""
    secret = tmp_path / "secret"
    secret.touch(mode=0)
    try:
        secret.open().close()
        pytest.skip("we may read everything")
    except PermissionError:
        pass
    assert "cannot be read" in str(refusal(HEAD + "transfer_input_files = secret\nqueue\n", tmp_path))


@pytest.mark.parametrize("content", [b"a\n\xff\n", b"a\0b\n"])
def test_items_that_are_no_text_are_refused(content: bytes, tmp_path: Path) -> None:
    """They could not be sent, or no program could be given them."""
    (tmp_path / "items").write_bytes(content)
    error = refusal(HEAD + "arguments = $(x)\nqueue x from items\n", tmp_path)
    assert str(error).startswith("job.sub, line 3: cannot read the items from items: it is not text")


def test_a_file_that_we_may_not_look_at_is_refused(tmp_path: Path) -> None:
    """A directory that is closed to us is a sentence, not a crash."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        list(closed.iterdir())
        pytest.skip("we may look everywhere")
    except PermissionError:
        pass
    assert "cannot be read: Permission denied" in str(refusal("executable = closed/x\nqueue\n", tmp_path))
    for name in "output", "log":
        assert "cannot be written" in str(refusal(HEAD + f"{name} = closed/x\nqueue\n", tmp_path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("+1x = 4", "'1x' is not the name of an attribute"),
        ("request_cpus = 0.5", "must be at least 1, not 0.5"),
        ("request_cpus = true", "must be a number"),
        ("request_cpus = 99999999999999999999", "too large"),
        ("arguments = \udcff", "not text in UTF-8"),
        ("arguments = a\0b", "not text in UTF-8"),
        ("output = .", "is a directory"),
        ("queue 1000001", "cannot queue 1000001 jobs at once"),
        ("queue 500001 x in (a b)", "cannot queue 1000002 jobs at once"),
    ],
)
def test_what_looks_harmless_is_refused(line: str, words: str, tmp_path: Path) -> None:
    """With the line that is wrong, too."""
    error = refusal(HEAD + f"{line}\nqueue\n", tmp_path)
    assert str(error).startswith("job.sub, line 2: ")
    assert words in str(error)


def test_what_programs_write_is_tolerated_where_it_does_no_harm(tmp_path: Path) -> None:
    """
    Names that are no commands, and one machine, which is what a job gets; the others are refused as ever.
    """
    odd = "LogDirectory = logs\nrequest_memmory = 2\nmachine_count = 1\nqueue\n"
    description = parse(HEAD + odd, source="job.sub", cwd=tmp_path, environ={}, tolerant=True)
    plain = parse(HEAD + "queue\n", source="job.sub", cwd=tmp_path, environ={})
    found = expand(description, SITE)
    assert expand(plain, SITE).ad == found.ad
    assert ["LogDirectory", "request_memmory"] == [each.name for each in found.unused]
    for line in ("on_evict_checks = true", "tool_daemon_cmd = x"):
        with pytest.raises(SubmitError):
            parse(f"{HEAD}{line}\nqueue\n", source="job.sub", cwd=tmp_path, environ={}, tolerant=True)


def test_the_line_of_what_is_included_is_told(tmp_path: Path) -> None:
    """With the name of the file in which it stands; and an if ends where it began."""
    (tmp_path / "inner.sub").write_text("request_cpus = 1\nrequest_memroy = 3\n")
    assert str(refusal(HEAD + "include : inner.sub\nqueue\n", tmp_path)).startswith("inner.sub, line 2: ")
    (tmp_path / "open.sub").write_text("\nif true\n")
    assert str(refusal(HEAD + "include : open.sub\nqueue\n", tmp_path)).startswith(
        "open.sub, line 2: this if"
    )
    (tmp_path / "end.sub").write_text("endif\n")
    error = refusal(HEAD + "if true\ninclude : end.sub\nqueue\n", tmp_path)
    assert str(error).startswith("end.sub, line 1: endif without an if")
    (tmp_path / "loop.sub").write_text("include : loop.sub\n")
    assert "does one include itself?" in str(refusal(HEAD + "include : loop.sub\nqueue\n", tmp_path))
