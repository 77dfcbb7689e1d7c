"""
Submit descriptions drawn at random, over all forms of the language, and the directory in which they are read.

`drawn(seed)` is the same description for the same seed, everywhere: the vectors that HTCondor made of them belong to
these texts.  Every spelling of every command is in one of the first descriptions at least.
"""

import random
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

COUNT: Final = 300
"""Descriptions in the vectors."""

FILES: Final[Mapping[str, str]] = {
    "run.sh": "#!/bin/sh\nexec sleep 1\n",
    "list.sh": "#!/bin/sh\necho one 1\necho two, 2\n",
    "said.sh": "#!/bin/sh\necho 'said = from a program'\necho '+Said = 7'\n",
    "in.txt": "input\n",
    "key": "secret\n",
    "a.dat": "a" * 3000,
    "b.dat": "b" * 100,
    "dir/one.txt": "1\n",
    "dir/two.txt": "2\n",
    "dir/deep/three.txt": "3\n",
    "other/four.txt": "4\n",
    "words.txt": "alpha\n  beta  \n# not a comment\ngamma delta\n",
    "pairs.txt": "x 1\ny,2\n  z ,  3 and more\nalone\nu\x1f4\n",
    "more.inc": "included = yes\n+Included = 1\n",
    "image.sif": "image",
}
"""What stands in the directory of the description."""


def lay(directory: Path) -> None:
    """Write the files into an empty directory."""
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (directory / "results").mkdir()


TRUTHS: Final = ("true", "false", "True", "FALSE", "1", "0", "true && false", "yes")
EXPRESSIONS: Final = (
    "NumJobStarts > 3",
    "time() - QDate > 600",
    "false",
    "JobStatus == 5 && HoldReasonCode != 1",
)
NUMBERS: Final = ("0", "1", "17", "2+3", "$INT(num)")
TEXTS: Final = ("plain", "two words", '"quoted"', "with $(word)", "$(item)-$(Process)", "a'b", "$(Cluster).x")
PATHS: Final = ("results/x", "o.$(Process)", "results/$(word).txt", "$Fn(path).o")

