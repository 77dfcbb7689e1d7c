import pytest

from kettle.worker_pools.comparison import changes, digest
from kettle.worker_pools.faults import PoolFileRefused
from kettle.worker_pools.reading import pool_of, read_pool
from kettle_wire.examination import Examination, Notices
from kettle_wire.worker_pools import Market, Offer, PoolKind, WorkerPool

CLOUD = """\
name = "cloud"
kind = "shared"
max = 12
idle = "10m"
life = "1d12h"
budget = "5 EUR"

[[offer]]
name = "small"
provider = "process"
cpus = 2
memory = "16 GB"
disk = "0.5 TB"
price = 0.05
boot = "90s"
market = "spot"
start = "TARGET.RequestCpus < 2"
attributes = { Site = "north", HasFastDisk = true, Racks = 3 }

[[offer]]
name = "large"
provider = "process"
cpus = 16
memory = 65536
price = "0.4 EUR"
"""


def faults_of(text: str) -> list[str]:
    """What is wrong with a file, in lines."""
    with pytest.raises(PoolFileRefused) as refused:
        read_pool(text, "p.toml")
    return [str(fault) for fault in refused.value.faults]


def test_a_file_says_a_pool_in_the_forms_that_people_write() -> None:
    """
    Times are seconds, sizes megabytes, money has its currency, and values of attributes are expressions.
    """
    expected = WorkerPool(
        name="cloud",
        kind=PoolKind.SHARED,
        max=12,
        idle=600.0,
        life=129_600.0,
        budget=5.0,
        currency="EUR",
        offers=[
            Offer(
                name="small",
                provider="process",
                cpus=2,
                memory=16_384,
                disk=524_288,
                price=0.05,
                currency="EUR",
                boot=90.0,
                market=Market.SPOT,
                start="TARGET.RequestCpus < 2",
                attributes={"Site": '"north"', "HasFastDisk": "true", "Racks": "3"},
            ),
            Offer(name="large", provider="process", cpus=16, memory=65_536, price=0.4, currency="EUR"),
        ],
    )
    assert expected == read_pool(CLOUD, "cloud.toml")


def test_all_faults_are_told_at_once_each_with_its_line() -> None:
    """Misspelt keys and words with the nearest known one, values of the wrong form, keys that are missing."""
    assert faults_of(
        """\
nmae = "cloud"
kind = "sharde"
idle = "5 fortnights"
[[offer]]
name = "Small"
provider = "process"
cpu = 2
memory = "much"
start = "TARGET.Foo =="
[[offer]]
name = "other"
provider = "process"
cpus = 0
memory = "1 GB"
[offer.attributes]
"a b" = 1
"""
    ) == [
        "p.toml:1: a pool has no key 'nmae'; did you mean name?",
        'p.toml:2: kind: "sharde" is none of static, shared, dedicated, user; did you mean shared?',
        'p.toml:3: idle: "5 fortnights" is no time: write seconds, or "90s", "10m", "2h30m", "7d"',
        "p.toml: a pool must have the key 'name'",
        'p.toml:5: name: "Small" is no name: it has small letters, digits and -, begins with a letter, and is no longer than 32',
        "p.toml:7: an offer has no key 'cpu'; did you mean cpus?",
        'p.toml:8: memory: "much" is no size: write MB, or "512 MB", "16 GB", "1.5 TB"',
        "p.toml:9: start: is no expression: expected an operand, found the end, at line 1, column 14: 'TARGET.Foo =='",
        "p.toml:4: an offer must have the key 'cpus'",
        "p.toml:13: cpus: 0 is not a whole number from 1 to 65536",
        "p.toml:15: attributes: 'a b' cannot be an attribute: it has letters, digits and _, and begins with no digit",
    ]


