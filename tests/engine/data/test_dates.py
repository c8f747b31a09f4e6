import re
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.kinds.dates import Dates, formats, ordinal, pair, write_date


def read(written: str) -> date:
    """What the standard library makes of it."""
    plain = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", written)
    for form in ("%d %B %Y", "%B %d, %Y", "the %d of %B %Y", "%d-%b-%Y", "%d.%m.%Y"):
        try:
            return datetime.strptime(plain, form).date()
        except ValueError:
            continue
    raise AssertionError(written)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_target_is_the_day_that_the_source_names(seed: int, index: int) -> None:
    one = pair(Dates(), "train", seed, index)
    assert one.target == read(one.source).isoformat()
    assert 1900 <= int(one.target[:4]) <= 2099


@given(st.dates(date(1000, 1, 1), date(9999, 12, 31)))
def test_every_way_of_writing_reads_back(on: date) -> None:
    assert {read(write_date(on, template)) for template in formats().values()} == {on}


def test_a_day_that_is_held_out_is_so_however_it_is_written() -> None:
    task = Dates(2000, 2001, documents=4_000, held_out=400)
    ours, theirs = ({one.target for one in task.pairs(part, 0)} for part in ("train", "held_out"))
    assert not ours & theirs and len(ours | theirs) > 700


def test_ordinals() -> None:
    assert [ordinal(day) for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30, 31)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "30th", "31st",
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "last"), [(999, 2000), (2000, 1999), (2000, 10_000)])
def test_options_that_make_no_task_are_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="data.dates.(first|last) must be at"):
        Dates(first, last)
