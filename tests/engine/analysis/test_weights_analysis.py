"""What is said of weights against numpy, torch's own decompositions, scikit-learn and the model's forward pass."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine import load
from engine.analysis.weights import by_head, circuit, histogram, matrices, neighbours, projection, spectrum, tsne
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Norm, OutputHead, Patches, Positions
from engine.runtime.run import run
from tests.engine import tiny

WIDE = Attention(4, mask="full")
MODELS = {
    "gpt": tiny.CONFIG,
    "untied, gated, rms, grouped": replace(
        tiny.config("rotary", {"kv_heads": 2, "qk_norm": "head"}, tied=False),
        mlp=MLP(20, "silu", gated=True, bias=False),
        norm=Norm("rms"),
    ),
    "batch norm": tiny.config(norm=Norm("batch")),
    "norms around": tiny.config(norm=Norm("rms", "around")),
    "norms of outputs": tiny.config(norm=Norm("rms", "output")),
    "parallel": tiny.config("alibi", sublayers="parallel"),
    "bert": tiny.config(
        attention={"mask": "full"},
        norm=Norm(place="after"),
        embedding=Embedding(segments=2, norm=True),
        head=OutputHead("masked", bias=True, pooler=True, next_sentence=True),
    ),
    "classes": tiny.config(attention={"mask": "full"}, head=OutputHead("sequence", classes=3)),
    "pair": tiny.config(encoder=Encoder(2, WIDE, MLP(12))),
    "pair, norms after": tiny.config("relative", norm=Norm(place="after"), encoder=Encoder(1, WIDE, MLP(12))),
    "narrow tokens": tiny.config(embedding=Embedding(width=6, mapped="tokens")),
    "shared layers": tiny.config(
        attention={"mask": "full"},
        distinct=1,
        norm=Norm(place="after"),
        embedding=Embedding(segments=2, norm=True, width=6),
        head=OutputHead("masked"),
    ),
    "disentangled": tiny.config(
        Positions("disentangled", buckets=4, farthest=6, own_maps=True, normed=True, added=True),
        attention={"mask": "full"},
    ),
    "replaced?": tiny.config(attention={"mask": "full"}, head=OutputHead("token", classes=1, dense=True)),
    "distilled picture": ModelConfig(
        *(1, 11, 16, 2, WIDE, MLP(20)),
        embedding=Embedding(patches=Patches(12, 4, 1, distilled=True)),
        head=OutputHead("sequence", classes=3, averaged=True),
    ),
    "picture": ModelConfig(
        1,
        10,
        16,
        2,
        WIDE,
        MLP(20),
        embedding=Embedding(patches=Patches(12, 4, 1)),
        head=OutputHead("sequence", classes=3),
    ),
}


class FirstUse(TorchFunctionMode):
    """The parameters in the order in which operations come to read them."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[int, None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in {"__get__", "numel"}:  # what asks how large they are computes nothing
            for value in (*args, *(kwargs or {}).values()):
                self.read |= {id(value): None} if isinstance(value, torch.nn.Parameter) else {}
        return func(*args, **(kwargs or {}))


def read_in_order(model: Any, *given: Any) -> list[str]:
    with torch.no_grad(), FirstUse() as use:
        model(*given)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [names[each] for each in use.read]


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_is_listed_once_in_the_order_of_the_forward_pass(name: str) -> None:
    model = tiny.model(MODELS[name])
    listed = matrices(model)
    assert sorted(each.name for each in listed) == sorted(n for n, _ in model.named_parameters())
    given = tiny.normal(1, 1, 12, 12) if "picture" in name else torch.tensor([tiny.IDS])
    ahead = re.compile(r"(^|\.)(relative|distances|distances_norm)\.")  # made once, ahead of all layers
    early = [n for n in (each.name for each in listed) if not ahead.search(n)]
    assert early == [n for n in read_in_order(model, given) if not ahead.search(n)]
    for each in listed:
        parameter = model.get_parameter(each.name)
        assert (each.shape, each.dtype) == (tuple(parameter.shape), "float32")