SPELLINGS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "accounting_group": (("AccountingGroup",), ("physics", "physics.atlas")),
    "accounting_group_user": (("AcctGroupUser",), ("root",)),
    "allowed_execute_duration": (("AllowedExecuteDuration",), ("60", "3600")),
    "allowed_job_duration": (("AllowedJobDuration",), ("60", "2*3600")),
    "arguments": (
        ("Args",),
        ("1 2  3", "\"a 'b c' d\"", "$(item) $(Process)", '\\"q\\"', "x$(num)", "\"it''s\""),
    ),
    "arguments2": ((), ("\"a 'b c' d\"", '"one"')),
    "batch_id": (("JobBatchId",), TEXTS),
    "batch_name": (("JobBatchName",), TEXTS),
    "checkpoint_exit_code": (("SuccessCheckpointExitCode",), ("85", "80+5")),
    "concurrency_limits": (("ConcurrencyLimits",), ("B,a", "license:2, x", "A.b:1.5")),
    "concurrency_limits_expr": ((), ('"x,y"', 'strcat("lic:", RequestCpus)')),
    "container_target_dir": (("ContainerTargetDir",), ("/work", '"/w"')),
    "core_size": (("CoreSize",), ("0", "1000")),
    "cron_day_of_month": (("CronDayOfMonth",), ("1", "*/2")),
    "cron_day_of_week": (("CronDayOfWeek",), ("1-5", "0")),
    "cron_hour": (("CronHour",), ("3", "1-4")),
    "cron_minute": (("CronMinute",), ("*/10", "0,30")),
    "cron_month": (("CronMonth",), ("*", "1-6")),
    "deferral_prep_time": (("cron_prep_time", "CronPrepTime", "DeferralPrepTime"), ("60", "120")),
    "deferral_time": (("DeferralTime",), ("4000000000", "QDate + 60")),
    "deferral_window": (("cron_window", "CronWindow", "DeferralWindow"), ("60", "120")),
    "description": (("JobDescription",), TEXTS),
    "disk_usage": (("DiskUsage",), ("1000", "5000")),
    "docker_network_type": (("DockerNetworkType",), ("host", "none")),
    "docker_override_entrypoint": (("DockerOverrideEntrypoint",), ("true", "false")),
    "docker_pull_policy": (("DockerPullPolicy",), ("always",)),
    "dont_encrypt_input_files": (("DontEncryptInputFiles",), ("a.dat",)),
    "dont_encrypt_output_files": (("DontEncryptOutputFiles",), ("x",)),
    "email_attributes": (("EmailAttributes",), ("Cmd, Args", "Owner QDate")),
    "encrypt_execute_directory": (("EncryptExecuteDirectory",), ("true", "false")),
    "encrypt_input_files": (("EncryptInputFiles",), ("a.dat, b.dat",)),
    "encrypt_output_files": (("EncryptOutputFiles",), ("*",)),
    "environment": (
        ("env",),
        ("\"A=1 B='two words'\"", "A=1;B=two words", '"Q=""q"""', '"N=$(num) P=$(Process)"'),
    ),
    "environment2": ((), ('"C=3"',)),
    "erase_output_and_error_on_restart": (("EraseOutputAndErrorOnRestart",), TRUTHS),
    "error": (("stderr",), PATHS),
    "gpus_maximum_capability": (("GPUsMaxCapability",), ("8.6", "9.0")),
    "gpus_minimum_capability": (("GPUsMinCapability",), ("7.0", "8")),
    "gpus_minimum_memory": (("GPUsMinMemory",), ("4GB", "2000", "1.5 G")),
    "gpus_minimum_runtime": (("GPUsMinRuntime",), ("11.2", "12")),
    "hold": ((), ("true", "false")),
    "hold_kill_sig": (("HoldKillSig",), ("SIGUSR1", "10", "SIGUSR2")),
    "image_size": (("ImageSize",), ("2000", "2 MB")),
    "initialdir": (("initial_dir", "job_iwd", "Iwd"), ("dir", "$(here)/other")),
    "input": (("stdin",), ("in.txt", "/dev/null")),
    "job_ad_information_attrs": (("JobAdInformationAttrs",), ("Cmd,Args",)),
    "job_lease_duration": (("JobLeaseDuration",), ("600", "10", "0")),
    "job_machine_attrs": (("JobMachineAttrs",), ("Name,Cpus", "Machine")),
    "job_machine_attrs_history_length": (("JobMachineAttrsHistoryLength",), ("3", "0")),
    "job_max_vacate_time": (("JobMaxVacateTime",), ("30", "RequestCpus * 10")),
    "keep_claim_idle": (("KeepClaimIdle",), ("20", "300")),
    "kill_sig": (("KillSig",), ("SIGINT", "15", "2")),
    "kill_sig_timeout": (("KillSigTimeout",), ("5", "60")),
    "leave_in_queue": (("LeaveJobInQueue",), EXPRESSIONS),
    "log": (("UserLog",), ("job.log", "$(word).log", "/tmp/$(Cluster).log")),
    "log_xml": (("UserLogUseXML",), TRUTHS),
    "manifest": (("ManifestDesired",), TRUTHS),
    "manifest_dir": (("ManifestDir",), ("m",)),
    "match_list_length": (("LastMatchListLength",), NUMBERS),
    "max_job_retirement_time": (("MaxJobRetirementTime",), ("60", "RequestCpus * 5")),
    "max_retries": (("JobMaxRetries",), ("3", "0")),
    "max_transfer_input_mb": (("MaxTransferInputMB",), ("10", "RequestDisk / 2")),
    "max_transfer_output_mb": (("MaxTransferOutputMB",), ("10", "-1")),
    "mount_under_scratch": (("MountUnderScratch",), ("/tmp", '"/a,/b"')),
    "next_job_start_delay": (("NextJobStartDelay",), ("5", "1+1")),
    "nice_user": (("NiceUser",), ("true", "false")),
    "noop_job": (("IsNoopJob",), ("true", "ProcId > 0")),
    "noop_job_exit_code": (("NoopJobExitCode",), ("3",)),
    "noop_job_exit_signal": (("NoopJobExitSignal",), ("9",)),
    "notification": (("JobNotification",), ("never", "Always", "complete", "ERROR")),
    "notify_user": (("NotifyUser",), ("a@example.org",)),
    "on_exit_hold": (("OnExitHold",), ("ExitCode == 3", "false")),
    "on_exit_hold_reason": (("OnExitHoldReason",), ('"bad"', 'strcat("code ", ExitCode)')),
    "on_exit_hold_subcode": (("OnExitHoldSubCode",), ("7",)),
    "on_exit_remove": (("OnExitRemove",), ("ExitCode == 0", "ExitBySignal == false || true")),
    "output": (("stdout",), PATHS),
    "output_destination": (("OutputDestination",), ("https://example.org/out",)),
    "output_directory": (("OutputDirectory",), ("results",)),
    "periodic_hold": (("PeriodicHold",), EXPRESSIONS),
    "periodic_hold_reason": (("PeriodicHoldReason",), ('"too long"', "HoldReason")),
    "periodic_hold_subcode": (("PeriodicHoldSubCode",), ("5", "$(num)")),
    "periodic_release": (("PeriodicRelease",), EXPRESSIONS),
    "periodic_remove": (("PeriodicRemove",), EXPRESSIONS),
    "periodic_vacate": (("PeriodicVacate",), EXPRESSIONS),
    "priority": (("prio", "JobPrio"), ("5", "-3", "2*3", "$(num)")),
    "rank": (("preferences",), ("Memory", 'TARGET.Cpus * 2 + (Arch == "X86_64")', "0")),
    "remote_initialdir": (("RemoteIwd",), ("/data",)),
    "remove_kill_sig": (("RemoveKillSig",), ("SIGHUP", "1")),
    "request_cpus": (("RequestCpus",), ("2", "1", "RequestMemory / 1024", "undefined")),
    "request_disk": (("RequestDisk",), ("10 MB", "2G", "100000", "undefined")),
    "request_gpus": (("RequestGPUs",), ("1", "2", "0")),
    "request_memory": (
        ("RequestMemory",),
        ("512", "1.5 GB", "2G", "300M", "RequestCpus * 1000", "undefined"),
    ),
    "require_gpus": (("RequireGPUs",), ("Capability >= 7.5", 'DeviceName =?= "A100"')),
    "requirements": (
        (),
        (
            "Memory > 100",
            'OpSysAndVer == "AlmaLinux9" || Cpus > 4',
            "TARGET.HasFileTransfer && Disk > 5",
            '(Arch == "aarch64")',
            'regexp("a.*", Machine) && $(num) > 1',
            'FileSystemDomain == "here"',
        ),
    ),
    "retry_request_disk": ((), ("2 GB", "1000000, 2000000")),
    "retry_request_memory": ((), ("2 GB", "3G, 4G", "RequestMemory * 2")),
    "retry_request_memory_increase": ((), ("1 GB", "RequestMemory * 2")),
    "retry_request_memory_max": ((), ("8 GB",)),
    "retry_until": ((), ("3", "ExitCode > 5", "1+1")),
    "run_as_owner": (("RunAsOwner",), TRUTHS),
    "shell": ((), ("echo hello; exit $(num)", 'echo "hi" > x')),
    "should_transfer_files": (("ShouldTransferFiles",), ("YES", "no", "IF_NEEDED", "true")),
    "skip_if_dataflow": (("SkipIfDataflow",), TRUTHS),
    "stack_size": (("StackSize",), ("1000",)),
    "starter_debug": (("JobStarterDebug",), ("D_FULLDEBUG", '"D_ALL"')),
    "starter_log": (("JobStarterLog",), ("starter.log", "results/s.log")),
    "stream_error": (("StreamErr",), TRUTHS),
    "stream_input": (("StreamIn",), TRUTHS),
    "stream_output": (("StreamOut",), TRUTHS),
    "submit_event_notes": (("SubmitEventNotes",), TEXTS),
    "submit_event_notes_attrs": (("SubmitEventNotesAttrs",), ("Cmd,Args",)),
    "submit_event_user_notes": (("SubmitEventUserNotes",), TEXTS),
    "success_exit_code": (("JobSuccessExitCode",), ("0", "7")),
    "transfer_checkpoint_files": (("TransferCheckpoint",), ("state, more/",)),
    "transfer_executable": (("TransferExecutable",), TRUTHS),
    "transfer_input": (("TransferIn",), TRUTHS),
    "transfer_input_files": (
        ("TransferInputFiles", "TransferInput"),
        (
            "$(here)/a.dat",
            "$(here)/a.dat, $(here)/b.dat",
            "$(here)/dir/",
            '"$(here)/b.dat"',
            "https://example.org/x",
        ),
    ),
    "transfer_output_files": (("TransferOutputFiles", "TransferOutput"), ("x", "x, y/z ,w", '""')),
    "transfer_output_remaps": (("TransferOutputRemaps",), ('"x=y"', '"a = b; c=d"')),
    "transfer_plugins": (("TransferPlugins",), ("xyz=$(here)/run.sh",)),
    "ulog_execute_attrs": (("UserLogExecuteEventAttrs",), ("Cpus", "Cpus,Memory")),
    "universe": (("JobUniverse",), ("vanilla", "Vanilla", "5")),
    "want_graceful_removal": (("WantGracefulRemoval",), ("true", "JobPrio > 3")),
    "want_io_proxy": (("WantIOProxy",), TRUTHS),
    "when_to_transfer_output": (("WhenToTransferOutput",), ("ON_EXIT", "on_exit", "ON_EXIT_OR_EVICT")),
}
"""Each command that is carried out: HTCondor's other spellings of it, and values."""

