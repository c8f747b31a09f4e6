"""What the page about a checkpoint draws is what its tensors hold."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine import load
from engine.analysis.sizes import count
from engine.checkpoints import Checkpoint, Report, TensorRow
from engine.checkpoints.facts import read_facts
from engine.checkpoints.locate import locate
from engine.checkpoints.parity import Layer, Parity
from engine.model.config import MLP, Attention, Encoder, ModelConfig, Positions
from engine.model.transformer import Transformer, initialise
from views.checkpoint import checkpoint as view
from views.core.payload import Named, unpack

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


def card(checkpoint: Checkpoint, **more: Any) -> dict[str, Any]:
    return unpack(view.card("it", checkpoint, None, compares=False, **more))[0]


def test_the_card_says_what_the_checkpoint_is() -> None:
    header, _ = unpack(view.card("stories", STORIES, read_facts(locate("stories"), STORIES.card), compares=True))
    facts = dict(header["facts"])
    assert facts["format"] == "gpt2 · GPT2LMHeadModel" and facts["numbers"] == "float32"
    assert facts["tokenizer"] == "BPE, 1,024 tokens" and facts["positions"] == "learned, up to 256"
    assert facts["blocks"] == "4 × (4 causal heads of 32, MLP 512 gelu tanh)"
    assert header["model"]["total"] == count(STORIES.config) == 957_184
    assert header["ledger"] == {"loaded": 52, "tied": 1, "dropped": 0, "missing": 0, "unexpected": 0}
    assert header["says"] == STORIES.card["about"]


def test_a_config_in_the_words_of_the_field() -> None:
    grouped, two = dict(view.described(GROUPED)), dict(view.described(TWO))
    assert grouped["blocks"] == "2 × (6 causal heads of 4 on 2 of keys and values, gated MLP 20 gelu tanh)"
    assert grouped["positions"] == "rotary, θ 10,000, up to 16" and grouped["head"] == "language, 31 tokens"
    assert two["encoder"].startswith("2 × (3 full heads of 8") and two["decoder"].startswith("2 × (3 causal heads")


def test_numbers_stored_otherwise_are_named() -> None:
    rows = (TensorRow("a", "loaded", (2,), dtype="bfloat16"), TensorRow("b", "loaded", (2,), dtype="float32"))
    checkpoint = Checkpoint(made(GROUPED), report=Report(rows))
    assert dict(card(checkpoint)["facts"])["numbers"] == "float32, in the file bfloat16"


def test_remarkable_tensors_come_first() -> None:
    rows = [TensorRow(status, status, (1,)) for status in ("loaded", "tied", "unexpected", "dropped", "missing")]
    header, _ = unpack(view.tensors(Report(tuple(rows))))
    assert [row[1] for row in header["rows"]] == ["missing", "unexpected", "dropped", "tied", "loaded"]


def test_a_small_model_comes_with_what_is_looked_at_first() -> None:
    header, arrays = unpack(view.weights("stories", STORIES.model))
    first = header["matrices"][header["first"]]
    assert first["name"] == "blocks.0.attn.q.weight" and first["heads"] == 4 and first["circuit"] == "qk"
    weight = STORIES.model.get_parameter(first["name"]).detach().numpy()
    np.testing.assert_allclose(arrays["values"].data, np.linalg.svd(weight, compute_uv=False), rtol=1e-3, atol=1e-5)
    assert arrays["counts"].data.sum() == weight.size
    assert header["answer"]["stats"]["std"] == pytest.approx(weight.std(), rel=1e-5)
    rms = {row["name"]: value for row, value in zip(header["matrices"], arrays["rms"].data, strict=True)}
    assert rms[first["name"]] == pytest.approx(np.sqrt((weight.astype(float) ** 2).mean()), rel=1e-5)


def asked(model: Transformer, name: str, head: int | None, through: bool) -> tuple[dict[str, Any], dict[str, Named]]:
    return unpack(view.matrix_figures(model, name, head, through))


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
        header, arrays = asked(model, name, head, through)
        found = torch.linalg.svdvals(matrix)[: len(arrays["values"].data)].numpy()
        np.testing.assert_allclose(arrays["values"].data, found, rtol=1e-4, atol=1e-6)
        assert header["shape"] == list(matrix.shape) and header["stats"]["mean"] == pytest.approx(matrix.mean().item())
    assert len(asked(model, "blocks.1.attn.k.weight", None, False)[1]["heads"].data) == 2


def test_an_encoder_decoder_has_matrices_of_both_stacks_and_across() -> None:
    model = made(TWO)
    rows = unpack(view.weights("two", model))[0]["matrices"]
    assert {row["side"] for row in rows} == {"encoder", "decoder"}
    header, _ = asked(model, "decoder.blocks.1.cross_attn.q.weight", 2, True)
    assert header["shape"] == [24, 24]


@pytest.mark.parametrize(
    ("name", "head"),
    [("nothing", None), ("blocks.0.norm1.weight", None), ("blocks.0.attn.q.weight", 6), ("blocks.0.attn.q.weight", -1),
     ("blocks.0.mlp.out.weight", 0), ("__class__", None)],
)  # fmt: skip
def test_what_is_not_there_is_one_sentence(name: str, head: int | None) -> None:
    with pytest.raises(ValueError, match="no such matrix"):
        view.matrix_figures(made(GROUPED), name, head, False)


def test_a_table_in_the_plane_and_the_nearest_rows() -> None:
    header, arrays = unpack(view.tables("stories", STORIES) or b"")
    assert [table["title"] for table in header["tables"]] == ["token", "position"]
    table = STORIES.model.get_parameter("embed.tokens.weight").double()
    centred = table - table.mean(0)
    shares = torch.linalg.svdvals(centred).square()
    assert header["answer"]["explained"] == pytest.approx((shares[:2] / shares.sum()).tolist(), rel=1e-4)
    variances = torch.tensor(arrays["points"].data).double().var(0, correction=0) * len(table)
    torch.testing.assert_close(variances, shares[:2], rtol=1e-4, atol=0)
    assert header["answer"]["pieces"][291] == "·said" and len(header["answer"]["pieces"]) == 1024
    _, near = unpack(view.table_neighbours(STORIES, "embed.tokens.weight", 291))
    cosine = torch.nn.functional.normalize(table, dim=1) @ torch.nn.functional.normalize(table[291], dim=0)
    assert near["ids"].data.tolist() == cosine.argsort(descending=True)[1:11].tolist()
    with pytest.raises(ValueError, match="no such table"):
        view.table_points(STORIES, "final_norm.weight", "pca")


def test_a_model_without_tables_has_no_picture_of_one() -> None:
    rotary = made(replace(GROUPED, vocab_size=1))
    assert view.tables("it", Checkpoint(rotary)) is None


def test_a_comparison_without_attention_has_no_number_for_it() -> None:
    found = Parity(
        logits=1e-6, patterns=float("nan"), layers=(), compared=("logits",), ids=True, through="its own files",
        architecture="X", dtype="float32", positions=3, seconds=1.0, seconds_theirs=1.0, versions={"transformers": "5"},
    )  # fmt: skip
    header, _ = unpack(view.verdict(found, "“a”"))
    assert header["patterns"] is None and header["read"] == "“a”, the same token ids"
    layers = (Layer("blocks.0.attn.pattern", 2e-7),)
    header, _ = unpack(view.verdict(replace(found, patterns=2e-7, layers=layers, ids=None), "ids"))
    assert (header["layers"], header["patterns"], header["read"]) == ([2e-7], 2e-7, "ids")


def test_what_others_wrote_is_text() -> None:
    assert view.plain("a *b* [c](d) $e$ <f> :red[g]\nh") == (r"a \*b\* \[c\]\(d\) \$e\$ \<f\> \:red\[g\] h")
    assert "| `a\\|b` |" in view.sizes([("a|b`", 1500)]) and "1.5 kB" in view.sizes([("a", 1500)])
    assert [view.size(n) for n in (12, 548_118_077, 8_030_261_248)] == ["12 bytes", "548.1 MB", "8.0 GB"]
