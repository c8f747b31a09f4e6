from collections.abc import Callable
from itertools import chain

import pytest
import torch

from engine.checkpoints.families import FAMILIES
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.training.recipe.optimiser import (
    Optimisers,
    build_optimisers,
    decays,
    is_muon_matrix,
    load_optimiser_state,
    optimiser_state,
)
from engine.training.recipe.recipe import Optimiser

CONFIG = ModelConfig(
    vocab_size=11, context=8, d_model=8, layers=1, attention=Attention(heads=2), mlp=MLP(d_mlp=16), tied=False
)
MATRICES = {f"blocks.0.{name}.weight" for name in ("attn.q", "attn.k", "attn.v", "attn.out", "mlp.pre", "mlp.out")}
KINDS = [
    Optimiser(eps=1e-4),  # the gradient of a key bias is 0 but for rounding, which a smaller one makes a step of
    Optimiser(kind="sgd", lr=0.1),
    Optimiser(kind="sgd", lr=0.1, momentum=0.9, nesterov=False),
    Optimiser(kind="sgd", lr=0.1, momentum=0.0),
    Optimiser(kind="muon", lr=0.01, eps=1e-4),
]
SCALER = torch.amp.GradScaler("cpu", enabled=False)


def backward(model: Transformer, index: int) -> None:
    ids = torch.randint(11, (2, 8), generator=torch.Generator().manual_seed(index))
    model(ids).square().mean().backward()


