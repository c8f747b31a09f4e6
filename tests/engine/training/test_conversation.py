"""Learning from conversations: ids and labels are those of TRL, by templates with `{% generation %}` and without."""

import json
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
import transformers

from engine.checkpoints import load
from engine.conversations import Conversation, read_templates, read_written
from engine.scoring.examples import UNASKED
from engine.tokenizers import read_tokenizer
from engine.training import RunFolder, read_recipe, train
from engine.training.recipe.recipe import Recipe
from engine.training.sources import open_source
from engine.training.sources.conversations import Conversations
from engine.training.sources.preferences import PreferredAnswers
from tests.engine.conversations.test_conversations import TEMPLATES, save_tokenizer

torch.set_num_threads(1)


def say(*contents: str, system: str = "") -> list[dict[str, str]]:
    """Messages of user and assistant in turn."""
    turns = [{"role": ("user", "assistant")[at % 2], "content": one} for at, one in enumerate(contents)]
    return [{"role": "system", "content": system}, *turns] if system else turns


TALKS = [
    say("Hello", "Hello there."),
    say("2 + 2?", "4, é 🦉\n", "And 3 + 3?", "6"),
    say("  Hi ", " Hi, I am the assistant", system="Be brief."),
    say("One?", "1", "Two?", "2", "Three?", "3", system="Count."),
]
RECIPE = """
base = "{base}"
objective = {{ kind = "conversation" }}
data.rows = {{ path = "{path}", messages = "messages", held_out = 0.25 }}
schedule = {{ steps = 4 }}
batch = {{ size = 3, context = 400 }}
log = {{ every = 1, held_out_every = 2, held_out_batches = 1, snapshots = 2 }}
machine = {{ device = "cpu", threads = 1, compile = "off" }}
"""


def save_base(folder: Path, template: str) -> Path:
    torch.manual_seed(0)
    save_tokenizer(folder)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 400, "vocab_size": 330}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def write(folder: Path, rows: list[Any], base: Path, suffix: str = "jsonl") -> Recipe:
    path = folder / f"rows.{suffix}"
    if suffix == "parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    (folder / "recipe.toml").write_text(RECIPE.format(base=base, path=path.name))
    return read_recipe(folder / "recipe.toml")


