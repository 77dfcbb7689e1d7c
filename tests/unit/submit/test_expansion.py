"""From a submit file to the jobs of a cluster."""

import os
from pathlib import Path

import msgspec
import pytest

from kettle.submit import Site, Submission, SubmitError, expand, parse
from kettle_wire.ads.types import Ad, Expr, Scalar

SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here")
ENVIRON = {"HOME": "/home/ada", "LANG": "C", "LC_ALL": "C.UTF-8"}
HEAD = "executable = /bin/sleep\n"


def submission(text: str, cwd: Path = Path("/tmp"), **given: str) -> Submission:
    return expand(parse(text, source="job.sub", cwd=cwd, environ=ENVIRON, given=given), SITE)


def column(found: Submission, name: str) -> list[Scalar]:
    return [found.job(proc)[name] for proc in range(found.count)]


def arguments(text: str, cwd: Path = Path("/tmp"), **given: str) -> list[Scalar]:
    return column(submission(f"{HEAD}{text}", cwd, **given), "Args")


def test_what_is_equal_for_all_jobs_is_sent_once() -> None:
    """Only what differs is in the table."""
    found = submission(HEAD + "arguments = 5 $(Process)\noutput = out.$(Process)\nqueue 3\n")
    assert ["Args", "Out"] == sorted(found.columns)
    assert 3 == found.count
    assert "/bin/sleep" == found.ad["Cmd"]
    assert ["5 0", "5 1", "5 2"] == column(found, "Args")


def test_equal_jobs_have_empty_rows() -> None:
    """A row is a job, also when nothing is in it."""
    found = submission(HEAD + "queue 4\n")
    assert ([], [[], [], [], []]) == (found.columns, found.rows)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("queue 2", ["0//0/0", "1//1/0"]),
        ("queue x in (a b)", ["0/a/0/0", "1/b/0/1"]),
        ("queue x in a, b", ["0/a/0/0", "1/b/0/1"]),
        ("queue 2 x in (a b)", ["0/a/0/0", "1/a/1/0", "2/b/0/1", "3/b/1/1"]),
        ("queue 1+1 x in (a)", ["0/a/0/0", "1/a/1/0"]),
        ("queue x in [1:] (a b c)", ["0/b/0/1", "1/c/0/2"]),
        ("queue x in [::2] (a b c)", ["0/a/0/0", "1/c/0/2"]),
        ("queue x in [-1] (a b c)", ["0/c/0/2"]),
        ("queue x in (a\n  b\n)", ["0/a/0/0", "1/b/0/1"]),
        ("queue x from (\n a\n # not this\n b c\n)", ["0/a/0/0", "1/b c/0/1"]),
    ],
)
def test_queue_statements(queue: str, expected: list[str]) -> None:
    """Each item is queued count times; the index counts in the whole list."""
    assert expected == arguments(f"arguments = $(Process)/$(x)/$(Step)/$(ItemIndex)\n{queue}\n")


def test_items_without_a_variable_are_item() -> None:
    """`queue in (...)` names nothing."""
    assert ["a", "b"] == arguments("arguments = $(Item)\nqueue in (a b)\n")


def test_lines_are_split_over_variables(tmp_path: Path) -> None:
    """
    Commas or blanks separate, the last variable takes the rest, missing ones are empty; a line that says nothing
    is an item with the values of the line before it.
    """
    (tmp_path / "points.txt").write_text("1, 2, three four\n\n5\n#6 7\na,,c\n")
    text = "arguments = [$(x)|$(y)|$(z)]\nqueue x, y, z from points.txt\n"
    assert ["[1|2|three four]", "[1|2|three four]", "[5||]", "[#6|7|]", "[a||c]"] == arguments(text, tmp_path)


def test_items_that_match(tmp_path: Path) -> None:
    """Globs start at the working directory; directories end with a slash, and may be kept apart."""
    for name in ("b.dat", "a.dat", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "d.dat").mkdir()
    text = "arguments = $(f)\nqueue f matching"
    assert ["a.dat", "b.dat"] == arguments(f"{text} files *.dat\n", tmp_path)
    assert ["a.dat", "b.dat", "d.dat/"] == arguments(f"{text} *.dat\n", tmp_path)
    assert ["d.dat/"] == arguments(f"{text} dirs *\n", tmp_path)
    assert ["a.dat", "b.dat", "d.dat/"] == arguments(f"{text} any *.dat\n", tmp_path)


