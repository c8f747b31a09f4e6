"""Recipes in links."""

import zlib
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.training import Recipe, parse_recipe, read_recipe
from engine.training.recipe.link import LARGEST, LONGEST, VERSION, WORDS_OF, pack_recipe, unpack_recipe

SHIPPED = sorted(Path(__file__).parents[3].glob("assets/recipes/*.toml"))
SMALL = """
[model]
d_model = 16
layers = 1
attention = { heads = 2 }
[data.repeats]
longest = 6
[data.tokenizer]
kind = "char"
[schedule]
steps = 60
[batch]
size = 4
context = 16
"""


def link_of(text: bytes) -> str:
    made = zlib.compressobj(9, wbits=-15, zdict=WORDS_OF[VERSION])
    return VERSION + urlsafe_b64encode(made.compress(text) + made.flush()).decode().rstrip("=")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_recipe_comes_back_equal_from_a_short_link(path: Path) -> None:
    recipe = read_recipe(path)
    link = pack_recipe(recipe)
    assert unpack_recipe(link) == recipe
    assert len(link) < 800 and link.replace("-", "").replace("_", "").isalnum()


def test_everything_a_person_changed_comes_with_it() -> None:
    recipe = parse_recipe(SMALL)
    changed = replace(
        recipe, seed=7, about='Ünïcode "quoted" \\ and\nlines', optimiser=replace(recipe.optimiser, lr=3.3e-5)
    )
    assert unpack_recipe(pack_recipe(changed)) == changed


def test_a_line_separator_in_a_text_of_the_recipe_comes_back() -> None:
    recipe = replace(parse_recipe(SMALL), about="one\u2028two\x85three")
    assert unpack_recipe(pack_recipe(recipe)) == recipe


def test_the_words_of_a_version_never_change() -> None:
    """They are part of every link that was ever made."""
    assert {version: zlib.crc32(words) for version, words in WORDS_OF.items()} == {"1": 3031306873, "2": 3711667111}


def test_a_link_of_a_file_is_neither_made_nor_opened(recipe: Recipe) -> None:
    for refused in (lambda: pack_recipe(recipe), lambda: unpack_recipe(link_of(STEALS))):
        with pytest.raises(ValueError, match="data.text.path is a place on one machine, which a link cannot carry"):
            refused()


STEALS = SMALL.replace("[data.repeats]\nlongest = 6\n", '[data.text]\npath = "/etc/passwd"\n').encode()


@pytest.mark.parametrize(
    "link",
    [
        "",
        "1",
        "2abc",
        "1!!!!",
        "1\u00e9",
        VERSION + "A" * (LONGEST + 1),
        link_of(b"\xff\xfe"),
        link_of(b"not = 'a recipe'"),
        link_of(b"[model"),
        link_of(b"x = " + b"[" * 60_000),
        link_of(b"#" * (LARGEST + 1)),
        link_of(b"\0" * 5_000_000),
        link_of(SMALL.encode() * 2),
        link_of(SMALL.replace("d_model = 16", "d_model = 17").encode()),
    ],
    ids=lambda link: f"{link[:12]} of {len(link)}",
)
def test_what_is_no_recipe_is_a_sentence(link: str) -> None:
    with pytest.raises(ValueError, match=r"recipe in (a|this) link") as told:
        unpack_recipe(link)
    assert len(str(told.value)) < 1000


def test_a_bomb_is_not_unpacked_further_than_a_recipe_can_be_long() -> None:
    made = zlib.compressobj(9, wbits=-15, zdict=WORDS_OF[VERSION])
    bomb = made.compress(b"\0" * 5_000_000) + made.flush()
    assert len(bomb) * 4 / 3 < LONGEST
    with pytest.raises(ValueError, match=f"at most {LARGEST:,} bytes"):
        unpack_recipe(VERSION + urlsafe_b64encode(bomb).decode().rstrip("="))


def test_a_link_that_was_cut_off_or_has_a_wrong_letter_never_becomes_another_error() -> None:
    whole = pack_recipe(parse_recipe(SMALL))
    recipe = unpack_recipe(whole)
    for at in range(len(whole)):
        for damaged in (whole[:at], f"{whole[:at]}{'A' if whole[at] != 'A' else 'B'}{whole[at + 1 :]}"):
            try:
                assert isinstance(unpack_recipe(damaged), type(recipe))
            except ValueError as error:
                assert "link" in str(error)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(link_of))
def test_whatever_is_given_is_a_recipe_or_a_sentence(link: str) -> None:
    with pytest.raises(ValueError):
        unpack_recipe(link)
