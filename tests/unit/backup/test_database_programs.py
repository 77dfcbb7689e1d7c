"""How the programs of PostgreSQL are told where a database is."""

import pytest

from kettle.backup.database_dump import program_environ


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://kettle:p%40ss@db:5433/kettle", {"HOST": "db", "PORT": "5433", "USER": "kettle", "PASSWORD": "p@ss"}),
        ("postgresql://kettle@db/kettle?sslmode=require", {"HOST": "db", "USER": "kettle", "SSLMODE": "require"}),
        ("postgresql://kettle@[2001:db8::7]:5433/kettle", {"HOST": "2001:db8::7", "PORT": "5433", "USER": "kettle"}),
        ("postgresql:///kettle?host=/run/pg&user=kettle", {"HOST": "/run/pg", "USER": "kettle"}),
        (
            "postgresql://kettle@db1:5433,db2/kettle?target_session_attrs=read-write",
            {"HOST": "db1,db2", "PORT": "5433,", "USER": "kettle", "TARGETSESSIONATTRS": "read-write"},
        ),
        ("postgresql://kettle@db1,db2/kettle", {"HOST": "db1,db2", "USER": "kettle"}),
    ],
)  # fmt: skip
def test_an_address_is_told_by_variables(url: str, said: dict[str, str]) -> None:
    """
    Also where there are several servers, of which one takes writes: a dump comes from where its snapshot is held.
    """
    told = program_environ(url)
    wanted = {f"PG{name}": value for name, value in said.items()}
    assert wanted | {"PGDATABASE": "kettle", "PGAPPNAME": "kettle backup"} == {
        name: value for name, value in told.items() if name.startswith("PG")
    }
