import torch

from engine.config import MLP, Attention, ModelConfig
from engine.model import Transformer, initialise
from engine.training.optimiser import adamw, decays, moments, restore
from engine.training.recipe import Optimiser

CONFIG = ModelConfig(
    vocab_size=11, context=8, d_model=8, layers=1, attention=Attention(heads=2), mlp=MLP(d_mlp=16), tied=False
)


def test_matrices_decay_and_norms_biases_and_embeddings_do_not() -> None:
    decaying = {name for name, p in Transformer(CONFIG).named_parameters() if decays(name, p)}
    matrices = ("attn.q", "attn.k", "attn.v", "attn.out", "mlp.pre", "mlp.out")
    assert decaying == {f"blocks.0.{name}.weight" for name in matrices} | {"head.weight"}


def test_every_parameter_is_in_one_group_and_only_one_group_decays() -> None:
    model = Transformer(CONFIG)
    groups = adamw(model, Optimiser(weight_decay=0.1)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    ids = [id(p) for group in groups for p in group["params"]]
    assert sorted(ids) == sorted(map(id, model.parameters()))


def test_with_no_gradient_a_step_shrinks_what_decays_by_lr_times_decay_and_nothing_else() -> None:
    model = initialise(Transformer(CONFIG), 0)
    optimiser = adamw(model, Optimiser(lr=0.5, weight_decay=0.1))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    for name, p in model.named_parameters():
        factor = 0.95 if decays(name, p) else 1.0
        assert torch.allclose(p, before[name] * factor, rtol=1e-6), name


def test_a_restored_optimiser_goes_on_exactly() -> None:
    def fresh() -> tuple[Transformer, torch.optim.AdamW]:
        model = initialise(Transformer(CONFIG), 0)
        return model, adamw(model, Optimiser())

    def update(model: Transformer, optimiser: torch.optim.AdamW) -> None:
        model(torch.arange(8)[None]).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    one, its = fresh()
    update(one, its)
    other, theirs = fresh()
    other.load_state_dict({name: tensor.clone() for name, tensor in one.state_dict().items()})
    restore(other, theirs, {name: tensor.clone() for name, tensor in moments(one, its).items()})
    update(one, its)
    update(other, theirs)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
