"""`kettle convert condor_config`: HTCondor's text rules are kept, and nothing is lost without a word."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kettle.runtime.authorization import TABLE, Authorization
from kettle.runtime.settings import fields_of
from kettle.submit.configuration_reader import CondorReader
from kettle_services.cli.__main__ import main
from kettle_services.cli.condor_config.conversion import convert, render
from kettle_services.cli.condor_config.families import FAMILIES
from kettle_services.cli.condor_config.tables import KNOBS, METAKNOBS
from kettle_services.cli.configuration.check import check
from kettle_services.cli.configuration.services import SETTINGS
from kettle_services.schedd.settings import ScheddSettings

ACCESS = """
UID_DOMAIN = physics.example.org
ALLOW_READ = *
ALLOW_WRITE = *@$(UID_DOMAIN), ada@other.org
ALLOW_WRITE = $(ALLOW_WRITE) 10.0.0.0/8
SCHEDD.ALLOW_WRITE = bob@*/*.example.org
DENY_WRITE_SCHEDD = eve@*
ALLOW_ADVERTISE_STARTD = condor@$(UID_DOMAIN)/10.*
CERTIFICATE_MAPFILE = /etc/condor/condor_mapfile
"""
RULES = r"""
K1 = a && \
   # a comment that goes on \
   b
K2 = $(K3) x
K3 = later
K4 = $(K4) more
K4 = $(K4), most
K5 = $(nothing:default $(K3))
K6 = $INT(K7) $INT(K7,%05d)
K7 = 3 * 4
K8 = $ENV(HOME) $ENV(NOT_SET_ANYWHERE:there)
if defined K1
K9 = yes
else
K9 = no
endif
if version >= 8.1.6
 if false
K10 = old
 elif ! defined K99
K10 = new
 endif
else
K10 = older
endif
K11 @=end
 line 1
# a comment
 line 2
@end
TOOL.K12 = of the tool
K12 = of all
K13 = $(DOLLAR)(x) $$(y) $(K11:z)
K14 = $Fn(K15) $Fp(K15) $BASENAME(K15) $DIRNAME(K15)
K15 = /a/b/c.txt
K16 = $CHOICE(1, a, b, c) $SUBSTR(K3,1,2) $EVAL(K7)
K17=no blanks
K18 = $(k3) in any case
K19 = "quoted # no comment"
K20 = x # no comment either
if $(K99:false)
K21 = t
else
K21 = f
endif
use FEATURE : PartitionableSlot(3, 25%)
"""


def test_macros_mean_what_htcondor_says(tmp_path: Path) -> None:
    """Every knob of a file with all forms has the value that HTCondor's own reader gives it."""
    if find_spec("htcondor2") is None:
        pytest.skip("the reference implementation is not installed")
    file = tmp_path / "condor_config"
    file.write_text(RULES)
    ask = "import htcondor2, json, sys; print(json.dumps({k: htcondor2.param.get(k) for k in sys.argv[1:]}, default=str))"
    reader = CondorReader(os.environ, KNOBS.macros, METAKNOBS)
    reader.read_file(file)
    assert [] == reader.complaints
    names = sorted(knob.name for knob in reader.knobs.values() if "." not in knob.name)
    told = subprocess.run(
        [sys.executable, "-c", ask, *names],
        env={**os.environ, "CONDOR_CONFIG": str(file)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    expected = {name: str(value) for name, value in json.loads(told.stdout).items()}
    assert {"K10": "new", "SLOT_TYPE_3": "25%"}.items() <= expected.items()
    expander = reader.expander("TOOL")
    assert expected == {name: expander.value(name) for name in names}


SITE = """
use ROLE : Personal
MyStart = TARGET.Owner =!= "eve" && KeyboardIdle > 10 * $(MINUTE)
START = $(MyStart)
STARTD.RANK = TARGET.Owner == "ann"
SCHEDD.CLAIM_WORKLIFE = 60
NUM_CPUS = 2 * 2
ALIVE_INTERVAL = 5 * $(MINUTE)
MAX_CLAIM_ALIVES_MISSED = 4
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = cpus=50%, mem=1024, licenses=auto
SLOT_TYPE_1_PARTITIONABLE = TRUE
MACHINE_RESOURCE_licenses = 4
MODIFY_REQUEST_EXPR_REQUESTMEMORY = quantize(RequestMemory, {512})
STARTD_ATTRS = Rack, Score
Rack = "r7"
Score = KFlops * 2
GROUP_NAMES = phys, phys.higgs
GROUP_QUOTA_phys = 10
GROUP_QUOTA_DYNAMIC_phys.higgs = 0.5
MATLAB_LIMIT = 10
JOB_TRANSFORM_NAMES = Big
JOB_TRANSFORM_Big @=end
  REQUIREMENTS RequestMemory > 4096
  SET Big true
@end
SUBMIT_REQUIREMENT_NAMES = mem
SUBMIT_REQUIREMENT_mem = RequestMemory < 100000
SYSTEM_PERIODIC_HOLD_NAMES = runs
SYSTEM_PERIODIC_HOLD_runs = NumJobStarts > 10
SYSTEM_PERIODIC_HOLD_runs_SUBCODE = 3
PREEMPTION_REQUIREMENTS = RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2
gpu_HOOK_PREPARE_JOB = /opt/prepare --fast
STARTER_JOB_ENVIRONMENT = "SITE=here WORDS='two words'"
STARTD_CRON_JOBLIST = health, lost
STARTD_CRON_health_EXECUTABLE = /opt/health
STARTD_CRON_health_ARGS = --short
STARTD_CRON_health_PERIOD = 5m
STARTD_CRON_health_PREFIX = Site_
STARTD_CRON_health_MODE = WaitForExit
STARTD_CRON_lost_EXECUTABLE = health
QUEUE_SUPER_USERS = root, condor, ada
include : inc.conf
"""


def test_a_site_is_carried_over(tmp_path: Path) -> None:
    """
    Each kind of knob becomes its setting, the file passes the check, and each setting names knob, file and line.
    """
    (tmp_path / "inc.conf").write_text("LOCAL_CONFIG_DIR = %s\n" % (tmp_path / "d"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "10-more").write_text("PRIORITY_HALFLIFE = 24 * $(HOUR)\n")
    (tmp_path / "d" / "20-old~").write_text("PRIORITY_HALFLIFE = 1\n")
    file = tmp_path / "condor_config"
    file.write_text(SITE)

    conversion = convert([file], {})

    assert {
        "master.daemon_list": [
            "collector",
            "accounting",
            "gateway",
            "negotiator",
            "startd",
            "schedd",
            "shadow",
            "dagman",
        ],
        "startd.start": 'TARGET.Owner =!= "eve" && KeyboardIdle > 10 * 60',
        "startd.rank": 'TARGET.Owner == "ann"',
        "startd.num_cpus": 4,
        "startd.slot_types": [
            {
                "count": 1,
                "partitionable": True,
                "cpus": "50%",
                "memory": 1024,
                "resources": {"licenses": "auto"},
            }
        ],
        "startd.machine_resources": {"licenses": 4},
        "startd.modify_request_expr": {"Memory": "quantize(RequestMemory, {512})"},
        "startd.attributes": {"Rack": "r7"},
        "startd.probes": [
            {
                "kind": "program",
                "name": "health",
                "command": ["/opt/health", "--short"],
                "period": 300.0,
                "prefix": "Site_",
            }
        ],
        "startd.job_hooks": {"gpu": {"prepare_job": ["/opt/prepare", "--fast"]}},
        "startd.job_environment": {"SITE": "here", "WORDS": "two words"},
        "startd.user_preemption": True,
        "schedd.claim_worklife": 60.0,
        "schedd.alive_interval": 300.0,
        "schedd.lease": 1200.0,
        "schedd.job_transforms": [
            {"name": "Big", "transform": "REQUIREMENTS RequestMemory > 4096\nSET Big true"}
        ],
        "schedd.submit_requirements": [{"name": "mem", "expression": "RequestMemory < 100000"}],
        "schedd.system_periodic_hold": [{"expression": "NumJobStarts > 10", "name": "runs", "subcode": "3"}],
        "schedd.queue_super_users": ["ada"],
        "negotiator.groups": {"phys": {"quota": 10.0}, "phys.higgs": {"quota_dynamic": 0.5}},
        "negotiator.concurrency_limits": {"matlab": 10.0},
        "negotiator.priority_halflife": 86400.0,
        "negotiator.preemption_requirements": "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2",
    } == {f"{each.service}.{each.setting}": each.value for each in conversion.carried}
    new = tmp_path / "kettle.toml"
    new.write_text(render(conversion, [file]))
    assert [] == [str(each) for each in check({"KETTLE_HOME": "/nonexistent"}, new) if not each.warning]
    assert f"# START, {file}:4\n" in new.read_text()


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("START = TARGET.Owner ==", "START", "start of [startd] would be refused: is no expression"),
        ("NEGOTIATOR_INTERVAL = soon", "NEGOTIATOR_INTERVAL", "'soon' is not a number"),
        ("ALLOW_CLIENT = *", "ALLOW_CLIENT", "certificate of the bus"),
        ("STARTER.ALLOW_READ = *", "STARTER.ALLOW_READ", "there is no service STARTER"),
        ("ALLOW_READ = a/", "ALLOW_READ", "has nothing on one side of its /"),
        ("SHADOW_FANCY = 3", "SHADOW_FANCY", "Kettle has no such setting"),
        ("RANK = $(UNKNOWN) + 1", "RANK", "$(UNKNOWN) is set nowhere"),
        ("DAEMON_LIST = MASTER KBDD STARTD", "DAEMON_LIST", "KBDD is not needed"),
        ("ap1.START = false", "ap1.START", 'write it into [master.environment."ROLE.ap1"]'),
        ("use FEATURE : Nothing", "use FEATURE : Nothing", "this template is not known here"),
        ("use SECURITY : Strong", "use SECURITY : Strong", "keys of their own"),
        ("if defined", "if defined", "is not a condition"),
        ("if true\nRANK = 1", "if", "it has no endif"),
        ("include : nowhere", "include : nowhere", "there is no such file"),
        ("what is this", "what is this", "neither NAME = VALUE nor a statement"),
        ("RANK = $(A)\nA = $(B)\nB = $(A)", "RANK", "is defined by itself"),
        ("STARTER_JOB_ENVIRONMENT = X", "STARTER_JOB_ENVIRONMENT", "X"),
        ("STARTD_ATTRS = X\nX = Y + 1", "X", "attributes of [startd] are constants"),
    ],
)
def test_what_is_not_carried_over_is_listed(tmp_path: Path, text: str, what: str, why: str) -> None:
    """With its place and the reason; and none of it is in the new file."""
    file = tmp_path / "condor_config"
    file.write_text(f"# first\n{text}\n")
    conversion = convert([file], {})
    found = [each for each in conversion.not_carried if each.what == what and why in each.why]
    assert found, [str(each) for each in conversion.not_carried]
    assert found[0].place.startswith(f"{file}:")


def test_allow_and_deny_lists_are_carried_over(tmp_path: Path) -> None:
    """By level and service, with macros expanded; the new file is accepted by all services."""
    file, new = tmp_path / "condor_config", tmp_path / "kettle.toml"
    file.write_text(ACCESS)
    conversion = convert([file], {})
    assert [] == [str(each) for each in conversion.not_carried]
    new.write_text(render(conversion, [file]))
    assert "# ALLOW_WRITE, " in new.read_text()
    said = ScheddSettings.load("schedd", environ={}, toml_path=new).authorization
    assert said.allow == {
        "READ": ("*",),
        "WRITE": ("*@physics.example.org", "ada@other.org", "10.0.0.0/8"),
        "WRITE_SCHEDD": ("bob@*/*.example.org",),
        "ADVERTISE_STARTD": ("condor@physics.example.org/10.*",),
    }
    assert ({"WRITE_SCHEDD": ("eve@*",)}, "physics.example.org") == (said.deny, said.domain)
    assert ("/etc/condor/condor_mapfile",) == said.map_files