def test_a_tensor_says_where_it_stands_and_what_it_is() -> None:
    listed = {each.name: each for each in matrices(tiny.model(MODELS["pair"]))}
    table = listed["encoder.embed.tokens.weight"]
    assert table.others == ("decoder.embed.tokens.weight", "head.weight")
    assert (table.side, table.part, table.layer, table.kind, table.title) == (
        "encoder",
        "embed",
        None,
        "matrix",
        "tokens, W_E",
    )
    keys = listed["decoder.blocks.1.cross_attn.k.weight"]
    assert (keys.side, keys.part, keys.layer, keys.kind) == ("decoder", "cross_attn", 1, "matrix")
    assert keys.title == "cross keys, W_K"
    assert keys.family == "decoder.blocks.*.cross_attn.k.weight"
    assert listed["decoder.blocks.2.norm_cross.bias"].kind == "norm"
    assert listed["encoder.blocks.1.mlp.pre.bias"].kind == "bias"


def test_layers_that_share_their_tensors_are_listed_once_with_all_names() -> None:
    listed = matrices(tiny.model(MODELS["shared layers"]))
    (shared,) = [each for each in listed if each.family == "blocks.*.attn.q.weight"]
    assert (shared.name, shared.layer) == ("blocks.0.attn.q.weight", 0)
    assert shared.others == ("blocks.1.attn.q.weight", "blocks.2.attn.q.weight")
    assert [each.others for each in listed if each.name == "embed.tokens.weight"] == [("head.weight",)]


def test_an_untied_head_is_a_tensor_of_its_own() -> None:
    listed = {each.name: each for each in matrices(tiny.model(MODELS["untied, gated, rms, grouped"]))}
    assert listed["embed.tokens.weight"].others == ()
    assert listed["head.weight"].title == "head, W_U"
    assert listed["blocks.0.attn.q_norm.weight"].kind == "norm"


def heavy(*shape: int) -> Tensor:
    """A few elements far from all others."""
    values = tiny.normal(*shape)
    values.view(-1)[::997] *= 40
    return values


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("bins", [101, 8])
def test_a_histogram_equals_numpys(dtype: torch.dtype, bins: int) -> None:
    tensor = heavy(700, 800).to(dtype)
    found = histogram(tensor, bins)
    values = tensor.double().numpy().ravel()
    limit = 6 * np.sqrt((values**2).mean())
    assert limit < abs(values).max()
    edges = np.linspace(-limit, limit, bins + 1)
    expected, _ = np.histogram(values.clip(-limit, limit), edges)
    torch.testing.assert_close(found.edges, torch.from_numpy(edges), rtol=1e-12, atol=0)
    assert abs(found.counts.numpy() - expected).sum() <= 2  # an element may lie on an edge but for rounding
    assert found.counts.sum() == values.size
    assert found.outside == (abs(values) > limit).sum() > 0
    assert (found.min, found.max) == (values.min(), values.max())
    assert found.mean == pytest.approx(values.mean(), abs=1e-12)
    assert found.std == pytest.approx(values.std(), rel=1e-10)
    assert found.norm == pytest.approx(np.linalg.norm(values), rel=1e-12)
    assert found.zeros == (values == 0).sum()


def test_a_histogram_reaches_as_far_as_the_weights_and_no_further() -> None:
    found = histogram(torch.tensor([[-0.5, 0.0, 0.25], [0.0, 0.25, 0.25]]), bins=4)
    assert found.edges.tolist() == [-0.5, -0.25, 0.0, 0.25, 0.5]
    assert found.counts.tolist() == [1, 0, 2, 3]
    assert (found.outside, found.zeros) == (0, 2)