def test_several_queue_statements_of_one_program_make_one_cluster() -> None:
    """Process numbers go on, and each statement sees the assignments before it."""
    text = "arguments = $(Process) $(x)\nx = 1\nqueue\nx = 2\nrequest_cpus = 2\nqueue 2\n"
    found = submission(HEAD + text)
    assert ["0 1", "1 2", "2 2"] == column(found, "Args")
    assert [1, 2, 2] == column(found, "RequestCpus")


def test_an_attribute_that_only_some_have_is_undefined_for_the_others() -> None:
    """A table has no holes."""
    found = submission(HEAD + "queue\n+Late = 1\nqueue\n")
    assert [Expr("undefined"), 1] == column(found, "Late")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arguments = $(x)\nx = late", "late"),
        ("x = a\nx = $(x) b\narguments = $(x)", "a b"),
        ("arguments = $(nothing:default $(y))\ny = z", "default z"),
        ("arguments = [$(nothing)]", "[]"),
        ("x =\narguments = $(x:empty counts)", "empty counts"),
        ("arguments = $(DOLLAR)(x)", "$(x)"),
        ("arguments = $$(Memory) $$([1+1])", "$$(Memory) $$([1+1])"),
        ("arguments = $(unclosed", "$(unclosed"),
        ("arguments = $UNKNOWN(x) $x", "$UNKNOWN(x) $x"),
        ("ARG = 7\narguments = $(arg)", "7"),
        ("arguments = $ENV(HOME) $ENV(NOPE) $ENV(NOPE:other)", "/home/ada UNDEFINED other"),
        ("n = 3\ne = $(n)*2\narguments = $INT(e) $INT(n,%03d) $REAL(e)", "6 003 6"),
        ("arguments = $CHOICE(1,a,b,c)", "b"),
        ("l = a, b c\ni = 1\narguments = $CHOICE(i,l)", "b c"),
        (
            "t = abcdef\narguments = $SUBSTR(t,2) $SUBSTR(t,-2) $SUBSTR(t,1,3) $SUBSTR(t,1,-1)",
            "cdef ef bcd bcde",
        ),
        ('s = "a" \narguments = $STRING(s) $EVAL(s) $EVAL(zzz)', "a a undefined"),
        (
            "f = /a/b.c/d.tar.gz\narguments = $Fp(f) $Fd(f) $Fdb(f) $Fn(f) $Fx(f)",
            "/a/b.c/ b.c/ b.c d.tar .gz",
        ),
        ("f = /a/b.c/d.tar.gz\narguments = $Fxb(f) $Fnx(f) $Fdn(f) $Fdd(f)", "gz d.tar.gz b.c/d.tar a/b.c/"),
        ("f = /a/d.tar.gz\narguments = $BASENAME(f) $BASENAME(f,.tar.gz) $DIRNAME(f)", "d.tar.gz d /a/"),
        ("arguments = one \\\n   two", "one two"),
    ],
)
def test_macros(text: str, expected: str) -> None:
    """Text substitution, as the language has it."""
    assert [expected] == arguments(f"{text}\nqueue\n")


def test_random_numbers_are_drawn_for_each_job() -> None:
    """Jobs of a sweep do not share their seed."""
    seeds = arguments("arguments = $RANDOM_INTEGER(0,1000000000)\nqueue 20\n")
    assert len(set(seeds)) > 1


def test_what_is_given_beforehand_may_be_overridden() -> None:
    """The command line comes before the first line of the file."""
    assert ["7"] == arguments("arguments = $(seed)\nqueue\n", seed="7")
    assert ["1"] == arguments("seed = 1\narguments = $(seed)\nqueue\n", seed="7")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("if defined y\nx = 1\nelse\nx = 2\nendif", "2"),
        ("y = 1\nif defined y\nx = 1\nelse\nx = 2\nendif", "1"),
        ("if false\nx = 1\nelif !false\nx = 2\nelse\nx = 3\nendif", "2"),
        ("if version >= 8.0\nx = new\nelse\nx = old\nendif", "new"),
        ("if true\nif false\nx = 1\nendif\nelse\nx = 2\nendif", ""),
        ("y = 0\nif $(y)\nx = 1\nelse\nx = 2\nendif", "2"),
    ],
)
def test_conditionals(lines: str, expected: str) -> None:
    """Only the lines of a branch that is taken count."""
    assert [f"[{expected}]"] == arguments(f"{lines}\narguments = [$(x)]\nqueue\n")