def test_the_command_prints_a_file_and_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file goes to standard output, what is not in it to standard error."""
    file = tmp_path / "condor_config"
    file.write_text("START = true\nSHARED_PORT_PORT = 1\n")
    assert 0 == main(["convert", "condor_config", str(file)])
    said = capsys.readouterr()
    assert "[startd]\n# START, " in said.out
    assert f"not carried over: {file}:2: SHARED_PORT_PORT: " in said.err
    assert 2 == main(["convert", "condor_config", "/nonexistent"])


def test_every_template_can_be_carried_over(tmp_path: Path) -> None:
    """What a template stands for is understood here, but for arguments that are a site's own."""
    needs = {"want_hold_if": "(A, 1, why)", "preempt_if": "(A)"}
    for category, names in METAKNOBS.items():
        for name in names:
            file = tmp_path / f"{category}.{name}"
            file.write_text(f"A = false\nuse {category} : {name}{needs.get(name, '')}\n")
            left = [str(each) for each in convert([file], {}).not_carried if each.what != "A"]
            assert [] == left, name


def test_the_tables_name_settings() -> None:
    """A setting that is renamed is renamed there too."""
    for knob in KNOBS.settings:
        for setting in [*KNOBS.settings_of(knob), *FAMILIES]:
            service, _, name = setting.partition(".")
            fields = Authorization.__struct_fields__ if service == TABLE else fields_of(SETTINGS[service])
            assert name in fields, setting
