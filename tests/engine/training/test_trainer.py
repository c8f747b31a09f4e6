from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.seeds import seed_for
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.config import Attention, Embedding, Norm, OutputHead
from engine.training import Recipe, RunFolder, train
from engine.training.cluster.parallel import Peers
from engine.training.launch.machine import Plan
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.parts import gradient_part
from engine.training.recipe.recipe import Batch, Objective
from engine.training.trainer import Trainer, norms_by_part

FLOAT32 = Plan("cpu", None, scaled=False, compile=False, threads=1)


def trainer(recipe: Recipe, folder: Path, plan: Plan = FLOAT32, peers: Peers | None = None) -> Trainer:
    run = RunFolder(folder)
    run.adopt(recipe)
    return Trainer(recipe, run, plan, peers or Peers())


def before_steps(learner: Trainer, look: Callable[[], None]) -> None:
    """Have `look` called when the gradients are as the optimiser will see them."""
    rule = learner.optimiser.parts[0]
    step = rule.step

    def looked() -> None:
        look()
        step()

    rule.step = looked  # type: ignore[method-assign]


def test_a_long_gradient_is_clipped_and_its_true_norm_reported(recipe: Recipe, tmp_path: Path) -> None:
    tight = replace(recipe, optimiser=replace(recipe.optimiser, clip=1e-3))
    learner = trainer(tight, tmp_path)
    clipped: list[float] = []

    def look() -> None:
        grads = [p.grad for p in learner.model.parameters() if p.grad is not None]
        clipped.append(float(torch.nn.utils.get_total_norm(grads)))

    before_steps(learner, look)
    update = learner.advance()
    assert float(update.grad_norm) > 0.1
    assert clipped == [pytest.approx(1e-3, rel=1e-3)]


def test_a_clip_of_0_leaves_the_gradient_as_it_is(recipe: Recipe, tmp_path: Path) -> None:
    learner = trainer(replace(recipe, optimiser=replace(recipe.optimiser, clip=0.0)), tmp_path)
    seen: list[float] = []

    def look() -> None:
        grads = [p.grad for p in learner.model.parameters() if p.grad is not None]
        seen.append(float(torch.nn.utils.get_total_norm(grads)))

    before_steps(learner, look)
    assert [float(learner.advance().grad_norm)] == seen and seen[0] > 1


def test_a_batch_norm_learns_its_averages_which_the_finished_model_and_a_resumed_run_have(
    recipe: Recipe, tmp_path: Path
) -> None:
    normed = replace(recipe, model=replace(recipe.model, layers=2, distinct=1, norm=Norm("batch")))
    with pytest.raises(ValueError, match="is read in 2 parts; set batch.accumulate to 1"):
        trainer(replace(normed, batch=replace(recipe.batch, accumulate=2)), tmp_path / "parts")
    steps = list(train(normed, tmp_path))
    made, snapshot = load(tmp_path / "checkpoint"), load(RunFolder(tmp_path).snapshot(steps[-1].step))
    state = made.model.state_dict()
    assert not torch.equal(state["final_norm.mean"], torch.zeros(recipe.model.d_model)) and made.report.ok
    assert all(torch.equal(tensor, snapshot.model.state_dict()[name]) for name, tensor in state.items())
    assert made.card["loss"]["held_out"] == pytest.approx(steps[-1].held_out_loss)
    again = trainer(normed, tmp_path)  # as it was saved
    assert all(torch.equal(tensor, again.model.state_dict()[name]) for name, tensor in state.items())
    held_out = again.measure()["loss"]
    assert held_out == pytest.approx(steps[-1].held_out_loss, rel=1e-5)
    assert torch.equal(again.model.state_dict()["final_norm.mean"], state["final_norm.mean"])


def test_norms_are_those_of_the_parts_of_a_model() -> None:
    names = ("embed.tokens.weight", "blocks.0.attn.q.weight", "blocks.0.norm1.bias", "final_norm.weight", "head.weight")
    lengths = (1.0, 3.0, 4.0, 6.0, 8.0)
    found = norms_by_part({name: torch.tensor([one]) for name, one in zip(names, lengths, strict=True)})
    assert {part: float(norm) for part, norm in found.items()} == {"embed": 1.0, "blocks.0": 5.0, "head": 10.0}
    assert gradient_part("encoder.blocks.11.mlp.pre.weight") == "encoder.blocks.11"
    assert gradient_part("decoder.embed.positions.weight") == gradient_part("relative.weight") == "embed"


def test_float16_scales_its_loss_and_a_saved_scale_goes_on(recipe: Recipe, tmp_path: Path) -> None:
    half = Plan("cpu", torch.float16, scaled=True, compile=False, threads=1)
    learner = trainer(recipe, tmp_path, half)
    assert learner.scaler.get_scale() == 65536.0
    losses = [float(learner.advance().loss) for _ in range(10)]
    assert all(p.dtype == torch.float32 for p in learner.model.parameters())
    assert losses[-1] < losses[0]
    learner.scaler.update(1024.0)
    learner.save_latest()
    again = trainer(recipe, tmp_path, half)
    assert again.scaler.get_scale() == 1024.0
    assert float(again.advance().loss) == float(learner.advance().loss)


def test_a_compiled_model_is_the_one_that_is_trained(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: eager(model, backend="eager", fullgraph=True))
    still = replace(recipe, model=replace(recipe.model, dropout=0.0))
    still = replace(still, machine=replace(still.machine, compile="on"))
    compiled = trainer(still, tmp_path / "compiled", replace(FLOAT32, compile=True))
    plain = trainer(still, tmp_path / "plain")
    assert [float(compiled.advance().loss) for _ in range(3)] == [float(plain.advance().loss) for _ in range(3)]
    assert compiled.measure() == plain.measure()