def trls(folder: Path, base: Path, marked: bool) -> dict[tuple[int, ...], list[int]]:
    """Labels of TRL's SFTTrainer by ids; without marks in a template those of each turn as a completion."""
    import trl
    from datasets import Dataset

    rows: list[dict[str, Any]] = [{"messages": talk} for talk in TALKS]
    if not marked:
        ends = [(talk, at) for talk in TALKS for at, one in enumerate(talk) if one["role"] == "assistant"]
        rows = [{"prompt": talk[:at], "completion": talk[at : at + 1]} for talk, at in ends]
    args = trl.SFTConfig(str(folder), assistant_only_loss=marked, report_to=[], use_cpu=True, bf16=False)
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    found = trl.SFTTrainer(model, args, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    labels = dict[tuple[int, ...], list[int]]()
    for row in found.train_dataset:
        ids, ours = tuple(row["input_ids"]), row["labels"]
        for before in [each for each in labels if each == ids[: len(each)]]:  # an earlier turn of the same
            earlier = labels.pop(before)
            ours = [max(pair) for pair in zip(earlier, ours, strict=False)] + ours[len(before) :]
        labels[ids] = ours
    return labels


@pytest.mark.parametrize("name", ["chatml-generation", "chatml", "llama-3"])
def test_ids_and_labels_are_those_of_trl(name: str, tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", TEMPLATES[name])
    rows = [{"id": at, "messages": talk} for at, talk in enumerate(TALKS)]
    wanted = trls(tmp_path / "trl", base, "generation %}" in TEMPLATES[name])
    assert len(wanted) == len(TALKS)
    for suffix in ("jsonl", "parquet"):
        source = open_source(write(tmp_path, rows, base, suffix), tmp_path / suffix)
        assert isinstance(source, Conversations) and source.count == len(TALKS) and not source.left_out
        found = {}
        for part in ("train", "held_out"):
            for index in range(len(source.shelves[part].tokens.starts)):
                ids, labels = (each.tolist() for each in source.shelves[part].tokens.document(index))
                found[tuple(ids)] = labels
        assert found == wanted
    examples = source.examples("train", range(3))
    for row, real in enumerate(examples.inputs["padding"]):
        ids = [*examples.ids[row][real].tolist()]
        labels = next(labels for whole, labels in wanted.items() if list(whole[:-1]) == ids)
        assert examples.targets[row][real].tolist() == labels[1:]
        assert (examples.targets[row][~real] == UNASKED).all()


def test_hundreds_of_rows_are_learned_from_within_seconds_and_the_template_stays(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", TEMPLATES["llama-3.1"])
    rows = [{"messages": say(f"{row} + 1?", str(row + 1))} for row in range(300)]
    begun = perf_counter()
    recipe = write(tmp_path, rows, base)
    source = open_source(recipe, tmp_path / "source")
    assert source.count == 300 and perf_counter() - begun < 20
    run = RunFolder(tmp_path / "run")
    assert [step.step for step in train(recipe, run.path)] == list(range(5))
    assert read_templates(load(run.checkpoint).tokenizer) == {"default": TEMPLATES["llama-3.1"]}
    card = json.loads((run.checkpoint / "card.json").read_text())
    assert card["objective"] == "conversation" and card["loss"]["unit"] == "nats a token of the assistant"


def test_what_closes_the_text_is_part_of_the_last_turn(tmp_path: Path) -> None:
    (save_tokenizer(tmp_path / "base") / "chat_template.jinja").write_text(TEMPLATES["phi-3"])
    tokenizer = read_tokenizer(tmp_path / "base")
    assert tokenizer is not None
    (found,) = read_written(tokenizer, {1: Conversation.from_dict(TALKS[0])})
    asked = [id for id, written in zip(found.ids, found.mask, strict=True) if written]
    assert tokenizer.decode(asked, special=True).startswith("Hello there.") and asked[-1] == tokenizer.end_id


ALONE = [{"role": "assistant", "content": "I begin."}]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("hello", r"row 2 must have a list of messages .* got 'hello'"),
        (None, r"row 2 must have a list of messages .* got 'nothing'"),
        ([{"text": "hello"}], r"row 2 must have a list of messages .* must have a role"),
        (ALONE, r"row 2 must have a message of the assistant behind one of the user, got assistant;"),
        (TALKS[0][:1], r"row 2 must have a message of the assistant behind one of the user, got user;"),
        (TALKS[0][:1] + TALKS[0], r"row 2: This model's chat template refuses the conversation: .*alternate"),
    ],
)
def test_the_row_that_is_no_conversation_is_named(bad: Any, told: str, tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", TEMPLATES["llama-2"])
    rows = [{"messages": talk} for talk in (TALKS[0], bad, *TALKS[1:])]
    with pytest.raises(ValueError, match=told):
        open_source(write(tmp_path, rows, base), tmp_path / "run")


def test_a_base_without_a_template_is_refused(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", "")
    (base / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match=r"base must have a chat template .* has none; choose another base"):
        open_source(write(tmp_path, [{"messages": talk} for talk in TALKS], base), tmp_path / "run")


PREFERRED = [
    {"prompt": say("Hello"), "chosen": say("", "Hello there.")[1:], "rejected": say("", "Go away!")[1:]},
    {"chosen": say("2 + 2?", "4", "And 3 + 3?", "6"), "rejected": say("2 + 2?", "4", "And 3 + 3?", "é 🦉\n")},
    {"chosen": say("One?", "1", system="Count."), "rejected": say("One?", "Two, I think", system="Count.")},
    {"chosen": say("Five?", "5"), "rejected": say("Five?", "6")},
]
OF_PAIRS = """
base = "{base}"
objective = {{ kind = "dpo" }}
data.preferences = {{ path = "{path}", held_out = 0.25 }}
schedule = {{ steps = 2 }}
batch = {{ size = 3, context = 400 }}
log = {{ every = 1, held_out_every = 2, held_out_batches = 1, snapshots = 2 }}
machine = {{ device = "cpu", threads = 1, compile = "off" }}
"""


@pytest.mark.parametrize("name", ["chatml", "mistral-3"])
def test_preferences_of_conversations_are_read_as_by_trl(name: str, tmp_path: Path) -> None:
    import trl
    from datasets import Dataset

    base = save_base(tmp_path / "base", TEMPLATES[name])
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, PREFERRED)))
    (tmp_path / "recipe.toml").write_text(OF_PAIRS.format(base=base, path="pairs.jsonl"))
    source = open_source(read_recipe(tmp_path / "recipe.toml"), tmp_path / "run")
    assert isinstance(source, PreferredAnswers) and not source.ended and not source.left_out
    found = set()
    for part in ("train", "held_out"):
        for index in range(len(source.shelves[part].tokens.starts)):
            found.add(tuple(tuple(each.tolist()) for each in source.shelves[part].tokens.document(index)))
    args = trl.DPOConfig(str(tmp_path / "trl"), report_to=[], use_cpu=True, bf16=False)
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    rows = [trl.extract_prompt(row) if "prompt" not in row else row for row in PREFERRED]
    theirs = trl.DPOTrainer(model, args=args, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    wanted = {
        tuple(tuple(row[f"{part}_ids"]) for part in ("prompt", "chosen", "rejected")) for row in theirs.train_dataset
    }
    assert found == wanted
    if name == "chatml":
        steps = list(train(read_recipe(tmp_path / "recipe.toml"), tmp_path / "run"))
        assert steps[-1].step == 2 and isfinite(steps[-1].loss)