def test_the_cluster_is_left_to_the_schedd() -> None:
    """In a string the macro stays, in an expression it is the attribute that will hold the number."""
    text = 'output = out.$(Cluster).$(Process)\n+A = $(ClusterId) + 1\n+B = "run $(Cluster)"\n'
    found = submission(f'{HEAD}{text}+C = strcat("x$(Cluster)", "y")\nqueue\n')
    assert "out.$(ClusterId).0" == found.job(0)["Out"]
    assert Expr("ClusterId + 1") == found.ad["A"]
    assert "run $(ClusterId)" == found.ad["B"]
    assert Expr('strcat(strcat("x",ClusterId,""),"y")') == found.ad["C"]


def test_what_somebody_says_beats_what_follows_from_it() -> None:
    """
    `+Attr` is applied last, in the spelling that the attribute has, also against a command that differs by job.
    """
    found = submission(HEAD + 'arguments = $(Process)\n+ARGS = "fixed"\n+requestcpus = 3\nqueue 2\n')
    assert ("fixed", 3) == (found.ad["Args"], found.ad["RequestCpus"])
    assert [] == found.columns


def test_getenv_takes_what_matches() -> None:
    """Patterns do not mind case, exclusions win, and what is given explicitly wins over all."""

    def environment(text: str) -> Scalar:
        return submission(f"{HEAD}{text}\nqueue\n").ad["Environment"]

    assert "LANG=C LC_ALL=C.UTF-8" == environment("getenv = l*")
    assert "HOME=/home/ada" == environment("getenv = !L*")
    assert "LANG=C LC_ALL=x" == environment('getenv = L*\nenvironment = "LC_ALL=x"')
    assert "A=two' 'words" == environment("environment = A=two words")


def test_input_makes_the_disk_request_grow(tmp_path: Path) -> None:
    """A job that does not ask for disk gets a quarter more than its input, at least the pool's minimum."""
    with (tmp_path / "big").open("wb") as file:
        file.truncate(4 << 30)
    assert 1024 * 1024 == submission(HEAD + "queue\n").ad["RequestDisk"]
    grown = submission(HEAD + "transfer_input_files = big\nqueue\n", tmp_path).ad
    assert (4096 + 1, int((4096 + 2) * 1.25 * 1024)) == (grown["TransferInputSizeMB"], grown["RequestDisk"])


def test_names_that_are_not_known_yet_are_not_looked_for() -> None:
    """A file whose name has the cluster's number in it does not exist before there is a cluster."""
    found = submission(HEAD + "initialdir = /nowhere/$(Cluster)\ninput = in\nqueue\n")
    assert "/nowhere/$(ClusterId)" == found.ad["Iwd"]


@pytest.mark.parametrize("tag", ["tpus", "npus", "fpus", "ipus", "dpus", "vgpus", "disks", "licences"])
def test_a_resource_may_be_called_nearly_like_another(tag: str) -> None:
    """Machines may have it: what is asked of it stands in the job."""
    assert 1 == submission(HEAD + f"request_{tag} = 1\nqueue\n").ad[f"Request{tag}"]


def test_custom_resources_are_requested() -> None:
    """Any resource that machines advertise may be asked for by its name."""
    found = submission(HEAD + "request_gpus = 1\nrequest_licences = 2\nqueue\n")
    assert (1, 2) == (found.ad["RequestGPUs"], found.ad["Requestlicences"])
    requirements = found.ad["Requirements"]
    assert isinstance(requirements, Expr)
    assert "(TARGET.GPUs >= RequestGPUs) && (TARGET.licences >= Requestlicences)" in requirements.expr


def test_every_way_by_url_asks_for_a_plugin(tmp_path: Path) -> None:
    """
    Inputs, public ones and destinations of results; not those for which the job brings a plugin of its own.
    """
    for name in ("plug", "id", "secret"):
        (tmp_path / name).touch()
    ad = submission(
        HEAD
        + "aws_access_key_id_file = id\nS3_secret_access_key_file = secret\ntransfer_input_files = http://x/a, mine://b\npublic_input_files = osdf:///c\n"
        "transfer_output_remaps = r = s3://bucket/r\noutput_destination = davs://host/d\n"
        "transfer_plugins = mine=plug\nqueue\n",
        tmp_path,
    ).ad

    assert "http,osdf,davs,s3" == ad["WantTransferPluginMethods"]
    assert "osdf:///c" == ad["PublicInputFiles"]
    assert "TARGET.HasJobTransferPlugins" in str(ad["Requirements"])
    assert "FileSystemDomain" in str(ad["Requirements"])


