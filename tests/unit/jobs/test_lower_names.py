from kettle.jobs.lower_names import lower_names, remembered_by_names


def test_names_are_found_whatever_their_case() -> None:
    """Each name leads to its spelling; of two spellings the last one counts."""
    assert {"cmd": "Cmd", "iwd": "IWD"} == dict(lower_names(["Cmd", "Iwd", "IWD"]))


def test_what_somebody_makes_up_is_not_remembered() -> None:
    """Ordinary names are looked at once; very many, or very long ones, each time."""
    asked: list[int] = []

    @remembered_by_names
    def count(names: tuple[str, ...]) -> int:
        asked.append(len(names))
        return len(names)

    for names in (("Cmd",), ("Cmd",), ("A" * 9_000,), ("A" * 9_000,)):
        assert 1 == count(names)
    assert [1, 1, 1] == asked
