"""Answers that are drawn: where they end, which distribution they are scored by, that each token weighs the same, and
the text that judges read."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from engine import load
from engine.data.documents import Document
from engine.places import ROOT
from engine.tokenizers import read_tokenizer
from engine.training import read_recipe
from engine.training.objectives import objectives
from engine.training.policy.kl import masked_sum
from engine.training.policy.learner import PolicyLearner
from engine.training.policy.rollouts import read_drawn
from engine.training.policy.sample import sample_answers
from engine.training.sources.preferences import read_answers
from engine.training.trainer import Trainer
from tests.engine.training.test_trainer import trainer

WORDS = ["</s>", *"abcdef", "happy", "glad", "<turn>"]
END, TURN = 0, 9


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model that ends its texts with id 0 and its turns with another token, both about as likely as a word."""
    fast = Tokenizer(models.WordLevel({word: id for id, word in enumerate(WORDS)}, unk_token="a"))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"eos_token": "</s>", "extra_special_tokens": ["<turn>"]}
    PreTrainedTokenizerFast(tokenizer_object=fast, **special).save_pretrained(tmp_path / "base")
    torch.manual_seed(0)
    shape = {
        "vocab_size": len(WORDS),
        "n_embd": 16,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": 32,
        "initializer_range": 0.3,
    }
    GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0, **shape)).save_pretrained(tmp_path / "base")
    GenerationConfig(bos_token_id=0, eos_token_id=[END, TURN]).save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def begin(base: Path, kind: str, parts: str = "all", temperature: float = 1.0) -> Trainer:
    prompts = [" ".join("abcdefabcdef"[at : at + 3]) for at in range(6)]
    rows = [{"prompt": each, "chosen": "a b " * (at + 1), "rejected": "c"} for at, each in enumerate(prompts)]
    folder = base.parent
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "recipe.toml").write_text(f"""
base = "{base}"
[data.preferences]
path = "pairs.jsonl"
held_out = 0.3
[objective]
kind = "{kind}"
[train]
parts = "{parts}"
[schedule]
steps = 1
[batch]
size = 8
context = 24
[preference]
reward = "happy_words"
answers = 2
answer_tokens = 12
temperature = {temperature}
[machine]
device = "cpu"
threads = 1
precision = "float32"
""")
    return trainer(read_recipe(folder / "recipe.toml"), folder / f"{kind}-{parts}")