UNKNOWN_SPELLINGS: Final = ("AcctGroup", "Universe2", "In", "Out", "Err", "DockerOverrideEntry")
"""What HTCondor takes for macros that nothing uses."""

DEFINED: Final = (
    "word = hello",
    "num = 2",
    "path = /a/b.c/d.tar.gz",
    "list = r,s, t",
    "real = 3.75",
    "truth = true",
    "joined = $(word)-$(num)",
    "expr = $(num)*2",
    "blank =",
)

MACROS: Final = (
    "word = good\\\nday",
    "num = 7",
    "path = plain",
    "path = ../up/name.txt",
    "joined = $(joined)+",
    "item = own",
    "later = $(latest)\nlatest = late",
)

USES: Final = (
    "$(word)", "$(joined)", "$(missing:dflt)", "$(blank:empty)", "$(missing:$(word))", "$(missing)", "$(later)",
    "$Fp(path)", "$Fd(path)", "$Fdb(path)", "$Fn(path)", "$Fx(path)", "$Fxb(path)", "$Fnx(path)", "$Fdd(path)",
    "$Fpnx(path)", "$F(path)", "$Fqnx(path)", "$Fqa(path)", "$Fw(path)", "$Fpb(path)", "$Fdn(path)", "$Fnb(path)",
    "$Ff(path)", "$Ff(/x/../y)", "$Fd(/abs)", "$Fp(plain)", "$Fd(plain)", "$Fx(plain)", "$Fdd(/a/b)", "$Fd(a/b/)",
    "$DIRNAME(path)", "$BASENAME(path)", "$BASENAME(path,.gz)", "$BASENAME(path,.tar.gz)", "$DIRNAME(plain)",
    "$INT(num)", "$INT(expr)", "$INT(num,%03d)", "$INT(real)", "$INT(num,x%dx)", "$INT(5)", "$INT(truth)",
    "$REAL(real)", "$REAL(num)", "$REAL(real,%.1f)", "$REAL(expr)", "$REAL(real,%.0f)", "$REAL(num,%e)", "$REAL(truth)",
    "$STRING(word)", "$STRING(real)", "$STRING(expr)", "$STRING(num)", "$STRING(word,%10s)", "$STRING(truth)",
    "$STRING(joined)", "$STRING(list)", "$STRING(missing)",
    "$EVAL(expr)", "$EVAL(real)", "$EVAL(missing)", "$EVAL(truth)",
    "$SUBSTR(word,1)", "$SUBSTR(word,1,2)", "$SUBSTR(word,-2)", "$SUBSTR(word,0,-1)", "$SUBSTR(word,9)", "$SUBSTR(path,2,4)",
    "$CHOICE(0,a,b)", "$CHOICE(1,list)", "$CHOICE(2,list)", "$CHOICE(1,x,y,z)",
    "$ENV(KNOWN)", "$ENV(UNKNOWN_TO_ALL)", "$ENV(UNKNOWN_TO_ALL:d)",
    "$(DOLLAR)", "$(DOLLAR)(word)", "$$(Name)", "$$(Name:none)", "$word", "$(un closed", "$NOSUCH(word)", "$(a b)",
    "$(Process)", "$(Step)", "$(ItemIndex)", "$(Row)", "$(Cluster)", "$(JobId)", "$(Item)", "$(MY.Extra)", "$(MY.None:n)",
)  # fmt: skip

