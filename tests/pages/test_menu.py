"""The menu is what the pages say of themselves."""

from pathlib import Path

import pytest

from pages.controls.menu import GROUPS, PAGES, entries, read_entry


def test_every_script_stands_in_the_menu_once_and_at_an_address_of_its_own() -> None:
    found = entries()
    assert {entry.path for entry in found} == {
        path.relative_to(PAGES.parent).as_posix() for folder in GROUPS for path in (PAGES / folder).glob("*.py")
    }
    for part in ("title", "address"):
        assert len({getattr(entry, part) for entry in found}) == len(found)
    assert found[0].title == "Home"
    for group in GROUPS.values():
        places = [entry.place for entry in found if entry.group == group]
        assert places == list(range(1, len(places) + 1))


def test_a_page_that_does_not_say_where_it_stands_is_named() -> None:
    nowhere = Path(__file__).resolve()
    assert nowhere.is_relative_to(PAGES.parent)
    with pytest.raises(ValueError, match="expected MENU in tests/pages/test_menu.py"):
        read_entry(nowhere, "Explore")