def scores_of(learning: Trainer, examples: Any, parts: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for index in range(parts):
        for name, value in learning.learner.score(examples.share(index, parts), examples.counts).items():
            found[name] = found.get(name, 0.0) + float(value)
    return found


@pytest.mark.parametrize("parts", ["all", "lora"])
@pytest.mark.parametrize("kind", [name for name, kind in objectives().items() if kind.from_preferences])
def test_scores_of_the_parts_of_a_batch_add_up_to_those_of_the_whole(kind: str, parts: str, base: Path) -> None:
    """However the rows are shared among processes and parts: so each token weighs the same, and each answer."""
    learning = begin(base, kind, parts, temperature=0.8)
    examples = learning.learner.batch(1)
    assert len(set(examples.inputs["answer"].sum(-1).flatten().tolist())) > 2  # their lengths differ
    for name in ("log_probs", "values"):  # the policy has moved on since it drew
        if name in examples.inputs:
            noise = torch.randn(examples.inputs[name].shape, generator=torch.Generator().manual_seed(1))
            examples.inputs[name].add_(0.4 * noise)  # type: ignore[union-attr]
    whole = scores_of(learning, examples, 1)
    assert ("clip_fraction" if objectives()[kind].least_answers else "margin") in whole
    for count in (2, 3, 8):
        assert scores_of(learning, examples, count) == pytest.approx(whole, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("parts", ["all", "lora"])
@pytest.mark.parametrize("kind", ["ppo", "grpo"])
def test_what_is_scored_is_the_distribution_that_was_drawn_from(kind: str, parts: str, base: Path) -> None:
    learning = begin(base, kind, parts, temperature=0.5)
    learner = learning.learner
    assert isinstance(learner, PolicyLearner)
    examples = learner.batch(1)
    mask = examples.inputs["answer"][:, 1:]
    with torch.no_grad():
        logits = learner.policy(examples.ids, padding=examples.inputs["padding"])[:, :-1] / 0.5
    expected = torch.distributions.Categorical(logits=logits)
    torch.testing.assert_close(examples.inputs["log_probs"][mask], expected.log_prob(examples.ids[:, 1:])[mask])
    torch.testing.assert_close(learner.seen["entropy"], expected.entropy()[mask].mean())
    scores = scores_of(learning, examples, 1)
    assert scores["kl"] == 0 == scores["clip_fraction"]  # it is its reference, and what drew


def test_an_answer_ends_at_every_token_that_ends_and_0_is_one(base: Path) -> None:
    learner = begin(base, "grpo").learner
    assert isinstance(learner, PolicyLearner) and learner.source.end_ids == (END, TURN)
    answers = learner.draw(learner.source.draw_prompts(64, 1), 0)
    last = []
    for ids, own in zip(answers.ids, answers.answer, strict=True):
        *before, end = ids[own].tolist()
        assert not {END, TURN} & set(before) and (end in (END, TURN) or len(before) == 11)
        last.append(end)
    assert {END, TURN} < set(last)
    pairs = learner.source.answered_pairs("train", [0])
    assert pairs.ids[0, 0][pairs.answer[0, 0]][-1] == END
    examples = learner.source.examples("train", [0, 1])
    assert [row[row >= 0][-1] for row in examples.targets] == [END, END]


def test_judges_read_the_very_text_that_was_drawn() -> None:
    stories = load("stories")
    for prompt, answer in (("Anna was", " glad. She"), ("Ben sa", "t down")):
        ids = [tuple(stories.tokenizer.encode(text).ids) for text in (prompt, answer)]
        assert read_drawn(stories.tokenizer, ids[0], ids[1]) == (prompt, answer)
    for both in sample_answers(stories, ["Anna was"], tokens=6):
        for text in both:
            assert stories.tokenizer.encode("Anna was" + text).text == "Anna was" + text


@pytest.mark.parametrize("marks", ["<s> $A", "<s> $A </s>", "$A"])
def test_prompt_and_answer_are_read_as_one_text(marks: str, tmp_path: Path) -> None:
    """As TRL reads them: nothing stands between but what the file says, and no end of the template (trl#885)."""
    fast = Tokenizer(models.BPE(unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    special = ["<unk>", "<s>", "</s>"]
    texts = ["2+2=4 4+4=8 the cat sat on the mat, it is so"] * 5
    fast.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=50, special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(marks, special_tokens=[("<s>", 1), ("</s>", 2)])
    PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="<s>", eos_token="</s>").save_pretrained(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer is not None
    for texts in (["2+2=", "4", "8"], ["the cat ", "sat", "is"], ["the c", "at sat", "zz"], ["it is", " so", " it"]):
        prompt, *answers = read_answers(tokenizer, Document(tuple(texts)))
        assert prompt[:1] == [1] if marks.startswith("<s>") else 1 not in prompt
        for text, answer in zip(texts[1:], answers, strict=True):
            ids = [*prompt, *answer]
            assert 2 not in ids and answer
            assert ids == [id for id in tokenizer.ids(texts[0] + text) if id != 2]


def test_the_rollout_that_the_documentation_shows_makes_better_answers_likelier() -> None:
    written = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", written, re.DOTALL) if "score_grpo" in one]
    assert len(block.splitlines()) <= 60
    said, made = StringIO(), dict[str, Any]()
    with redirect_stdout(said):
        exec(compile(block, "docs/training.md", "exec"), made)
    lines = said.getvalue().splitlines()
    assert len(lines) == 3 and ", 0.000 nats from the base" in lines[0]
    with torch.no_grad():
        moved = masked_sum(made["log_probs"](made["policy"].model) - made["old"], made["mask"], 1)
    assert float(moved @ made["advantages"]) > 0