CUSTOM: Final = (
    '+Extra = "text"', "+Extra = 5", "MY.Extra = 1 + 2", "my.Extra = undefined", '+Extra = "$(word) $(Process)"',
    '+Extra = { 1, "a" }', "+Extra = [ x = 1; ]", "+RequestMemory = 77", "+Requirements = true", "+Extra = $(num)",
    "+JobPrio = 9", "+Extra =", 'MY.WantNames = strcat(Cmd, "x")', "+Rank = Memory", '+Iwd = "/elsewhere"',
)  # fmt: skip

CONDITIONS: Final = (
    "true", "false", "yes", "no", "1", "0", "5", "! true", "!false", "defined word", "defined missing", "! defined num",
    "defined MY.Extra", "version >= 8.0", "version > 99.1", "version < 24.1.0", "$(truth)", "$(num)", "$(missing)",
    "version == 8.1.6", "defined true",
)  # fmt: skip

QUEUES: Final = (
    "queue", "Queue 2", "queue 3", "queue 1+1", "queue $(num)", "queue 0",
    "queue in (a b, c)", "queue item in (a, b)", "queue 2 item in (a b)", "queue item in a b, c", "queue in(x)",
    "queue item in (\n a\n b, c\n)", "queue item in (a\n# not an item\n b )",
    "queue item in [1:] (a b c)", "queue item in [:2] (a b c)", "queue item in [::2] (a b c d e)",
    "queue item in [-2:] (a b c)", "queue item in [1] (a b c)", "queue item in [:-1] (a b c)", "queue item in [1:3:2] (a b c d)",
    "queue item in [ 1 : 2 ] (a b c)", "queue item in [5:] (a b c)",
    "queue item,other in (a b)", "queue item from (\n a\n b c\n\n # no\n d\n)", "queue item from words.txt",
    "queue item,other from pairs.txt", "queue item, other,third from (\n1 2 3 4\n1,2\n  5\t6 , 7\n)", "queue 2 item from words.txt",
    "queue item,other from ./list.sh |", "queue from (\nx y\n)", "queue item from [1:] words.txt", "queue item other from pairs.txt",
    "queue item from ( a b )", "queue FROM words.txt",
    "queue item matching *.dat", "queue item matching files *.dat *.sif", "queue item matching dirs *", "queue item matching any d*",
    "queue item matching (*.dat dir/*)", "queue item matching dir", "queue matching files dir/*.txt", "queue 2 item matching files [1:] *.dat",
    "queue item matching files nothing*", "queue item matching *",
    "queue arguments in (10s, 20s)", "queue args in (1 2)", "queue request_memory in (512, 1GB)", "queue input,arguments from (\n $(here)/in.txt a b\n , c\n)",
    "queue MY.Extra in (1 2)", "queue executable in (run.sh /bin/sleep)", "queue 2 priority in (5 6)", "queue request_gpus in (0 1)",
    "queue initialdir matching dirs (dir other)", "queue transfer_input_files matching files *.dat", "queue output,error from (\no1,e1\no2\n)",
    "queue 2\narguments = second\nqueue 1", "arguments = $(item)\nqueue item in (a b)\nqueue 1",
    "queue +Extra in (1 2)", "queue -1", "queue x y", "queue item in ()", "queue item in (a $(word) $(num))", "queue item from nosuch.txt",
)  # fmt: skip

