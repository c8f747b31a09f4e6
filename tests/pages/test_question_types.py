"""The types that the JavaScript is checked against."""

from scripts.question_types import PLACE, registries
from views.core.questions import javascript_types


def test_the_types_are_those_of_the_registries() -> None:
    """After a change to a question, run `python -m scripts.question_types`."""
    found = registries()
    assert sum(len(one.questions) for one in found) > 50
    assert PLACE.read_text(encoding="utf-8") == javascript_types(*found)