def test_keys_are_named_and_not_read(tmp_path: Path) -> None:
    """
    By the places of their files, which only the submit side looks into; a plugin of the job's own needs none.
    """
    for name, text in (("id", "AKIA"), ("secret", "hush"), ("plug", "")):
        (tmp_path / name).write_text(text)
    ad = submission(
        HEAD + "transfer_input_files = s3://bucket/a\naws_access_key_id_file = id\n"
        "aws_secret_access_key_file = secret\naws_region = eu-west-1\ns3_endpoint = https://s3.site.org\nqueue\n",
        tmp_path,
    ).ad
    own = submission(
        HEAD + "transfer_input_files = s3://bucket/a\ntransfer_plugins = s3 = plug\nqueue\n", tmp_path
    ).ad

    assert (str(tmp_path / "id"), str(tmp_path / "secret")) == (
        ad["EC2AccessKeyId"],
        ad["EC2SecretAccessKey"],
    )
    assert ("eu-west-1", "https://s3.site.org") == (ad["AWSRegion"], ad["S3Endpoint"])
    assert "hush" not in str(ad)
    assert "EC2AccessKeyId" not in own


def test_a_proxy_is_named_and_not_read(tmp_path: Path) -> None:
    """As HTCondor says it: relative to initialdir; what is named comes before what grid programs use."""
    (tmp_path / "sub").mkdir()
    for name in ("proxy", "sub/other"):
        (tmp_path / name).write_text("-----BEGIN CERTIFICATE-----")

    def named(lines: str, **environ: str) -> Scalar | None:
        read = parse(f"{HEAD}{lines}\nqueue\n", source="job.sub", cwd=tmp_path, environ=environ)
        return expand(read, SITE).ad.get("x509userproxy")

    usual, other = f"{tmp_path}/proxy", f"{tmp_path}/sub/other"
    assert usual == named("X509UserProxy = proxy")
    assert usual == named("x509userproxy = proxy\nuse_x509userproxy = false")
    assert other == named(
        "initialdir = sub\nx509userproxy = other\nuse_x509userproxy = true", X509_USER_PROXY=usual
    )
    assert usual == named("use_x509userproxy = true", X509_USER_PROXY=usual)
    assert named("use_x509userproxy = false", X509_USER_PROXY=usual) is None
    assert named("", X509_USER_PROXY=usual) is None


def test_a_token_of_the_submitter_is_named_and_not_read(tmp_path: Path) -> None:
    """
    As HTCondor says it: a file that is named, or that of the shell; and one that has to be there is missed.
    """
    (tmp_path / "token").write_text("secret")

    def named(lines: str, **environ: str) -> Scalar | None:
        read = parse(f"{HEAD}{lines}\nqueue\n", source="job.sub", cwd=tmp_path, environ=environ)
        return expand(read, SITE).ad.get("ScitokensFile")

    token = f"{tmp_path}/token"
    assert token == named("use_scitokens = true\nscitokens_file = token")
    assert token == named("scitokens_file = token")
    for word in ("auto", "true"):
        assert token == named(f"use_scitokens = {word}", BEARER_TOKEN_FILE=token)
    assert named("use_scitokens = auto") is None
    assert named("use_scitoken = false\nscitokens_file = token") is None
    assert named("", BEARER_TOKEN_FILE=token) is None
    with pytest.raises(SubmitError, match="which token"):
        named("use_scitokens = true")
    with pytest.raises(SubmitError, match="the token file"):
        named("scitokens_file = nowhere")


def test_the_usual_proxy_is_that_of_whoever_submits() -> None:
    """Where grid programs put it."""
    site = msgspec.structs.replace(SITE, check_files=False)
    read = parse(f"{HEAD}use_x509userproxy = true\nqueue\n", source="job.sub", cwd=Path("/w"), environ={})
    assert f"/tmp/x509up_u{os.getuid()}" == expand(read, site).ad["x509userproxy"]


@pytest.mark.parametrize(("said", "meant"), [("False", "NO"), ("true", "YES"), ("if_needed", "IF_NEEDED")])
def test_truth_values_for_should_transfer_files(said: str, meant: str, tmp_path: Path) -> None:
    """Clients write them."""
    ad = submission(HEAD + f"should_transfer_files = {said}\nqueue\n", tmp_path).ad
    assert meant == ad["ShouldTransferFiles"]