def equal(one: Transformer, other: Transformer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_matrices_decay_and_norms_biases_and_embeddings_do_not() -> None:
    decaying = {name for name, p in Transformer(CONFIG).named_parameters() if decays(name, p)}
    assert decaying == MATRICES | {"head.weight"}


def test_muon_takes_the_matrices_of_the_blocks_and_no_head_or_table() -> None:
    assert {name for name, p in Transformer(CONFIG).named_parameters() if is_muon_matrix(name, p)} == MATRICES
    for family in chain.from_iterable(FAMILIES.values()):
        outside = (theirs for row in family.rows if row[1] for theirs in ([row[1]] if type(row[1]) is str else row[1]))
        assert not any(is_muon_matrix(name, torch.empty(2, 2)) for name in outside if "blocks." not in name)
    assert not is_muon_matrix("value.weight", torch.empty(1, 2))


@pytest.mark.parametrize("recipe", KINDS, ids=lambda recipe: f"{recipe.kind} {recipe.momentum}")
def test_every_parameter_is_in_one_group_and_only_what_should_decays(recipe: Optimiser) -> None:
    model = Transformer(CONFIG)
    groups = list(build_optimisers(model, recipe).groups)
    ids = [id(p) for group in groups for p in group["params"]]
    assert sorted(ids) == sorted(map(id, model.parameters()))
    decaying = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    assert decaying == {id(p) for name, p in model.named_parameters() if decays(name, p)}


def test_with_no_gradient_a_step_shrinks_what_decays_by_lr_times_decay_and_nothing_else() -> None:
    model = initialise(Transformer(CONFIG), 0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    build_optimisers(model, Optimiser(lr=0.5, weight_decay=0.1)).step(SCALER, 0.5)
    for name, p in model.named_parameters():
        factor = 0.95 if decays(name, p) else 1.0
        assert torch.allclose(p, before[name] * factor, rtol=1e-6), name


def plain_optimisers(model: Transformer, recipe: Optimiser) -> list[torch.optim.Optimizer]:
    """PyTorch's own, not fused, parameter by parameter."""
    made: list[torch.optim.Optimizer] = []
    for name, p in model.named_parameters():
        decay = recipe.weight_decay if decays(name, p) else 0.0
        if recipe.kind == "sgd":
            nesterov = recipe.nesterov and recipe.momentum > 0
            made.append(torch.optim.SGD([p], recipe.lr, recipe.momentum, weight_decay=decay, nesterov=nesterov))
        elif recipe.kind == "muon" and name in MATRICES:
            made.append(torch.optim.Muon([p], recipe.lr, decay, 0.95, adjust_lr_fn="match_rms_adamw"))
        else:
            made.append(torch.optim.AdamW([p], recipe.lr, recipe.betas, recipe.eps, decay))
    return made


@pytest.mark.parametrize("recipe", KINDS, ids=lambda recipe: f"{recipe.kind} {recipe.momentum}")
def test_five_steps_are_those_of_a_plain_loop(recipe: Optimiser) -> None:
    ours, theirs = initialise(Transformer(CONFIG), 0), initialise(Transformer(CONFIG), 0)
    optimiser, parts = build_optimisers(ours, recipe), plain_optimisers(theirs, recipe)
    for index in range(5):
        lr = recipe.lr * (index + 1) / 5
        backward(ours, index)
        optimiser.step(SCALER, lr)
        backward(theirs, index)
        for part in parts:
            part.param_groups[0]["lr"] = lr
            part.step()
            part.zero_grad()
    assert not equal(ours, initialise(Transformer(CONFIG), 0))
    # Muon makes its matrices orthogonal in bfloat16, in which processors round otherwise what differs by the last bit.
    atol = recipe.lr / 50 if recipe.kind == "muon" else 1e-6
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=atol, msg=lambda said, name=name: f"{name}: {said}")


def fused(model: Transformer, recipe: Optimiser) -> list[torch.optim.Optimizer]:
    """Optimisers of PyTorch, each parameter in one with its own weight decay."""
    named = list(model.named_parameters())
    if recipe.kind == "muon":
        matrices = [p for name, p in named if name in MATRICES]
        like = {"momentum": recipe.momentum, "adjust_lr_fn": "match_rms_adamw"}
        own = torch.optim.Muon(matrices, recipe.lr, recipe.weight_decay, **like)  # type: ignore[arg-type]
        return [own, *fused_adamw([(name, p) for name, p in named if name not in MATRICES], recipe)]
    if recipe.kind == "adamw":
        return fused_adamw(named, recipe)
    nesterov = recipe.nesterov and recipe.momentum > 0
    shared = {"momentum": recipe.momentum, "nesterov": nesterov}
    return [
        torch.optim.SGD([p], recipe.lr, weight_decay=recipe.weight_decay if decays(name, p) else 0.0, **shared)  # type: ignore[arg-type]
        for name, p in named
    ]


def fused_adamw(named: list[tuple[str, torch.nn.Parameter]], recipe: Optimiser) -> list[torch.optim.Optimizer]:
    decay = {name: recipe.weight_decay if decays(name, p) else 0.0 for name, p in named}
    return [torch.optim.AdamW([p], recipe.lr, recipe.betas, recipe.eps, decay[name], fused=True) for name, p in named]


@pytest.mark.parametrize("recipe", KINDS, ids=lambda recipe: f"{recipe.kind} {recipe.momentum}")
def test_steps_are_bit_for_bit_those_of_the_optimisers_of_pytorch(recipe: Optimiser) -> None:
    ours, theirs = initialise(Transformer(CONFIG), 0), initialise(Transformer(CONFIG), 0)
    optimiser, parts = build_optimisers(ours, recipe), fused(theirs, recipe)
    for index in range(3):
        backward(ours, index)
        optimiser.step(SCALER, recipe.lr)
        backward(theirs, index)
        for part in parts:
            part.step()
            part.zero_grad()
    assert equal(ours, theirs)


def after(kind: Optimiser, steps: int) -> tuple[Transformer, Optimisers]:
    model = initialise(Transformer(CONFIG), 0)
    made = build_optimisers(model, kind)
    for index in range(steps):
        backward(model, index)
        made.step(SCALER, kind.lr)
    return model, made


@pytest.mark.parametrize("recipe", KINDS, ids=lambda recipe: f"{recipe.kind} {recipe.momentum}")
def test_a_restored_optimiser_goes_on_exactly(recipe: Optimiser) -> None:
    one, its = after(recipe, 2)
    other, theirs = after(recipe, 0)
    other.load_state_dict({name: tensor.clone() for name, tensor in one.state_dict().items()})
    load_optimiser_state(other, theirs, {name: tensor.clone() for name, tensor in optimiser_state(one, its).items()})
    for model, optimiser in ((one, its), (other, theirs)):
        backward(model, 2)
        optimiser.step(SCALER, recipe.lr)
    assert equal(one, other)
    assert not equal(one, after(recipe, 2)[0])


NAMES = {"adamw": ["step", "exp_avg", "exp_avg_sq"], "sgd": ["momentum_buffer"], "muon": ["momentum_buffer"]}


@pytest.mark.parametrize("kind", NAMES)
def test_the_state_has_the_names_that_runs_were_saved_with(kind: str) -> None:
    """latest/ of an older run holds these names, and goes on."""
    model, made = after(Optimiser(kind=kind), 1)  # type: ignore[arg-type]
    name = "blocks.0.attn.q.weight"
    parameter = model.get_parameter(name)
    assert [key for key in optimiser_state(model, made) if key.endswith(f".{name}")] == [
        f"{key}.{name}" for key in NAMES[kind]
    ]
    written = {f"{key}.{name}": torch.ones(() if key == "step" else parameter.shape) for key in NAMES[kind]}
    load_optimiser_state(model, made, written)
    state = made.optimizer_of(parameter).state[parameter]
    assert all(torch.equal(state[key], written[f"{key}.{name}"]) for key in NAMES[kind])


def test_a_gradient_that_comes_later_begins_its_own_momentum() -> None:
    recipe = Optimiser(kind="sgd", lr=0.1, momentum=0.9, nesterov=False, weight_decay=0.0)
    model = initialise(Transformer(CONFIG), 0)
    late, made = model.get_parameter("head.weight"), build_optimisers(model, recipe)
    start = late.detach().clone()
    for index in range(3):
        for p in model.parameters():
            p.grad = None if p is late and index == 0 else torch.ones_like(p)
        made.step(SCALER, recipe.lr)
    torch.testing.assert_close(late.detach(), start - 0.1 * (1 + 1.9))
    torch.testing.assert_close(made.optimizer_of(late).state[late]["momentum_buffer"], torch.full_like(late, 1.9))


def test_a_memory_that_is_not_whole_is_refused_and_one_of_another_kind_begins_anew() -> None:
    model, made = after(Optimiser(), 1)
    kept = optimiser_state(model, made)
    del kept["exp_avg_sq.head.weight"]
    with pytest.raises(ValueError, match="must hold exp_avg_sq.head.weight"):
        load_optimiser_state(model, made, kept)
    with pytest.raises(ValueError, match="must hold step.embed"):
        load_optimiser_state(model, made, {})
    kept = optimiser_state(model, made)
    kept["exp_avg.head.weight"] = kept["exp_avg.head.weight"][1:]
    with pytest.raises(ValueError, match=r"exp_avg.head.weight .* must have the shape \[11, 8\], got \[10, 8\]"):
        load_optimiser_state(model, made, kept)
    other = build_optimisers(model, Optimiser(kind="sgd"))
    load_optimiser_state(other_model := model, other, optimiser_state(model, made))
    assert all(not other.optimizer_of(p).state[p] for p in other_model.parameters())


def test_the_recipe_says_what_is_wrong() -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Optimiser(momentum=1.0), "optimiser.momentum must be in .0, 1., got 1.0"),
        (lambda: Optimiser(lr=0.0), "optimiser.lr must be above 0"),
    ]
    for make, about in cases:
        with pytest.raises(ValueError, match=about):
            make()