@pytest.mark.parametrize(
    ("line", "instead", "expected"),
    [
        ("max = 12", "max = 12\nmin = 14", "p.toml:4: min: 14 machines are more than max allows (12)"),
        ('kind = "shared"', 'kind = "user"', "p.toml:2: kind: a pool of kind user needs owners or groups, whose jobs alone it runs"),
        ('budget = "5 EUR"\n', "", 'p.toml:13: price: 0.05 of which currency? Write "0.05 EUR", or currency = "EUR"'),
        ('"0.4 EUR"', '"0.4 USD"', "p.toml:25: price: USD, but EUR elsewhere: prices of one pool are compared, so they need one currency"),
        ('"16 GB"', '"64 MB"', "p.toml:12: memory: 64 MB is too little for any job: one that says nothing of it asks for 128 MB"),
        ('"TARGET.RequestCpus < 2"', "false", "p.toml:17: start: no job would ever run on its machines"),
        ('"large"', '"small"', "p.toml:21: name: two offers are called small"),
        ('"90s"', '"3d"', "p.toml:15: boot: small: machines are gone after 1d12h, before they are ready (3d)"),
    ],
)  # fmt: skip
def test_a_pool_that_cannot_work_is_refused(line: str, instead: str, expected: str) -> None:
    """Each rule about what fits together names the line."""
    assert [expected] == faults_of(CLOUD.replace(line, instead))


def test_a_file_that_is_no_toml_is_refused_with_the_place() -> None:
    """The reader of TOML says the line."""
    assert faults_of("name = \n")[0].startswith("p.toml: it is no TOML: Invalid value (at line 1, column 8)")


def test_a_pool_that_is_in_no_file_is_refused_by_its_keys() -> None:
    """Keys of a file may come as JSON, too, and the place is then where they stand in it."""
    with pytest.raises(PoolFileRefused) as refused:
        pool_of({"name": "a", "offer": [{"name": "b"}]}, lambda keys: "/" + "/".join(keys))
    assert {"/offer/0"} == {fault.where for fault in refused.value.faults}


def test_the_digest_is_of_what_a_file_says() -> None:
    """Another form of the same value changes nothing; another value does."""
    pool = read_pool(CLOUD, "cloud.toml")
    assert digest(pool) == digest(read_pool(CLOUD.replace('"10m"', "600"), "other.toml"))
    assert digest(pool) != digest(read_pool(CLOUD.replace('"10m"', '"11m"'), "cloud.toml"))


def test_changes_are_told_as_files_say_them() -> None:
    """Of two forms of a pool, each key that differs, and offers that come and go."""
    before = read_pool(CLOUD, "cloud.toml")
    after = read_pool(
        CLOUD.replace("max = 12", "max = 20").replace('"16 GB"', '"32 GB"').replace('"large"', '"huge"'), ""
    )
    assert [] == changes(before, before)
    assert [
        "max: 12 -> 20",
        "offer small: memory: 16 GB -> 32 GB",
        "offer huge is new",
        "offer large is gone; its machines go on",
    ] == changes(before, after)
    assert ["the pool cloud is new", "offer small is new", "offer large is new"] == changes(None, before)


def test_what_a_key_wants_is_said_in_plain_words() -> None:
    """
    Whatever type a value should have; bounds that contradict each other are told besides other mistakes.
    """
    assert faults_of(
        """\
name = "cloud"
min = 5
max = 2
packing = 0
owners = "ada"
dedicated_fraction = "half"
[[offer]]
name = "small"
provider = "process"
cpus = 2.5
memory = "1 GB"
zone = 3
options = { image = [1] }
preference = 1000
"""
    ) == [
        "p.toml:4: packing: 0 is not a number of more than 0 and at most 1",
        'p.toml:5: owners: "ada" is not a list in which each is a text of at most 256 characters in one line',
        'p.toml:6: dedicated_fraction: "half" is not a number of more than 0 and at most 1',
        "p.toml:10: cpus: 2.5 is not a whole number from 1 to 65536",
        "p.toml:12: zone: 3 is not a text of at most 256 characters in one line",
        'p.toml:13: options: {"image": [1]} is not a table in which each value is a text, a whole number, a number, true or false or a list in which each is a text',
        "p.toml:14: preference: 1000 is not a number from -100 to 100",
        "p.toml:2: min: 5 machines are more than max allows (2)",
    ]


EXAMINED = """\
name = "cloud"
[[offer]]
name = "small"
provider = "process"
cpus = 2
memory = "1 GB"
administrators = ["eve"]
[offer.examination]
disk = "10 GB"
containers = true
skew = "5m"
script = '''
#!/bin/sh
test -d /cvmfs
'''
[offer.notices]
file = "/run/maintenance"
interval = "2s"
"""