def test_weights_close_to_one_number_keep_their_deviation() -> None:
    values = 1 + 1e-6 * tiny.normal(5000).double()
    assert histogram(values).std == pytest.approx(values.numpy().std(), rel=1e-6)


def test_zeros_are_counted_in_the_middle() -> None:
    found = histogram(torch.zeros(7), bins=3)
    assert found.counts.tolist() == [0, 7, 0]
    assert (found.std, found.norm, found.zeros) == (0.0, 0.0, 7)


def test_a_histogram_leaves_the_tensor_as_it_was() -> None:
    tensor = heavy(300, 20).double()
    before = tensor.clone()
    histogram(tensor)
    assert torch.equal(tensor, before)


@pytest.mark.parametrize("given", [torch.zeros(0), torch.zeros(3, 0)], ids=str)
def test_nothing_to_count_is_said(given: Tensor) -> None:
    with pytest.raises(ValueError, match="something to count"):
        histogram(given)
    with pytest.raises(ValueError, match="at least 1 bin, got 0"):
        histogram(torch.ones(1), bins=0)


@pytest.mark.parametrize("shape", [(40, 300), (5000, 33), (64, 64), (1, 7), (3, 2)], ids=str)
def test_singular_values_equal_a_decomposition_in_double(shape: tuple[int, int]) -> None:
    matrix = tiny.normal(*shape) * torch.logspace(0, -4, shape[1])
    expected = np.linalg.svd(matrix.double().numpy(), compute_uv=False)
    found = spectrum(matrix)
    np.testing.assert_allclose(found.values.numpy(), expected, atol=3e-8 * expected[0], rtol=1e-6)
    share = expected / expected.sum()
    assert found.rank == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-6)
    assert found.stable_rank == pytest.approx(np.linalg.norm(expected) ** 2 / expected[0] ** 2, rel=1e-9)
    energy = np.cumsum(expected**2) / (expected**2).sum()
    assert found.energy == 1 + int(np.argmax(energy >= 0.9))


def test_condition_and_ranks_of_matrices_known_by_heart() -> None:
    identity = spectrum(torch.eye(6))
    assert identity.rank == pytest.approx(6) and identity.stable_rank == pytest.approx(6)
    assert (identity.condition, identity.energy) == (1.0, 6)
    assert spectrum(torch.diag(torch.tensor([8.0, 4.0, 2.0]))).condition == pytest.approx(4.0)
    outer = spectrum(tiny.normal(30, 1) @ tiny.normal(1, 50, seed=1))
    assert outer.values.count_nonzero() == 1
    assert outer.rank == pytest.approx(1.0) and outer.condition == float("inf") and outer.energy == 1
    nothing = spectrum(torch.zeros(4, 3))
    assert (nothing.rank, nothing.stable_rank, nothing.energy) == (0.0, 0.0, 0)


