import re
from pathlib import Path

import pytest

from engine.training import RecipeError, parse_recipe, read_recipe, write_recipe
from engine.training.recipe.options import list_options

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "assets"


def complaint(text: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text, "my.toml")
    return caught.value


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)


@pytest.mark.parametrize(
    ("right", "wrong", "about"),
    [
        ("lr = 1e-2", "learning = 1e-2", "optimiser.learning is not a known key"),
        ("lr = 1e-2", "lr = 'fast'", "optimiser.lr must be a number, got 'fast'"),
        ("lr = 1e-2", "lr = -1.0", "optimiser.lr must be above 0, got -1.0"),
        ("lr = 1e-2", "betas = [0.9, 1.5]", "optimiser.betas must be two numbers in [0, 1)"),
        (
            "attention = { heads = 2 }",
            "attention = { heads = 2, headz = 3 }",
            "model.attention.headz is not a known key",
        ),
        ("attention = { heads = 2 }", "attention = { heads = 3 }", "d_model 16 cannot be split into 3 heads"),
        ("dropout = 0.1", "dropout = 1.5", "dropout must be in [0, 1), got 1.5"),
        ("d_model = 16", "vocab_size = 16", "model.vocab_size is the tokenizer's"),
        ("steps = 12", "steps = 0", "schedule.steps must be at least 1, got 0"),
        ("warmup = 3", "warmup = 30", "schedule.warmup must not exceed schedule.steps (12), got 30"),
        ("[optimiser]", "[optimizer]", "optimizer is not a known key"),
        ("seed = 3", "seed = 3.5", "seed must be a whole number, got 3.5"),
        ("seed = 3", "seed = -1", "seed must be a whole number from 0 to 2,147,483,647, got -1"),
        ("seed = 3", f"seed = {2**200}", "seed must be a number from -9,007,199,254,740,991 to 9,007,"),
        ("seed = 3", "split = 2147483648", "split must be a whole number from 0 to"),
        ("lr = 1e-2", "lr = nan", "optimiser.lr must be a finite number"),
        ("lr = 1e-2", "betas = [0.9, inf]", "optimiser.betas must be a finite number"),
        ('kind = "char"', 'kind = "letters"', "data.tokenizer.kind must be one of char, word"),
        ("size = 4", "size = true", "batch.size must be a whole number, got True"),
        ("context = 8", "context = 1", "batch.context must be at least 2, got 1"),
        ('device = "cpu"', 'device = "tpu"', "machine.device must be one of auto, cpu, cuda"),
        (
            "dropout = 0.1",
            "context = 64",
            "model.context must be batch.context (8) where positions are learned, got 64",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(recipe_text: str, right: str, wrong: str, about: str) -> None:
    text = recipe_text.replace(right, wrong)
    error = complaint(text)
    changed = "d_model = 16" if about.startswith("d_model") else wrong  # two lines disagree: the one it names
    assert f"my.toml, line {line_of(text, changed)}: {about}" in str(error)


def test_a_key_is_found_below_comments_multi_line_strings_and_dotted_tables(recipe_text: str) -> None:
    text = recipe_text.replace("seed = 3", 'about = """\n[optimiser]\nlr = "no" # "\n"""\nseed = 3 # lr = 1')
    text = text.replace(
        "[optimiser]\nlr = 1e-2", "[ optimiser ]\n\nbetas = [\n  0.9, # the first\n  0.95,\n]\n'lr' = true"
    )
    error = complaint(text)
    assert error.line == line_of(text, "'lr' = true")


def test_a_missing_key_is_reported_where_its_table_begins(recipe_text: str) -> None:
    text = recipe_text.replace("steps = 12\n", "")
    assert f"line {line_of(text, '[schedule]')}: schedule" in str(complaint(text))
    assert "lacks steps" in str(complaint(text))


def test_a_missing_table_and_broken_toml_are_named(recipe_text: str) -> None:
    assert "a recipe needs [batch]" in str(
        complaint(recipe_text.replace("[batch]\nsize = 4\ncontext = 8\n", "[model.norm]\n"))
    )
    assert "line 5" in str(complaint("seed = 1\n\n[model]\nlayers = 1\nd_model =\n"))


def test_two_kinds_of_data_are_refused(recipe_text: str) -> None:
    error = complaint(recipe_text + "\n[data.stories]\ndocuments = 5\n")
    assert "exactly one of [data.stories], [data.text], " in str(error) and "[data.preferences], got 2" in str(error)


def test_a_written_recipe_reads_back_equal(recipe_text: str) -> None:
    for path in [*(ASSETS / "recipes").glob("*.toml"), *(ASSETS / "lab").glob("*.toml")]:
        recipe = read_recipe(path)
        assert parse_recipe(write_recipe(recipe)) == recipe
    small = parse_recipe(recipe_text.replace("seed = 3", 'about = "a \\"quoted\\" é\\n\\u007f"'))
    assert parse_recipe(write_recipe(small)) == small


def test_a_text_is_looked_for_beside_its_recipe(recipe_path: Path) -> None:
    data = read_recipe(recipe_path).data
    assert data.table.path == str(recipe_path.parent / "corpus.txt")


def test_each_option_says_what_it_is() -> None:
    assert not [row.key for row in list_options() if not row.help.endswith(".")]


def test_the_page_of_recipes_lists_all_options() -> None:
    lines = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("| `")] == [row.markdown for row in list_options()]


def test_the_form_names_only_options_that_a_page_alone_knows_of() -> None:
    source = (ROOT / "pages" / "controls" / "train" / "recipe_options.py").read_text(encoding="utf-8")
    of_page = {"machine.threads", "machine.share", "machine.shard"}
    of_page |= {f"preference.{name}" for name in ("beta", "reward", "watch", "answers", "answer_tokens")}
    assert set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', source)) == of_page < {row.key for row in list_options()}
