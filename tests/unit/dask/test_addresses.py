import pytest

from kettle.dask.addresses import AddressError, JobAddress, read_address


@pytest.mark.parametrize(
    "address",
    [
        JobAddress("12.0", "dask"),
        JobAddress("12.0", "worker", "10.0.0.7", 40123, "site:T2_XX"),
        JobAddress("1.17", "dask", "fd00::7", 1, "site:with, comma @ and blank"),
        JobAddress("1.17", "dask", "127.0.0.1", 65535, "machine:abc.4026531833"),
    ],
)
def test_an_address_reads_back(address: JobAddress) -> None:
    """What is written is read as it was, with and without its scheme."""
    assert address == read_address(str(address))
    assert address == read_address(address.location)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kettle://dask", "no address of a job's service"),
        ("kettle://12/dask", "no address of a job's service"),
        ("kettle://12.0/Dask", "no address of a job's service"),
        ("kettle://12.0/dask@here", "after the @ stands HOST:PORT,NETWORK"),
        ("kettle://12.0/dask@10.0.0.1:99999,site:A", "after the @ stands HOST:PORT,NETWORK"),
        ("kettle://12.0/dask@10.0.0.1:80", "after the @ stands HOST:PORT,NETWORK"),
    ],
)
def test_what_is_no_address(text: str, said: str) -> None:
    """It is refused with a sentence that shows the form."""
    with pytest.raises(AddressError, match=said):
        read_address(text)


def test_addresses_of_one_loopback_device_are_of_one_machine() -> None:
    """
    An address on two machines is not of one, and a place that only the gateway reaches is a machine of its own.
    """
    one, same = (JobAddress(job, "worker", "127.0.0.1", 1000, "machine:a") for job in ("1.0", "2.0"))
    other = JobAddress("3.0", "worker", "127.0.0.1", 1000, "machine:b")
    assert one.machine == same.machine
    assert one.machine != other.machine
    assert "10.0.0.7" == JobAddress("1.0", "worker", "10.0.0.7", 1, "site:A").machine
    assert "4.0" == JobAddress("4.0", "worker").machine


@pytest.mark.parametrize(
    ("asked", "contact", "same"),
    [
        ("12.0/dask", "kettle://12.0/dask@10.0.0.7:40123,site:T2_XX", True),
        ("12.0/dask@10.0.0.7:40123,site:T2_XX", "kettle://12.0/dask@10.0.0.7:40123,site:T2_XX", True),
        ("12.1/dask", "kettle://12.0/dask", False),
        ("0.0/dask@127.0.0.1:1,machine:a", "kettle://0.0/dask@127.0.0.1:1,machine:a", True),
        ("0.0/dask@127.0.0.1:1,machine:a", "kettle://0.0/dask@127.0.0.1:2,machine:a", False),
        ("12.0/dask", "", False),
    ],
)
def test_whose_address_it_is(asked: str, contact: str, *, same: bool) -> None:
    """The job says it; of a scheduler that is none, where it listens."""
    assert same == read_address(asked).is_of(contact)
