"""The objectives of preferences inside a training: what they learn from, what is kept, and what is refused."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import load
from engine.checkpoints import Checkpoint
from engine.checkpoints.save import save
from engine.data.seeds import seed_for
from engine.generation.generate import generate
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer
from engine.tokenizers import train as train_tokenizer
from engine.training import Diverged, RunFolder, parse_recipe, read_recipe, set_weight, train
from engine.training.objectives import objectives
from engine.training.objectives.kinds.ppo import PpoLearner
from engine.training.policy.judge import open_judge, rewards_of, running_rewards
from engine.training.policy.learner import PolicyLearner, PreferenceLearner, means_of
from engine.training.policy.rollouts import draw_answers
from engine.training.policy.rule import rules
from engine.training.run.fork import fork
from engine.training.trainer import Trainer
from tests.engine import tiny
from tests.engine.training.starting import start
from tests.engine.training.test_kills import reached, wait
from tests.engine.training.test_trainer import trainer

torch.set_num_threads(1)
NAMES, ENDS = ("Anna", "Ben", "Tom", "Mia"), ("home", "to the dog", "to see the cat", "and ran", "with Tom and the dog")
PROMPTS = [f"{name} {verb} {end}" for name in NAMES for verb in ("ran", "sat") for end in ENDS]
RECIPE = """
base = "base"
[data.preferences]
path = "{path}"
held_out = 0.4
ended = false
[objective]
kind = "{kind}"
[train]
parts = "{parts}"
[optimiser]
lr = 1e-2
[schedule]
steps = 4
shape = "constant"
[batch]
size = 8
context = 24
[log]
every = 1
held_out_every = 2
held_out_batches = 1
snapshots = 5
latest_every = 1
[preference]
answers = 4
answer_tokens = 6
updates = 2
{more}
[machine]
device = "cpu"
threads = 1
"""
POLICIES = tuple(name for name, kind in objectives().items() if kind.moves_policy)


def save_base(folder: Path) -> None:
    """A model of two layers, and pairs of answers of its words, of which the happy ones are preferred."""
    answers = [(" was happy and glad", " was not"), (" and smiled", " and was not happy"), (" was fun", " sat")]
    pairs = [(prompt, *answers[row % 3]) for row, prompt in enumerate(PROMPTS)]
    rows = [dict(zip(("prompt", "chosen", "rejected"), pair, strict=True)) for pair in pairs]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = train_tokenizer("word", [prompt + one for prompt, *both in pairs for one in both])
    config = ModelConfig(tokenizer.vocab_size, 40, 32, 2, Attention(heads=4), MLP(d_mlp=64))
    model = tiny.model(config)
    model.embed.tokens.weight *= 0.3  # it is the head too: no word is much likelier than others
    save(Checkpoint(model, tokenizer), folder / "base")


def recipe(folder: Path, kind: str, parts: str = "all", more: str = "", path: str = "pairs.jsonl") -> Any:
    if not (folder / "base").exists():
        save_base(folder)
    file = folder / f"{kind}.toml"
    file.write_text(RECIPE.format(kind=kind, parts=parts, more=more, path=path))
    return read_recipe(file)


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load(run / "checkpoint").model.state_dict()


def kinds(*everyday: tuple[str, str]) -> list[Any]:
    """What learns by each kind; of those that share their code the everyday ones stand for the others."""
    both = product(("reward", *POLICIES), ("all", "lora"))
    return [pytest.param(*one, marks=[] if one in everyday else pytest.mark.long) for one in both]


@pytest.mark.parametrize(
    ("kind", "parts"), kinds(("reward", "all"), ("dpo", "lora"), ("ppo", "all"), ("ppo", "lora"), ("grpo", "all"))
)
def test_a_run_that_is_left_goes_on_to_the_same_bits(kind: str, parts: str, tmp_path: Path) -> None:
    asked = recipe(tmp_path, kind, parts)
    whole, left = list(train(asked, tmp_path / "whole")), []
    for step in train(asked, tmp_path / "left"):
        left.append(step)
        if step.step == 2:
            break
    left += train(asked, tmp_path / "left")
    assert [(one.step, one.loss, one.also) for one in left] == [(one.step, one.loss, one.also) for one in whole]
    ours, theirs = weights(tmp_path / "left"), weights(tmp_path / "whole")
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    base = load(tmp_path / "base").model.state_dict()
    assert any(not torch.equal(tensor, base[name]) for name, tensor in ours.items() if name in base)
    samples = [RunFolder(tmp_path / name).read_samples() for name in ("left", "whole")]
    assert samples[0] == samples[1]
    assert [line["step"] for line in samples[0]] == ([] if kind == "reward" else [0, 1, 2, 3, 4])
    assert load(tmp_path / "left" / "checkpoint").config.head.kind == ("sequence" if kind == "reward" else "language")


@pytest.mark.parametrize(
    ("kind", "parts"), kinds(("dpo", "all"), ("ppo", "lora"), ("grpo", "all"), ("kto", "lora"))[2:]
)
def test_before_the_first_update_the_policy_is_its_reference(kind: str, parts: str, tmp_path: Path) -> None:
    left_out = "[model]\ndropout = 0.5\n" + ("[lora]\ndropout = 0.5" if parts == "lora" else "")  # acts on neither
    first, second, *_ = train(recipe(tmp_path, kind, parts, left_out), tmp_path / "run")
    assert first.also["held_out_kl"] == 0.0
    known = {"dpo": math.log(2), "kto": 0.5}
    if kind in known:
        assert first.held_out_loss == pytest.approx(known[kind], abs=1e-7)
        assert second.loss == pytest.approx(known[kind], abs=1e-6)
    elif objectives()[kind].least_answers:
        assert second.also["kl"] == 0.0
        assert second.also["reward"] > 0
    for sample in RunFolder(tmp_path / "run").read_samples()[0]["samples"]:
        assert 0 < sample["length"] <= 6 and len(sample["answer"].split()) <= 6
        assert sample["kl"] == 0.0


def test_rollouts_are_what_generation_writes_whatever_else_is_read_beside(tmp_path: Path) -> None:
    save_base(tmp_path)
    base = load(tmp_path / "base")
    prompts = [tuple(base.tokenizer.encode(text).ids) for text in ("Anna ran to the", "Ben", "Tom ran with the dog")]
    drawn = draw_answers(base.model, prompts, 12, seed=0, temperature=0.0, ends=base.end_ids)
    for prompt, answer in zip(prompts, drawn, strict=True):
        assert list(answer) == [step.id for step in generate(base, prompt, 12, greedy=True)]
    assert draw_answers(base.model, prompts, 12, seed=1) == draw_answers(base.model, prompts, 12, seed=1)
    assert draw_answers(base.model, prompts, 12, seed=1) != draw_answers(base.model, prompts, 12, seed=2)
    with pytest.raises(ValueError, match="must fit the model's context of 40 tokens, got 30 and 12"):
        draw_answers(base.model, [(1,) * 30], 12, seed=0)


def test_rewards_of_answers_are_the_rules_and_samples_are_counted(tmp_path: Path) -> None:
    learning = trainer(recipe(tmp_path, "grpo"), tmp_path / "run")
    learner = learning.learner
    assert isinstance(learner, PolicyLearner)
    learner.batch(1)
    answers = learner.draw(learner.source.draw_prompts(2, 1), seed_for(0, "rollout", 1))
    assert learner.judge is not None
    assert learner.judge(answers).tolist() == [rules()["happy_words"].score(*text) for text in answers.texts]
    samples = learner.samples(0)
    assert len(samples) == len({sample["prompt"] for sample in samples}) == 10
    words = [sample["answer"].split() for sample in samples]
    pairs = [pair for row in words for pair in zip(row, row[1:], strict=False)]
    assert means_of(samples)["distinct"] == len(set(pairs)) / len(pairs)
    assert learning.measure(1)["reward"] == sum(sample["reward"] for sample in samples) / 10


def test_a_reward_model_judges_and_tells_its_number_after_every_token(tmp_path: Path) -> None:
    list(train(recipe(tmp_path, "reward"), tmp_path / "judge"))
    made = load(tmp_path / "judge" / "checkpoint")
    ids = torch.tensor(made.tokenizer.encode("Anna was happy and smiled to see the dog").ids)
    after = running_rewards(made.model, ids)
    for end in range(1, len(ids) + 1):
        torch.testing.assert_close(after[end - 1], made.model(ids[None, :end])[0, 0], atol=1e-5, rtol=1e-5)
    more = f'reward = "{tmp_path / "judge" / "checkpoint"}"\nwatch = "happy_words"'
    learner = trainer(recipe(tmp_path, "ppo", more=more), tmp_path / "run").learner
    assert isinstance(learner, PpoLearner)
    answers = learner.draw(learner.source.draw_prompts(4, 1), 0)
    assert learner.judge is not None
    torch.testing.assert_close(learner.judge(answers), rewards_of(made.model, answers.ids, answers.real))
    assert set(learner.samples(0)[0]) == {"prompt", "answer", "kl", "length", "reward", "watched"}
    everyday = load("everyday").tokenizer
    with pytest.raises(ValueError, match="must read the tokens of the base, and .* has another vocabulary"):
        open_judge(str(tmp_path / "judge" / "checkpoint"), everyday, torch.device("cpu"))
    with pytest.raises(ValueError, match="one number for a text, got stories with the head .language."):
        open_judge("stories", everyday, torch.device("cpu"))
    with pytest.raises(ValueError, match="must be a rule .happy_words, .* or a reward model that is here, and"):
        open_judge("nowhere", everyday, torch.device("cpu"))


def test_beta_follows_a_slider_and_adapts_where_it_has_a_target(tmp_path: Path) -> None:
    learning = trainer(recipe(tmp_path, "ppo"), tmp_path / "run")
    learning.advance(weight=0.7)
    assert learning.learner.weight == 0.7
    learning.advance()
    assert learning.learner.weight == 0.1
    adapting = trainer(recipe(tmp_path, "ppo", more="target_kl = 5.0\nhorizon = 40"), tmp_path / "adapting")
    betas = [float(adapting.advance().scores["beta"]) for _ in range(3)]
    assert betas == pytest.approx([0.1 * (1 - 0.2 * 8 / 40) ** n for n in (1, 2, 3)])  # far below the target
    asked = recipe(tmp_path, "dpo")
    for step in train(asked, tmp_path / "steered"):
        if step.step == 2:
            set_weight(tmp_path / "steered", 0.0)
        if step.step == 3:
            assert step.loss == pytest.approx(math.log(2))  # beta 0: no pair is told apart


def test_a_policy_that_goes_too_far_stops_and_keeps_what_was_good(tmp_path: Path) -> None:
    asked = recipe(tmp_path, "ppo", more="most_kl = 0.001")
    with pytest.raises(Diverged, match="within preference.most_kl = 0.001 nats .*raise preference.beta from 0.1"):
        list(train(asked, tmp_path / "run"))
    steps = RunFolder(tmp_path / "run").snapshot_steps()
    assert steps and load(tmp_path / "run" / "snapshots" / f"step-{steps[-1]:07d}.safetensors").config.generates


def test_answers_that_are_all_worth_the_same_are_told(tmp_path: Path) -> None:
    asked = recipe(tmp_path, "grpo", more='reward = "ends_with_question"')
    list(train(asked, tmp_path / "run"))
    chosen = json.loads((tmp_path / "run" / "status.json").read_text())["chosen"]
    assert any("All answers of 3 steps up to step 3 were worth the same, 0" in sentence for sentence in chosen)


def test_what_cannot_be_learned_is_refused_in_a_sentence(tmp_path: Path) -> None:
    recipe(tmp_path, "ppo")
    text = (tmp_path / "ppo.toml").read_text().replace('"base"', '"stories"')
    with pytest.raises(ValueError, match="batch.size must be a multiple of preference.answers .3. and .*got 8"):
        parse_recipe(text.replace("answers = 4", "answers = 3"))
    with pytest.raises(ValueError, match="preference.answers must be at least 2"):
        parse_recipe(text.replace("answers = 4", "answers = 1").replace("ppo", "grpo"))
    same = tmp_path / "same.jsonl"
    same.write_text('{"prompt": "a", "chosen": "b", "rejected": "b"}\n')
    with pytest.raises(ValueError, match="row 1 must have two different answers"):
        Trainer(*started(recipe(tmp_path, "dpo", path="same.jsonl"), tmp_path / "same"))


def started(asked: Any, folder: Path) -> tuple[Any, ...]:
    made = trainer(recipe(folder.parent, "dpo"), folder)
    return asked, RunFolder(folder.parent / "other"), made.plan, made.peers


def test_a_policy_that_is_killed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    asked = recipe(tmp_path, "ppo", "lora")
    list(train(asked, tmp_path / "whole"))
    killed = RunFolder(tmp_path / "killed")
    process = start(tmp_path / "ppo.toml", killed.path)
    wait(killed, 2)
    process.kill()
    process.join()
    assert reached(killed) < 4
    list(train(asked, killed.path))
    ours, theirs = weights(killed.path), weights(tmp_path / "whole")
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    assert killed.read_samples() == RunFolder(tmp_path / "whole").read_samples()


def test_a_fork_of_a_policy_has_the_same_reference_and_the_same_past(tmp_path: Path) -> None:
    asked = recipe(tmp_path, "dpo", "lora")
    list(train(asked, tmp_path / "parent"))
    parent = RunFolder(tmp_path / "parent")
    step = next(kept for kept in parent.snapshot_steps() if 0 < kept < 4)
    fork("parent", step, "child", folder=tmp_path)
    child = RunFolder(tmp_path / "child")
    list(train(read_recipe(child.recipe), child.path))
    assert child.read_samples()[: step + 1] == parent.read_samples()[: step + 1]
    learner = trainer(read_recipe(child.recipe), child.path).learner
    assert isinstance(learner, PreferenceLearner)
    base = load(tmp_path / "base")
    ids = torch.tensor([base.tokenizer.encode("Anna smiled and ran").ids])
    same = Transformer(base.config).eval()  # as matrices of a file may lie transposed, and round otherwise
    same.load_state_dict(base.model.state_dict())
    assert torch.equal(learner.reference(ids), same(ids))