def test_dropout_works_in_training_and_not_in_measuring(recipe: Recipe, tmp_path: Path) -> None:
    learner = trainer(recipe, tmp_path)
    assert learner.measure() == learner.measure()
    assert learner.model.training
    examples = learner.source.batch(1)
    assert not torch.equal(learner.model(examples.ids), learner.model(examples.ids))


class Keeping(Peers):
    """One of several processes whose others are not there: what it would add to theirs is kept."""

    def __init__(self, rank: int, count: int) -> None:
        super().__init__(rank, count)
        self.kept: list[torch.Tensor] = []

    def all_reduce_sum(self, tensors: Sequence[torch.Tensor]) -> None:
        self.kept += [tensor.clone() for tensor in tensors]

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        yield


def two_heads(recipe: Recipe) -> Recipe:
    """The same, for hidden words and next sentences."""
    model = replace(
        recipe.model,
        context=128,
        attention=Attention(heads=2, mask="full"),
        embedding=Embedding(segments=2, norm=True),
        head=OutputHead("masked", bias=True, pooler=True, next_sentence=True),
    )
    data = Data(SentencePairs(30, 10), tokenizer=TokenizerRecipe("wordpiece", 300))
    return replace(recipe, model=model, data=data, objective=Objective("masked"), batch=Batch(4, 128))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("heads", [1, 2])
def test_what_several_processes_add_up_is_what_one_computes(
    recipe: Recipe, tmp_path: Path, count: int, heads: int
) -> None:
    """Gradients, loss and accuracies, also where the rows do not divide evenly or have unequal numbers of targets."""
    still = replace(recipe, model=replace(recipe.model, dropout=0.0))
    still = two_heads(still) if heads == 2 else still

    def contribution(rank: int, count: int) -> list[torch.Tensor]:
        peers = Keeping(rank, count)
        trainer(still, tmp_path / f"{rank}-of-{count}", peers=peers).advance()
        return peers.kept

    parts = [contribution(rank, count) for rank in range(count)]
    for whole, *shares in zip(contribution(0, 1), *parts, strict=True):
        torch.testing.assert_close(sum(shares), whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_batch_in_parts_is_the_undivided_batch(recipe: Recipe, tmp_path: Path, parts: int, heads: int) -> None:
    still = replace(recipe, model=replace(recipe.model, dropout=0.0))
    still = two_heads(still) if heads == 2 else still
    still = replace(still, optimiser=replace(still.optimiser, kind="sgd"))  # Adam makes steps of roundings around 0
    divided = replace(still, batch=replace(still.batch, accumulate=parts))
    one, other = trainer(still, tmp_path / "whole"), trainer(divided, tmp_path / "parts")
    for _ in range(3):
        ours, theirs = one.advance().read(), other.advance().read()
        assert ours.scores == pytest.approx(theirs.scores, rel=1e-5)
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=1e-4)
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_each_part_of_each_process_needs_a_row(recipe: Recipe, tmp_path: Path) -> None:
    divided = replace(recipe, batch=replace(recipe.batch, accumulate=3))
    with pytest.raises(ValueError, match="batch.size must be at least 6, one row for each of 3 parts in each of 2"):
        trainer(divided, tmp_path, peers=Keeping(0, 2))
    with pytest.raises(ValueError, match="batch.accumulate must not exceed batch.size .4., got 5"):
        replace(recipe.batch, accumulate=5)


def test_smoothing_is_in_the_loss_of_training_and_not_in_what_is_measured(recipe: Recipe, tmp_path: Path) -> None:
    smooth = replace(recipe, objective=replace(recipe.objective, smoothing=0.2))
    one, other = trainer(recipe, tmp_path / "sharp"), trainer(smooth, tmp_path / "smooth")
    assert one.measure() == other.measure()
    examples = other.source.batch(1)
    torch.manual_seed(seed_for(recipe.seed, "dropout", 1, 0))
    logits = other.model(examples.ids).flatten(0, 1)
    expected = torch.nn.functional.cross_entropy(logits, examples.targets.flatten(), label_smoothing=0.2)
    assert other.advance().loss.item() == pytest.approx(expected.item(), rel=1e-5)
    with pytest.raises(ValueError, match="objective.smoothing must be a share in"):
        Objective(smoothing=1.0)


def test_closely_gives_the_gradient_by_part_and_changes_nothing(recipe: Recipe, tmp_path: Path) -> None:
    one, other = trainer(recipe, tmp_path / "one"), trainer(recipe, tmp_path / "other")
    seen: list[dict[str, float]] = []

    def look() -> None:
        squares: dict[str, float] = {}
        for name, p in one.model.named_parameters():
            assert p.grad is not None
            part = "blocks.0" if name.startswith("blocks") else "embed" if name.startswith("embed") else "head"
            squares[part] = squares.get(part, 0.0) + float(p.grad.square().sum())
        seen.append({part: square**0.5 for part, square in squares.items()})

    loose = replace(one.recipe, optimiser=replace(one.recipe.optimiser, clip=1e-3))
    one.recipe, other.recipe = loose, loose
    before = [p.detach().clone() for p in one.model.parameters()]
    before_steps(one, look)
    update, theirs = one.advance(closely=True), other.advance()
    factor = 1e-3 / float(update.grad_norm)
    assert {part: float(norm) * factor for part, norm in update.gradients.items()} == pytest.approx(seen[0], rel=1e-3)
    assert theirs.gradients == {}
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.model.parameters(), before, strict=True))