MATCHED: Final = {
    "job_machine_attrs", "should_transfer_files", "shell", "universe", "request_gpus", "require_gpus", "on_exit_hold",
}  # fmt: skip


def drawn(seed: int) -> str:
    """The description of this number."""
    source = random.Random(seed)
    lines = ["here = $ENV(HERE)", *(line for line in DEFINED if source.random() < 0.9)]
    lines += source.sample(MACROS, source.randint(0, 3))
    lines.append(
        source.choice(
            ("executable = run.sh", "Executable = /bin/sleep", "executable = $(here)/run.sh", "Cmd = run.sh")
        )
    )
    body = _commands(source, seed) + [
        f"+Use{n} = {_quoted(source.choice(USES))}" for n in range(source.randint(1, 4))
    ]
    if source.random() < 0.5:
        body.append(source.choice(CUSTOM))
    if source.random() < 0.4:
        body.append(_conditional(source))
    if source.random() < 0.12:
        body.append(
            source.choice(
                (
                    "include : more.inc",
                    "include ifexist : nosuch.inc",
                    "include command : ./said.sh",
                    "include : ./said.sh |",
                )
            )
        )
    if source.random() < 0.15:
        body.append(f"{source.choice(UNKNOWN_SPELLINGS)} = something")
    if source.random() < 0.1:
        body.append("# a remark")
    if source.random() < 0.1:
        body.append("long @=end\nseveral\nlines\n@end")
    source.shuffle(body)
    queue = QUEUES[seed % len(QUEUES)] if seed < 2 * len(QUEUES) else source.choice(QUEUES)
    return "\n".join([*lines, *body, queue]) + "\n"