def test_who_is_charged_is_completed_by_the_access_point() -> None:
    """
    The description says the group; nice_user is one, and makes the job leave at once unless it says otherwise.
    """
    ad = submission(HEAD + "accounting_group = physics.higgs\naccounting_group_user = ada\nqueue\n").ad
    assert ("physics.higgs", "ada") == (ad["AcctGroup"], ad["AcctGroupUser"])
    assert "AccountingGroup" not in ad
    nice = submission(HEAD + "nice_user = true\nqueue\n").ad
    assert ("nice-user", 0) == (nice["AcctGroup"], nice["MaxJobRetirementTime"])
    said = submission(HEAD + "nice_user = true\nmax_job_retirement_time = 5\nqueue\n").ad
    assert 5 == said["MaxJobRetirementTime"]


def test_concurrency_limits_are_in_lower_case_and_sorted() -> None:
    """
    Of which the pool has only so many: names with numbers, what is named twice is added; or an expression.
    """
    ad = submission(HEAD + "concurrency_limits = SW.b:2.5, Matlab, a : 3 A\nqueue\n").ad
    assert "a:4,matlab,sw.b:2.5" == ad["ConcurrencyLimits"]
    ad = submission(HEAD + 'concurrency_limits_expr = strcat("a:", TARGET.Cpus)\nqueue\n').ad
    assert Expr('strcat("a:",TARGET.Cpus)') == ad["ConcurrencyLimits"]


def test_quotes_around_a_path_are_no_part_of_it() -> None:
    """So an attribute that is a text can be a part of a name."""
    found = submission(f'{HEAD}+Tag = "a/b.c"\nargs = $F(MY.Tag) $Fn(MY.Tag) $Fqa(MY.Tag)\nqueue\n')
    assert "a/b.c b 'a/b.c'" == found.ad["Args"]


def test_an_attribute_without_a_value_is_undefined() -> None:
    assert Expr("undefined") == submission(f"{HEAD}+projectname = \nqueue\n").ad["projectname"]


def test_files_and_what_programs_print_are_included(tmp_path: Path) -> None:
    """Where the statement stands, seeing and setting macros; what is kept in a file is asked for once."""
    (tmp_path / "inner.sub").write_text("x = $(x) inner\nif defined y\nx = $(x) y\nendif\n")
    text = "x = outer\ny = 1\nname = inner\ninclude : $(name).sub\ninclude ifexist : absent.sub\n"
    assert ["outer inner y"] == arguments(f"{text}arguments = $(x)\nqueue\n", tmp_path)
    for statement in ("include : /bin/echo 'x = a b' |", "include command : /bin/echo 'x = a b'"):
        assert ["a b"] == arguments(f"{statement}\narguments = $(x)\nqueue\n", tmp_path)
    cached = "include command into cache : /bin/sh -c 'echo x = $$'\narguments = $(x)\nqueue\n"
    first = arguments(cached, tmp_path)
    assert first == arguments(cached, tmp_path)
    assert f"x = {first[0]}\n" == (tmp_path / "cache").read_text()


def test_items_are_what_a_program_prints(tmp_path: Path) -> None:
    """One for each line, split over the variables."""
    text = "arguments = [$(a)|$(b)]\nqueue a, b from /usr/bin/printf '1 2 3\\n\\n4\\n' |\n"
    assert ["[1|2 3]", "[1|2 3]", "[4|]"] == arguments(text, tmp_path)


def test_templates_are_those_of_the_pool(tmp_path: Path) -> None:
    """With arguments in their places."""
    templates = {
        "Small": 'request_cpus = $(1:3)\n+Said = "$(0) of $(0#), $(2+), $(1?)$(4?)"',
        "Named": "y = 7",
    }

    def ad(text: str) -> Ad:
        read = parse(
            f"{HEAD}{text}\nqueue\n", source="job.sub", cwd=tmp_path, environ={}, templates=templates.get
        )
        return expand(read, SITE).ad

    filled = ad("use template : Small(2, b, c)")
    assert (2, "2, b, c of 3, b, c, 10") == (filled["RequestCpus"], filled["Said"])
    both = ad("use template : Named, Small\narguments = $(y)")
    assert (3, "7") == (both["RequestCpus"], both["Args"])


