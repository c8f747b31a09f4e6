"""What the page about a checkpoint draws is what its tensors hold."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pytest
import torch

from engine import load
from engine.analysis.parity import Layer, Parity
from engine.analysis.sizes import count
from engine.checkpoints import Checkpoint, Report, TensorRow
from engine.checkpoints.facts import read_facts
from engine.checkpoints.locate import locate
from engine.model.config import MLP, Attention, Encoder, ModelConfig, OtherRotation, Positions, RotaryScaling
from engine.model.transformer import Transformer, initialise
from views.checkpoint import charts, embedding, weights
from views.checkpoint import checkpoint as view
from views.checkpoint.weights import Weight
from views.core.payload import unpack
from views.core.theme import Shade

STORIES = load("stories")
GROUPED = ModelConfig(
    31, 16, 24, 2, Attention(6, kv_heads=2, bias=False, out_bias=False), MLP(20, gated=True), Positions("rotary"),
    tied=False,
)  # fmt: skip
TWO = ModelConfig(31, 16, 24, 2, Attention(3), MLP(20), encoder=Encoder(2, Attention(3, mask="full"), MLP(20)))


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As the server computes: many small products wait for each other's threads otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(config: ModelConfig) -> Transformer:
    return initialise(Transformer(config), 0).requires_grad_(False)


def test_the_card_says_what_the_checkpoint_is() -> None:
    header, _ = unpack(view.card("stories", STORIES))
    found = read_facts(locate("stories"), STORIES.card)
    facts = dict([*view.facts(STORIES, found), *view.config_facts(STORIES.config)])
    assert facts["format"] == "gpt2 · GPT2LMHeadModel" and facts["precision"] == "float32"
    assert facts["tokenizer"] == "BPE, 1,024 tokens" and facts["positions"] == "learned, up to 256"
    assert facts["blocks"] == "4 × (4 causal heads, head size 32, MLP 512 gelu tanh)"
    assert header["model"]["total"] == count(STORIES.config) == 957_184
    assert view.ledger(STORIES.report) == {"loaded": 52, "tied": 1, "dropped": 0, "missing": 0, "unexpected": 0}
    held_out = load("everyday").card["perplexity"]["held_out"]
    assert ("perplexity", f"{held_out:.3g}, held out") in view.facts(load("everyday"), None)
    whole, sentence, counts = view.account(STORIES.report)
    assert whole and sentence == "53 tensors, every one accounted for"
    assert counts == "52 loaded · 1 tied · 0 missing · 0 unexpected"
    assert found.says == STORIES.card["about"]
    assert ("trained", "no, compiled from a program of 2 lines") in view.facts(load("compiled-induction"), None)


def test_what_a_card_measured_is_said_value_by_value() -> None:
    card = {
        "loss": {"training": 1.0, "held_out": 1.23456},
        "accuracy": 3,
        "measured": {"by_task": {"a|b": 0.5}, "asked": 2000},
        "corpora": [{"file": "x.txt", "bytes": 1_234_567}, "odd"],
    }
    assert view.measures(card) == [
        ("loss", "1.235"),
        ("by task · a|b", "0.5"),
        ("asked", "2,000"),
        ("learned from 1 · file", "x.txt"),
        ("learned from 1 · bytes", "1,234,567"),
        ("learned from 2", "odd"),
    ]
    assert view.measures({}) == view.measures({"measured": None, "corpora": 1}) == []


def test_a_config_in_the_words_of_the_field() -> None:
    grouped, two = dict(view.config_facts(GROUPED)), dict(view.config_facts(TWO))
    assert grouped["blocks"] == "2 × (6 causal query heads, 2 key/value heads, head size 4, gated MLP 20 gelu tanh)"
    assert grouped["positions"] == "rotary, θ 10,000, up to 16" and grouped["head"] == "language, 31 tokens"
    other = OtherRotation((1,), 500.0, RotaryScaling("linear", 4.0, 8))
    for there, said in ((other, "θ 500, linear scaling × 4"), (OtherRotation((1,)), "nothing turned")):
        some = replace(GROUPED, positions=Positions("rotary", other=there))
        assert f"θ 10,000 ({said} in 1 of 2 layers), up to 16" in dict(view.config_facts(some))["positions"]
    assert two["encoder"].startswith("2 × (3 full heads, head size 8")
    assert two["decoder"].startswith("2 × (3 causal heads")


def test_numbers_stored_otherwise_are_named() -> None:
    rows = (TensorRow("a", "loaded", (2,), dtype="bfloat16"), TensorRow("b", "loaded", (2,), dtype="float32"))
    checkpoint = Checkpoint(made(GROUPED), report=Report(rows))
    assert dict(view.facts(checkpoint, None))["precision"] == "float32, in the file bfloat16"


def test_remarkable_tensors_come_first() -> None:
    rows = [TensorRow(status, status, (1,)) for status in ("loaded", "tied", "unexpected", "dropped", "missing")]
    report = Report(tuple(rows))
    assert view.account(report)[:2] == (False, "2 of 5 tensors have no place")
    assert view.tensor_frame(report)["status"].tolist() == ["missing", "unexpected", "dropped", "tied", "loaded"]


def test_the_matrix_that_is_looked_at_first_is_measured() -> None:
    rows = weights.matrix_rows(STORIES.model)
    first = weights.first_row(rows)
    assert first.name == "blocks.0.attn.q.weight" and first.heads == 4 and first.circuit == "qk"
    weight = STORIES.model.get_parameter(first.name).detach().numpy()
    found = weights.measure(STORIES.model, Weight(first.name))
    np.testing.assert_allclose(found.spectrum.values, np.linalg.svd(weight, compute_uv=False), rtol=1e-3, atol=1e-5)
    assert found.histogram.counts.sum() == weight.size and found.shape == weight.shape
    assert found.histogram.std == pytest.approx(weight.std(), rel=1e-5)
    rms = dict(zip([row.name for row in rows], weights.magnitudes(STORIES.model), strict=True))
    assert rms[first.name] == pytest.approx(np.sqrt((weight.astype(float) ** 2).mean()), rel=1e-5)
    assert np.sqrt(np.square(found.heads).mean()) == pytest.approx(rms[first.name], rel=1e-5)


def test_a_head_and_its_circuits_are_the_products_of_its_weights() -> None:
    model = made(GROUPED)
    at = {letter: model.get_parameter(f"blocks.1.attn.{letter}.weight").double() for letter in ("q", "k", "v", "out")}
    head, group = 4, 1  # three query heads share one of keys and values
    own = {letter: at[letter].unflatten(0, (-1, 4)) for letter in ("q", "k", "v")}
    query, key, value = own["q"][head], own["k"][group], own["v"][group]
    expected = {
        ("blocks.1.attn.q.weight", False): query,
        ("blocks.1.attn.q.weight", True): query.mT @ key,
        ("blocks.1.attn.out.weight", True): value.mT @ at["out"][:, 4 * head : 4 * head + 4].mT,
    }
    for (name, through), matrix in expected.items():
        found = weights.measure(model, Weight(name, head, through))
        values = torch.linalg.svdvals(matrix)[: len(found.spectrum.values)].numpy()
        np.testing.assert_allclose(found.spectrum.values, values, rtol=1e-4, atol=1e-6)
        assert found.shape == matrix.shape and found.histogram.mean == pytest.approx(matrix.mean().item())
    assert len(weights.measure(model, Weight("blocks.1.attn.k.weight")).heads) == 2


def test_an_encoder_decoder_has_matrices_of_both_stacks_and_across() -> None:
    model = made(TWO)
    rows = weights.matrix_rows(model)
    assert {row.matrix.side for row in rows} == {"encoder", "decoder"}
    assert {row.label for row in rows} >= {"enc. queries, W_Q", "dec. queries, W_Q"}
    found = weights.measure(model, Weight("decoder.blocks.1.cross_attn.q.weight", 2, True))
    assert found.shape == (24, 24)


@pytest.mark.parametrize(
    ("name", "head"),
    [("nothing", None), ("blocks.0.norm1.weight", None), ("blocks.0.attn.q.weight", 6), ("blocks.0.attn.q.weight", -1),
     ("blocks.0.mlp.out.weight", 0), ("__class__", None)],
)  # fmt: skip
def test_what_is_not_there_is_one_sentence(name: str, head: int | None) -> None:
    with pytest.raises(ValueError, match="no such matrix"):
        weights.measure(made(GROUPED), Weight(name, head))
    with pytest.raises(ValueError, match="no such matrix"):
        weights.weight_lines("it", Checkpoint(made(GROUPED)), Weight(name, head))


@pytest.mark.parametrize("axes", [2, 3])
def test_a_table_in_the_plane_and_in_space_and_the_nearest_rows(axes: int) -> None:
    names = [each.name for each in embedding.table_matrices(STORIES.model)]
    assert [embedding.vector_table(STORIES, name).title for name in names] == ["token", "position"]
    table = STORIES.model.get_parameter("embed.tokens.weight").double()
    centred = table - table.mean(0)
    shares = torch.linalg.svdvals(centred).square()
    found = embedding.project_table(STORIES, "embed.tokens.weight", "pca", axes)
    assert found.explained == pytest.approx((shares[:axes] / shares.sum()).tolist(), rel=1e-4)
    variances = found.points.double().var(0, correction=0) * len(table)
    torch.testing.assert_close(variances, shares[:axes], rtol=1e-4, atol=0)
    near = embedding.nearest_rows(STORIES, "embed.tokens.weight", 291)
    cosine = torch.nn.functional.normalize(table, dim=1) @ torch.nn.functional.normalize(table[291], dim=0)
    assert near.ids.tolist() == cosine.argsort(descending=True)[1:11].tolist()
    with pytest.raises(ValueError, match="no such table"):
        embedding.project_table(STORIES, "final_norm.weight", "pca", axes)


def test_tokens_are_named_sorted_and_found() -> None:
    table = embedding.vector_table(STORIES, "embed.tokens.weight")
    assert table.pieces is not None and table.kinds is not None
    assert table.pieces[291] == "·said" and len(table.pieces) == 1024 and table.label(291) == "·said"
    assert table.first == 291
    kinds = {"·dog": "word", "ing": "inside", "12": "number", ",": "mark", "<0A>": "byte", "<|end|>": "special"}
    assert embedding.token_kinds(tuple(kinds), {5}) == tuple(kinds.values())
    assert embedding.token_kinds(("dog", "##s"), set()) == ("word", "inside")
    dog = table.pieces.index("·dog")
    assert embedding.find_rows(table, "dog")[0] == dog and embedding.find_rows(table, " ") == []
    assert embedding.find_rows(table, "no such token") == []
    positions = embedding.vector_table(STORIES, "embed.positions.weight")
    assert positions.first == 128 and positions.label(3) == "position 3"
    assert embedding.find_rows(positions, "255") == [255] and embedding.find_rows(positions, "256") == []


def test_a_model_without_tables_has_no_picture_of_one() -> None:
    rotary = made(replace(GROUPED, vocab_size=1))
    assert embedding.table_matrices(rotary) == []


def test_a_comparison_is_told_with_what_both_read() -> None:
    found = Parity(
        logits=1e-6, patterns=float("nan"), layers=(), compared=("logits",), ids=True, through="its own files",
        architecture="X", dtype="float32", positions=3, seconds=1.0, seconds_theirs=1.0, versions={"transformers": "5"},
    )  # fmt: skip
    (said,) = view.parity_sentences(found, "“a”")
    assert said == "X of transformers 5 in float32, through its own files; “a”, the same token ids"
    layers = (Layer("blocks.0.attn.pattern", 2e-7),)
    said, by_layer = view.parity_sentences(replace(found, patterns=2e-7, layers=layers, ids=None), "ids")
    assert said.endswith("; ids") and by_layer == "attention by layer: 2.0e-07"


def values(chart: alt.LayerChart | alt.Chart) -> list[dict[str, Any]]:
    """Every row of every data set of a chart, as the browser has it."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_map_has_a_cell_for_each_matrix_with_its_size(shade: Shade) -> None:
    for model in (STORIES.model, made(TWO), made(GROUPED)):
        rows = weights.matrix_rows(model)
        sizes = weights.magnitudes(model)
        cells = values(charts.matrix_map(rows, sizes, rows[1].name, shade))
        assert [(cell["name"], cell["rms"]) for cell in cells] == [
            (row.name, pytest.approx(size)) for row, size in zip(rows, sizes, strict=True)
        ]
        assert len({(cell["matrix"], cell["layer"]) for cell in cells}) == len(rows)  # none lies over another