def _quoted(use: str) -> str:
    """Inside of a string, or as it is where it is a string already."""
    return use if use.startswith("$Fq") and "a" not in use.partition("(")[0] else f'"{use}"'


def _commands(source: random.Random, seed: int) -> list[str]:
    """Some in whichever spelling, and those whose turn it is."""
    pairs = [(name, spelling) for name, (others, _) in SPELLINGS.items() for spelling in (name, *others)]
    turn = [pairs[(seed + n * len(pairs) // 2) % len(pairs)] for n in range(2)]
    some = source.sample(pairs, source.randint(1, 4))
    chosen = dict([*some, *turn])
    for one, other in (
        ("arguments", "shell"),
        ("arguments2", "shell"),
        ("arguments2", "arguments"),
        ("environment2", "environment"),
    ):
        if one in chosen and other in chosen:
            del chosen[other if one in dict(turn) else one]
    if any(name.startswith(("gpus_", "require_gpus")) for name in chosen):
        chosen.setdefault("request_gpus", "request_gpus")
    lines: list[str] = []
    for name, spelling in chosen.items():
        value = source.choice(SPELLINGS[name][1])
        written = source.choice((spelling, spelling, spelling.upper())) if source.random() < 0.3 else spelling
        lines.append(f"{written}{source.choice((' = ', '=', '  =   '))}{value}")
    return lines


def _conditional(source: random.Random) -> str:
    parts = [f"if {source.choice(CONDITIONS)}", "+Branch = 1"]
    if source.random() < 0.4:
        parts += [f"elif {source.choice(CONDITIONS)}", "+Branch = 2"]
    if source.random() < 0.3:
        parts += ["if defined num", "+Inner = 1", "else", "+Inner = 2", "endif"]
    if source.random() < 0.5:
        parts += ["else", "+Branch = 3"]
    return "\n".join([*parts, "endif"])