def test_an_offer_says_what_its_machines_prove_and_where_their_end_is_announced() -> None:
    """In the forms that people write; a change of it is shown."""
    [offer] = read_pool(EXAMINED, "p.toml").offers
    assert ["eve"] == offer.administrators
    expected = Examination(disk=10_240, containers=True, skew=300.0, script="#!/bin/sh\ntest -d /cvmfs\n")
    assert expected == offer.examination
    assert Notices(file="/run/maintenance", interval=2.0) == offer.notices
    pool = read_pool(EXAMINED, "p.toml")
    changed = read_pool(EXAMINED.replace("containers = true", "containers = false"), "p.toml")
    [said] = changes(pool, changed)
    assert said.startswith("offer small: examination: {")


def test_mistakes_within_tables_of_an_offer_have_their_lines() -> None:
    """Unknown keys with the nearest, values with what is wanted; a program says what runs it."""
    wrong = EXAMINED.replace("containers = true", 'contaners = "yes"').replace('"2s"', "0")
    assert [
        "p.toml:10: an examination has no key 'contaners'; did you mean containers?",
        "p.toml:18: interval: 0.0 is not a number of more than 0 and at most 3600",
    ] == faults_of(wrong)
    assert [
        "p.toml:8: examination: script is the text of a program: its first line says what runs it, as #!/bin/sh"
    ] == faults_of(EXAMINED.replace("#!/bin/sh", "# a program"))
    assert ["p.toml:8: notices: 3 is no table: write [offer.notices] above its keys"] == faults_of(
        EXAMINED.split("[offer.examination]", maxsplit=1)[0] + "notices = 3\n"
    )


DESKS = """\
name = "desks"
kind = "static"
hibernate = "S3"
[[offer]]
name = "desk"
provider = "site"
cpus = 4
memory = "8 GB"
machines = [{ name = "desk1", mac = "52-54-00-AB-34-56" }, { name = "desk2.example.org", address = "10.1.2.255" }]
"""


def test_machines_that_are_there_are_read_with_what_wakes_them() -> None:
    """Hardware addresses are written in one form."""
    [offer] = read_pool(DESKS, "desks.toml").offers
    first, second = offer.machines
    assert ("desk1", "52:54:00:ab:34:56", "") == (first.name, first.mac, first.address)
    assert ("desk2.example.org", "", "10.1.2.255") == (second.name, second.mac, second.address)


@pytest.mark.parametrize(
    ("line", "instead", "expected"),
    [
        ('hibernate = "S3"', 'hibernate = "suspend"', '"suspend" is none of NONE, S3, S4, S5'),
        ('kind = "static"', 'kind = "shared"', "hibernate: only machines that are there sleep"),
        ('kind = "static"', 'kind = "shared"', "machines: a pool of kind shared has its machines made"),
        ("machines = ", "hosts = ", "an offer has no key 'hosts'; did you mean machines?"),
        ('name = "desk2.example.org"', 'name = "desk1"', "machines: desk1 is one of desk already"),
        ('name = "desk2.example.org"', 'nmae = "desk2"', "a machine has no key 'nmae'; did you mean name?"),
        ('name = "desk2.example.org"', 'name = "-o x"', '"-o x" cannot be the name of a machine'),
        ('address = "10.1.2.255"', 'address = "a b"', '"a b" cannot be the address of a machine'),
        ('address = "10.1.2.255"', "address = 10", "address of a machine is a text, and 10 is none"),
        ("52-54-00-AB-34-56", "52-54-00-AB-34", '"52-54-00-AB-34" is no hardware address'),
        ('{ name = "desk1", mac', "{ mac", "a machine has a name"),
    ],
)  # fmt: skip
def test_mistakes_about_machines_that_are_there_are_told(line: str, instead: str, expected: str) -> None:
    """Before anything depends on them."""
    with pytest.raises(PoolFileRefused) as refused:
        read_pool(DESKS.replace(line, instead), "desks.toml")
    assert expected in str(refused.value)


def test_a_static_pool_that_hibernates_names_its_machines() -> None:
    """Else nothing could be woken."""
    with pytest.raises(PoolFileRefused, match="say which machines desk has"):
        read_pool(
            "".join(line for line in DESKS.splitlines(keepends=True) if "machines" not in line), "d.toml"
        )


def test_changes_of_machines_are_told_by_their_names() -> None:
    """However many there are."""
    before = read_pool(DESKS, "desks.toml")
    other = DESKS.replace('name = "desk1", mac', 'name = "desk3", mac').replace("10.1.2.255", "10.1.3.255")
    assert [
        "offer desk: machines: desk3 is new",
        "offer desk: machines: desk1 is gone",
        "offer desk: machines: desk2.example.org is changed",
    ] == changes(before, read_pool(other, "desks.toml"))