def test_what_a_description_says_is_passed_on(tmp_path: Path) -> None:
    """Of what counts, with the line where it stands."""
    text = f"{HEAD}x = 3\nif true\nwarning : take $(x)\nelse\nwarning : no\nendif\nqueue\n"
    assert ("job.sub, line 4: take 3",) == submission(text, tmp_path).warnings


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("hold = true", {"JobStatus": 5, "HoldReasonCode": 15}),
        ("hold = false", {"JobStatus": None}),
        ("shell = echo 'a b' && ls", {"Cmd": "/bin/sh", "TransferExecutable": False}),
        ("shell = echo 'a b' && ls", {"Arguments": "-c echo' '''a' 'b''' '&&' 'ls"}),
        ('arguments2 = "a \'b c\'"', {"Arguments": "a b' 'c"}),
        ('environment2 = "A=1"', {"Environment": "A=1"}),
        ("request_gpus = 1\ncuda_version = 11.2", {"CUDAVersion": 11020}),
        ("request_gpus = 1\ncuda_version = 11.2", {"RequireGPUs": Expr("MaxSupportedVersion >= CUDAVersion")}),
        ("request_gpus = 1\nrequire_gpus = A || B\ngpus_minimum_memory = 2 GB",
         {"GPUsMinMemory": 2048, "RequireGPUs": Expr("(A || B) && GlobalMemoryMb >= GPUsMinMemory")}),
        ("request_memory = 1 GB, 2 GB, 4 GB", {"RequestMemory": 1024, "RetryRequestMemory": Expr("{2048,4096}")}),
        ("retry_request_memory_max = 2 GB", {"RetryRequestMemory": Expr("{2048}")}),
        ("retry_request_memory_increase = 1 GB", {"NextRequestMemory": Expr("RequestMemory + 1024")}),
        ("retry_request_disk = 4 GB", {"RetryRequestDisk": Expr("{4194304}")}),
        ("starter_log = st.log", {"JobStarterLog": "/tmp/st.log"}),
        ("stream_input = true\ninput = /dev/zero", {"In": "/dev/zero", "StreamIn": True}),
        ("input = /on/the/machine\ntransfer_input = False",
         {"In": "/on/the/machine", "TransferIn": False, "StreamIn": None}),
        ("input = /dev/zero\ntransfer_input = true", {"In": "/dev/zero", "TransferIn": None, "StreamIn": False}),
        ("transfer_input = False", {"In": "/dev/null", "TransferIn": False, "StreamIn": None}),
        ("output_directory = results", {"OutputDirectory": "/tmp/results"}),
        ("docker_image = a\ndocker_override_entrypoint = false", {"DockerOverrideEntrypoint": False}),
        ("docker_image = a\ncontainer_service_names = web api\nweb_container_port = 80\napi_container_port = 81 + 1",
         {"ContainerServiceNames": "web api", "web_ContainerPort": 80, "api_ContainerPort": 82}),
        ("suspend_job_at_exec = true", {"SuspendJobAtExec": None}),
    ],
)  # fmt: skip
def test_commands_become_attributes(lines: str, expected: dict[str, Scalar | None]) -> None:
    """As in HTCondor; but CUDA's versions are counted as CUDA counts them."""
    head = "" if lines.startswith("shell") else HEAD
    ad = submission(f"{head}{lines}\nqueue\n").ad
    assert expected == {name: ad.get(name) for name in expected}


def test_directories_are_encrypted_where_machines_say_so() -> None:
    """No other machine gets the job."""
    ad = submission(f"{HEAD}encrypt_execute_directory = true\nqueue\n").ad
    assert ad["EncryptExecuteDirectory"] is True
    assert "TARGET.HasEncryptExecuteDirectory" in str(ad["Requirements"])


def test_common_input_is_input(tmp_path: Path) -> None:
    """It is kept on each machine for the next job as all input is."""
    for name in ("a", "b"):
        (tmp_path / name).touch()
    text = f"{HEAD}transfer_input_files = a\ntransfer_common_input = b\nqueue\n"
    assert "a,b" == submission(text, tmp_path).ad["TransferInput"]


def test_both_syntaxes_may_be_given_where_that_is_said() -> None:
    """The new one counts."""
    both = 'arguments = x  y\narguments2 = "z w"\nenvironment = A=1\nenvironment2 = "B=2"\n'
    found = submission(f"{HEAD}{both}allow_arguments_v1 = true\nallow_environment_v1 = true\nqueue\n").ad
    assert ("z w", "B=2", None) == (found["Arguments"], found["Environment"], found.get("Args"))