@pytest.mark.parametrize("log", [False, True])
def test_a_histogram_has_every_number_and_a_spectrum_every_value(log: bool) -> None:
    found = weights.measure(STORIES.model, Weight("blocks.0.attn.q.weight"))
    bins = [row for row in values(charts.histogram_chart(found.histogram, log, "query", "light")) if "to" in row]
    assert sum(row["count"] for row in bins) == 128 * 128
    spectrum = values(charts.spectrum_chart(found.spectrum, "query", "dark"))
    drawn = {row["i"]: row["value"] for row in spectrum if "value" in row}
    assert drawn[1] == pytest.approx(found.spectrum.values[0].item()) and len(drawn) == 128


def test_a_matrix_of_zeros_is_drawn() -> None:
    model = made(GROUPED)
    torch.nn.init.zeros_(model.get_parameter("blocks.0.attn.q.weight"))
    found = weights.measure(model, Weight("blocks.0.attn.q.weight"))
    assert charts.histogram_chart(found.histogram, True, "query", "light").to_dict()
    assert charts.spectrum_chart(found.spectrum, "query", "light").to_dict()


@pytest.mark.parametrize(("axes", "kind"), [(2, "scattergl"), (3, "scatter3d")])
def test_every_token_is_a_point_with_its_name_and_hidden_kinds_are_none(axes: int, kind: str) -> None:
    table = embedding.vector_table(STORIES, "embed.tokens.weight")
    assert table.kinds is not None
    found = embedding.project_table(STORIES, table.name, "pca", axes)
    near = embedding.nearest_rows(STORIES, table.name, 291)
    for hidden in ([], ["byte", "inside"]):
        figure = charts.embedding_figure(table, found, 291, near, hidden, False, "light")
        clouds = [trace for trace in figure.data if trace.type == kind and trace.mode == "markers"]
        ids = sorted(int(id) for trace in clouds for id in trace.customdata)
        assert ids == [id for id in range(1024) if table.kinds[id] not in hidden]
        cloud = next(trace for trace in clouds if 291 in trace.customdata)
        at = list(cloud.customdata).index(291)
        assert (cloud.x[at], cloud.y[at]) == tuple(found.points[291, :2].tolist()) and cloud.text[at] == "·said"
        ring = next(trace for trace in figure.data if trace.name == "its nearest")
        assert list(ring.customdata) == near.ids.tolist()


def test_the_main_cluster_leaves_out_what_lies_far_and_all_nothing() -> None:
    table = embedding.vector_table(STORIES, "embed.tokens.weight")
    found = embedding.project_table(STORIES, table.name, "pca", 2)
    everyone = np.ones(1024, bool)
    low, high = np.array(charts.frame_of(found.points.numpy(), True)).T
    assert (found.points.numpy() > low).all() and (found.points.numpy() < high).all()
    assert charts.outside_frame(found, everyone, True) == 0
    points = np.concatenate([np.random.default_rng(0).normal(size=(100, 2)), [[90.0, 0.0]]])
    assert charts.frame_of(points, False)[0][1] < 6 < 90 < charts.frame_of(points, True)[0][1]


def test_what_others_wrote_is_text() -> None:
    assert "| `` a\\|b` `` |" in view.sizes([("a|b`", 1500)]) and "1.5 kB" in view.sizes([("a", 1500)])
    assert [view.size(n) for n in (12, 548_118_077, 8_030_261_248)] == ["12 bytes", "548.1 MB", "8.0 GB"]
