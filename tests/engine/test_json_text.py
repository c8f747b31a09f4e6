"""JSON of others: what no page could draw or send is an error like any other."""

import pytest

from engine.json_text import parse_json


@pytest.mark.parametrize("text", ['["\\ud800"]', '{"\\udc00": 1}', b'"a\\uD83E"', "[" * 100_000, b'"\xff"'])
def test_what_is_no_text_is_an_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_whole_characters_and_escaped_backslashes_are_read() -> None:
    assert (
        parse_json('["\\ud83e\\udd89", "\\\\ud800"]')
        == ["🦉", "\\ud800"]
        == parse_json(b'["\xf0\x9f\xa6\x89", "\\\\ud800"]')
    )