def test_a_spectrum_of_half_precision_is_that_of_its_numbers() -> None:
    matrix = tiny.normal(90, 40).bfloat16()
    expected = torch.linalg.svdvals(matrix.double())
    torch.testing.assert_close(spectrum(matrix).values, expected, atol=1e-7, rtol=0)
    with pytest.raises(ValueError, match="rows x columns"):
        spectrum(torch.ones(4))


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_the_qk_circuit_gives_the_scores_and_ov_the_output(kv_heads: int) -> None:
    """Without biases, scores = x QK x^T / sqrt(d_head), and a head's output is pattern x OV."""
    changes = {"kv_heads": kv_heads, "bias": False, "out_bias": False}
    model = tiny.model(tiny.config("none", changes, norm=Norm("none")))
    trace = run(model, tiny.IDS, keep=["*", "blocks.1.attn.head_out"])
    x = trace["blocks.1.resid_pre"][0]
    for head in range(4):
        scores = x @ circuit(model, 1, head, "qk").matrix @ x.T / 2
        torch.testing.assert_close(trace["blocks.1.attn.scores"][0, head], scores, atol=1e-4, rtol=1e-4)
        out = trace["blocks.1.attn.pattern"][0, head] @ x @ circuit(model, 1, head, "ov").matrix
        torch.testing.assert_close(trace["blocks.1.attn.head_out"][0, :, head], out, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("which", ["qk", "ov"])
def test_a_circuits_spectrum_is_that_of_its_product(which: Any) -> None:
    made = circuit(tiny.model(), 0, 2, which)
    assert made.matrix.shape == (16, 16)
    expected = torch.linalg.svdvals(made.left.double() @ made.right.double())
    torch.testing.assert_close(made.spectrum.values, expected[:4], rtol=1e-9, atol=0)
    assert expected[4] < 1e-12


def test_circuits_of_two_stacks() -> None:
    model = tiny.model(MODELS["pair"])
    q, k = (model.get_parameter(f"decoder.blocks.1.cross_attn.{x}.weight")[8:12] for x in "qk")
    torch.testing.assert_close(circuit(model, 1, 2, "qk", "decoder", crosses=True).matrix, q.T @ k)
    q, k = (model.get_parameter(f"encoder.blocks.0.attn.{x}.weight")[:4] for x in "qk")
    torch.testing.assert_close(circuit(model, 0, 0, "qk", "encoder").matrix, q.T @ k)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("gpt", (3, 0, "qk"), "layer must be 0 to 2, got 3"),
        ("gpt", (0, 4, "qk"), "head must be 0 to 3, got 4"),
        ("gpt", (0, -1, "ov"), "head must be 0 to 3, got -1"),
        ("gpt", (0, 0, "qk", "encoder"), "side must be '' for this model, got 'encoder'"),
        ("pair", (0, 0, "qk"), "side must be 'encoder' or 'decoder' for this model, got ''"),
        ("pair", (0, 0, "qk", "encoder", True), "only the decoder behind an encoder attends across"),
    ],
    ids=str,
)
def test_what_a_model_has_not_is_said(model: str, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        circuit(tiny.model(MODELS[model]), *given)


def test_the_matrices_of_an_attention_by_head() -> None:
    model = tiny.model(tiny.config(attention={"kv_heads": 2}))
    weight = model.get_parameter("blocks.2.attn.k.weight")
    assert torch.equal(by_head(model, "blocks.2.attn.k.weight"), torch.stack([weight[:4], weight[4:]]))
    out = model.get_parameter("blocks.2.attn.out.weight")
    assert torch.equal(by_head(model, "blocks.2.attn.out.weight")[3], out[:, 12:].T)
    pair = tiny.model(MODELS["pair"])
    assert by_head(pair, "decoder.blocks.0.cross_attn.q.weight").shape == (4, 4, 16)
    for name in ("blocks.2.mlp.pre.weight", "blocks.2.attn.q.bias", "nothing"):
        with pytest.raises(ValueError, match=f"made of heads, and not {name}"):
            by_head(model, name)


def test_a_projection_equals_scikit_learns() -> None:
    from sklearn.decomposition import PCA

    table = tiny.normal(900, 12) * torch.linspace(3, 1, 12) + 5
    reference = PCA(2, svd_solver="full")
    expected = torch.from_numpy(reference.fit_transform(table.double().numpy()))
    found = projection(table)
    for axis in (0, 1):
        direction = reference.components_[axis]
        sign = np.sign(direction[abs(direction).argmax()])
        torch.testing.assert_close(found.points[:, axis].double(), sign * expected[:, axis], atol=1e-5, rtol=1e-5)
    assert found.explained == pytest.approx(tuple(reference.explained_variance_ratio_), rel=1e-9)
    assert found.ids.tolist() == list(range(900))


def test_a_projection_of_few_numbers() -> None:
    line = projection(torch.tensor([[1.0], [2.0], [6.0]]))
    assert line.points.tolist() == [[-2.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]
    assert line.explained == (1.0, 0.0)
    assert projection(torch.ones(3, 2)).explained == (0.0, 0.0)
    with pytest.raises(ValueError, match="at least 2 rows to show, got \\(1, 2\\)"):
        projection(torch.ones(1, 2))
    with pytest.raises(ValueError, match="at least 4 rows to show, got \\(3, 2\\)"):
        projection(torch.ones(3, 2), "tsne")


def test_tsne_reads_evenly_spread_rows_keeps_groups_together_and_repeats_itself() -> None:
    centres = torch.eye(3, 8)[torch.arange(240) % 3] * 20
    table = centres + tiny.normal(240, 8)
    found = projection(table, "tsne", most=90)
    assert found.explained is None
    assert found.ids.tolist() == [i * 240 // 90 for i in range(90)]
    assert torch.equal(found.points, projection(table, "tsne", most=90).points)
    groups = found.ids % 3
    apart = torch.cdist(found.points, found.points)
    apart.fill_diagonal_(float("inf"))
    assert torch.equal(groups[apart.argmin(1)], groups)


def test_tsne_descends_as_far_as_scikit_learns_along_the_gradient() -> None:
    from sklearn.manifold import TSNE

    rows = (torch.eye(3, 8)[torch.arange(90) % 3] * 20 + tiny.normal(90, 8)).double()
    alike, start = tsne.affinities(rows, 20.0), rows[:, :3] * 1e-4

    def divergence(points: torch.Tensor) -> torch.Tensor:
        close = 1 / (1 + (points[:, None] - points).square().sum(-1))
        shares = close / (close.sum() - len(points))
        return (alike * (alike + torch.eye(len(alike))).log()).sum() - (alike * shares.log()).sum()

    theirs = TSNE(2, perplexity=20.0, init=start[:, :2].numpy(), method="exact")
    points = torch.from_numpy(theirs.fit_transform(rows.numpy()))
    assert float(divergence(points)) == pytest.approx(theirs.kl_divergence_, rel=1e-4)
    for axes in (2, 3):
        assert float(divergence(tsne.embed(rows, start[:, :axes], 20.0).double())) < 1.15 * theirs.kl_divergence_
    points = tiny.normal(90, 3).double().requires_grad_()
    divergence(points).backward()
    slope = tsne.gradient(alike.float(), points.detach().float())
    torch.testing.assert_close(slope.double(), points.grad, atol=1e-6, rtol=1e-4)


def test_neighbours_have_the_largest_cosine() -> None:
    table = tiny.normal(3000, 9)
    table[4] = 0
    unit = table.double() / table.double().norm(dim=1, keepdim=True).clamp(min=1e-30)
    cosine = unit @ unit[17]
    found = neighbours(table, 17, 6)
    expected = cosine.topk(7)
    assert expected.indices[0] == 17
    assert found.ids.tolist() == expected.indices[1:].tolist()
    torch.testing.assert_close(found.similarity.double(), expected.values[1:], atol=1e-6, rtol=0)
    assert neighbours(table, 4, 3).similarity.tolist() == [0, 0, 0]
    assert len(neighbours(table[:3], 0, 10).ids) == 2
    with pytest.raises(ValueError, match="0 to 2999, got 3000"):
        neighbours(table, 3000)


def test_a_table_too_large_for_its_covariance_has_the_same_components(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load("stories").model.embed.tokens.weight + 0.3
    whole = projection(table, axes=3)
    monkeypatch.setitem(projection.__globals__, "LARGE", 0)
    found = projection(table, axes=3)
    assert found.explained == pytest.approx(whole.explained, rel=1e-4)
    spread = whole.points.std(0)
    assert float(((found.points - whole.points) / spread).abs().max()) < 1e-2
    narrow = torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert projection(narrow, axes=2).explained == pytest.approx((1.0, 0.0), abs=1e-6)
