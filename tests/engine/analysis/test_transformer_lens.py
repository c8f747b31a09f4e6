"""Attribution, the lens and composition scores are those of TransformerLens, on the same weights.

Its bridge wraps a model of transformers, here one of ours that was taken away and opened again.
"""

import logging
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn.functional import gelu

from engine import load, run
from engine.analysis.attribution import attribute
from engine.analysis.interventions.edges import Node
from engine.analysis.interventions.sweep import Sweep
from engine.analysis.logit_lens import lens_logits
from engine.analysis.weights.composition import compose
from engine.analysis.writers import Writer
from engine.checkpoints.save import export_checkpoint
from engine.model.hooks import TRANSFORMER_LENS
from engine.runtime.trace import Trace
from tests.engine.checkpoints.test_export import OURS, TEXTS, trained, unzipped

pytestmark = pytest.mark.long

RANDOM = {"GPT-2": "decoder", "Llama": "modern decoder", "BERT": "encoder"}
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48, "max_position_embeddings": 32}  # fmt: skip
SHARED = SIZES | {"num_key_value_heads": 2}
OLDER = {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "GPT2LMHeadModel": (transformers.GPT2Config, OLDER),
    "CodeGenForCausalLM": (transformers.CodeGenConfig, OLDER | {"rotary_dim": 4}),
    "GPTJForCausalLM": (transformers.GPTJConfig, OLDER | {"rotary_dim": 4}),
    "GPTNeoForCausalLM": (
        transformers.GPTNeoConfig,
        {**SIZES, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    ),
    "GPTNeoXForCausalLM": (transformers.GPTNeoXConfig, SIZES),
    "OPTForCausalLM": (transformers.OPTConfig, SIZES | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "PhiForCausalLM": (transformers.PhiConfig, SIZES),
    "Phi3ForCausalLM": (transformers.Phi3Config, SHARED | {"pad_token_id": None}),
    "StableLmForCausalLM": (transformers.StableLmConfig, SHARED),
    "Starcoder2ForCausalLM": (transformers.Starcoder2Config, SHARED),
    "LlamaForCausalLM": (transformers.LlamaConfig, SHARED),
    "MistralForCausalLM": (transformers.MistralConfig, SHARED | {"sliding_window": 4}),
    "Qwen2ForCausalLM": (transformers.Qwen2Config, SHARED),
    "Qwen3ForCausalLM": (transformers.Qwen3Config, SHARED | {"head_dim": 8}),
    "GemmaForCausalLM": (transformers.GemmaConfig, SHARED | {"head_dim": 8}),
    "Gemma2ForCausalLM": (transformers.Gemma2Config, SHARED | {"head_dim": 8, "sliding_window": 4}),
    "Gemma3ForCausalLM": (transformers.Gemma3TextConfig, SHARED | {"head_dim": 8, "sliding_window": 4}),
    "SmolLM3ForCausalLM": (transformers.SmolLM3Config, SHARED | {"pad_token_id": None}),
    "OlmoForCausalLM": (transformers.OlmoConfig, SHARED),
    "CohereForCausalLM": (transformers.CohereConfig, SHARED),
    "GraniteForCausalLM": (transformers.GraniteConfig, SHARED | {"residual_multiplier": 0.3, "logits_scaling": 4.0}),
    "Glm4ForCausalLM": (transformers.Glm4Config, SHARED | {"head_dim": 8, "pad_token_id": None}),
    "Exaone4ForCausalLM": (transformers.Exaone4Config, SHARED | {"sliding_window": 4}),
    "BertForMaskedLM": (transformers.BertConfig, SIZES),
}
# What stands for something else there, as docs/hooks.md says; and a norm of the head that is the last one there.
WEIGHTS = {"hook_attn_scores": "pattern"}
OTHERWISE = {"GPTJForCausalLM": WEIGHTS, "GPTNeoForCausalLM": WEIGHTS, "OPTForCausalLM": WEIGHTS}
OTHERWISE["BertForMaskedLM"] = WEIGHTS | {
    "hook_embed": "embed.norm.out",
    "hook_attn_out": "norm1.out",
    "hook_resid_mid": "resid_post",
    "hook_resid_post": "norm2.out",
    "ln_final": "head.norm",
}
DECODERS = "GPT-2", "Llama", "stories", "bilingual", "instruct", "everyday", "in-context", "long-stories"
ENCODERS = "BERT", "tales-bert"
KINDS = {
    "learned": transformers.GPT2LMHeadModel,
    "rotary": transformers.LlamaForCausalLM,
    "masked": transformers.BertForMaskedLM,
}


@pytest.fixture(scope="module")
def wrap() -> Any:
    """Importing it takes seconds, silences transformers and leaves filters of warnings: both are put back."""
    logger = logging.getLogger("transformers")
    level = logger.level
    with warnings.catch_warnings():
        from transformer_lens.model_bridge.sources import build_bridge_from_module
    logger.setLevel(level)
    return build_bridge_from_module


def pair(name: str, folder: Path, wrap: Any) -> tuple[Any, Any, Trace]:
    """A model of ours, its copy of theirs, and what ours records of a text."""
    checkpoint = trained(OURS[RANDOM[name]][0]) if name in RANDOM else load(name)
    read = OURS[RANDOM[name]][1] if checkpoint.tokenizer is None else checkpoint.tokenizer.encode(TEXTS[name])
    config = checkpoint.config
    kind: Any = KINDS["masked" if config.head.kind == "masked" else config.positions.kind]
    files = unzipped(export_checkpoint(checkpoint, "folder", folder))
    copied = kind.from_pretrained(files, attn_implementation="eager").eval()
    theirs = wrap(copied, kind.__name__, hf_config=copied.config)
    return checkpoint.model, theirs, run(checkpoint.model, read)


@torch.no_grad()
def recorded(theirs: Any, trace: Trace) -> Any:
    logits, cache = theirs.run_with_cache(trace.ids)
    near(trace["logits"], logits)
    return cache


def near(ours: Tensor, theirs: Tensor, atol: float = 1e-4) -> None:
    torch.testing.assert_close(ours.float(), theirs.float(), atol=atol, rtol=0)


def candidates(trace: Trace) -> list[tuple[int, int, int | None]]:
    """Each position with its likeliest token, alone and against the second."""
    likeliest = enumerate(trace["logits"][0].topk(2).indices.tolist())
    return [(row, one, other) for row, (one, two) in likeliest for other in (None, two)]


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_its_names_stand_for_the_same_values(name: str, tmp_path: Path, wrap: Any) -> None:
    config, sizes = FAMILIES[name]
    kind = getattr(transformers, name)
    theirs = kind(config(**sizes, attn_implementation="eager")).eval()
    for parameter in theirs.parameters():
        parameter.normal_(0, 0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    theirs.save_pretrained(tmp_path)
    model = load(tmp_path).model
    copied = kind.from_pretrained(tmp_path, attn_implementation="eager").eval()
    trace = run(model, [[3, 5, 9, 2, 7, 11, 4, 6]], list(model.hook_names))
    cache = recorded(wrap(copied, name, hf_config=copied.config), trace)
    asked = set()
    for alias, value in cache.items():
        last = alias.rpartition(".")[2]
        if last not in TRANSFORMER_LENS:
            continue
        for one, other in OTHERWISE.get(name, {}).items():
            alias = re.sub(rf"(attn\.)?\b{one}\b", rf"\g<1>{other}" if other == "pattern" else other, alias)
        ours = trace[alias]
        value = value.squeeze(-1) if last == "hook_scale" else value
        value = value.reshape(ours.shape) if value.numel() == ours.numel() and "_norm." not in alias else value
        value = value.transpose(1, 2) if "_norm." in alias else value  # of all heads, then of all positions
        real = torch.isfinite(ours) & (ours > -1e30)  # a masked score is the least number there
        near(ours[real], value[real])
        asked.add(last)
    assert asked >= {"hook_normalized", "hook_scale", "hook_attn_out", "hook_mlp_out", "hook_pattern"}


@pytest.mark.parametrize("name", DECODERS)
@torch.no_grad()
def test_what_each_part_adds_to_a_logit(name: str, tmp_path: Path, wrap: Any) -> None:
    """Theirs takes the last norm's weights and bias for the head's, which folding makes them; and counts the bias of a
    sublayer to its MLP, and to no head."""
    model, theirs, trace = pair(name, tmp_path, wrap)
    theirs.enable_compatibility_mode(
        disable_warnings=True, center_writing_weights=False, center_unembed=False, fold_value_biases=False
    )
    cache = recorded(theirs, trace)
    layers, heads = theirs.cfg.n_layers, theirs.cfg.n_heads
    vectors, labels = cache.decompose_resid(return_labels=True)
    parts = dict(zip(labels, vectors, strict=True))
    each = cache.stack_head_results()
    written = {Writer("token"): parts["embed"]}
    if "pos_embed" in parts:
        written[Writer("position")] = parts["pos_embed"].expand_as(parts["embed"])
    written |= {Writer("head", i // heads, i % heads): one for i, one in enumerate(each)}
    for layer in range(layers):
        after_heads = parts[f"{layer}_attn_out"] - each[layer * heads : (layer + 1) * heads].sum(0)
        bias = getattr(theirs.blocks[layer].mlp, "b_out", None)
        bias = torch.zeros_like(after_heads) if bias is None else bias.expand_as(after_heads)
        written[Writer("MLP", layer)] = parts[f"{layer}_mlp_out"] - bias
        written[Writer("bias", layer)] = after_heads + bias
    stack = torch.stack(list(written.values()))
    for row, id, against in candidates(trace):
        found = attribute(model, trace, row, id, against).values
        added = cache.logit_attrs(stack, id, against)[:, 0, row]
        near(torch.tensor([found.pop(writer, 0.0) for writer in written]), added)
        constant = theirs.b_U[id] - (0 if against is None else theirs.b_U[against])
        assert found.keys() == {Writer("bias")}
        assert found[Writer("bias")] == pytest.approx(float(constant), abs=1e-4)


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_what_each_part_adds_to_a_logit_of_a_masked_head(name: str, tmp_path: Path, wrap: Any) -> None:
    """Theirs scales by the last norm alone: with norms behind the sublayers and a dense layer in the head, what it
    recorded of each, and its weights, are taken one by one."""
    model, theirs, trace = pair(name, tmp_path, wrap)
    cache = recorded(theirs, trace)

    def back(read: Tensor, norm: str, row: int) -> Tensor:
        weighed = read * theirs.get_submodule(norm).weight
        return (weighed - weighed.mean()) / cache[f"{norm}.hook_scale"][0, row]

    for row, id, _ in candidates(trace)[::2]:
        given = cache["mlm_head.hook_out"][0, row]
        read = back(theirs.W_U[:, id], "ln_final", row) * gelu(given) / given
        read = read @ theirs.mlm_head.weight
        added = {}
        for layer in reversed(range(theirs.cfg.n_layers)):
            block = theirs.blocks[layer]
            read = back(read, f"blocks.{layer}.ln2", row)
            added[Writer("MLP", layer)] = read @ (cache[f"blocks.{layer}.mlp.out.hook_out"][0, row] - block.mlp.b_out)
            read = back(read, f"blocks.{layer}.ln1", row)
            each = torch.einsum("hd,hdm->hm", cache[f"blocks.{layer}.attn.hook_z"][0, row], block.attn.W_O) @ read
            added |= {Writer("head", layer, head): one for head, one in enumerate(each)}
        read = back(read, "embed_ln", row)
        for kind, hook in (("token", "embed"), ("segment", "token_type_embed"), ("position", "pos_embed")):
            added[Writer(kind)] = read @ cache[f"{hook}.hook_out"].squeeze(0)[row]  # type: ignore[arg-type]
        found = attribute(model, trace, row, id).values
        near(torch.tensor([found[writer] for writer in added]), torch.stack(list(added.values())))
        assert {writer.kind for writer in found.keys() - added.keys()} == {"bias"}


@pytest.mark.parametrize("name", DECODERS + ENCODERS)
@torch.no_grad()
def test_the_lens(name: str, tmp_path: Path, wrap: Any) -> None:
    """Theirs reads no masked head, whose dense layer stands before the norm: that head's parts are called instead."""
    model, theirs, trace = pair(name, tmp_path, wrap)
    cache = recorded(theirs, trace)
    if name in ENCODERS:
        streams = cache.accumulated_resid()
        read = [theirs.unembed(theirs.ln_final(gelu(theirs.mlm_head(stream)))) for stream in streams]
    else:
        read = cache.logit_lens(positions=None).values
    assert len(read) == model.config.layers + 1
    for layer, logits in enumerate(read):
        near(lens_logits(model, trace, layer), logits[0])


@pytest.mark.parametrize("name", DECODERS + ENCODERS)
def test_composition_scores(name: str, tmp_path: Path, wrap: Any) -> None:
    model, theirs, _ = pair(name, tmp_path, wrap)
    for kind in "QKV":
        scores = theirs.all_composition_scores(kind).detach()  # layer head of the earlier, then of the later
        for layer in range(1, model.config.layers):
            for head in range(model.config.attention.heads):
                ours = getattr(compose(model, layer, head), kind.lower())
                near(ours, scores[:layer, :, layer, head], 1e-5)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "stories"])
def test_activation_attribution_and_path_patching(name: str, tmp_path: Path, wrap: Any) -> None:
    from transformer_lens import patching

    model, theirs, clean = pair(name, tmp_path, wrap)
    ids = clean.ids.clone()
    ids[0, 2] = (ids[0, 2] + 5) % model.config.vocab_size
    other = run(model, ids)
    id, against = clean["logits"][0, -1].topk(2).indices.tolist()
    sweep = Sweep(model, clean, other, "logit", -1, id, against)

    def metric(logits: Tensor) -> Tensor:
        return logits[0, -1, id] - logits[0, -1, against]

    _, cache = theirs.run_with_cache(clean.ids)
    _, corrupted = theirs.run_with_cache(ids)
    given = theirs, ids, cache, metric
    for site, call in (("stream", "resid_pre"), ("attention", "attn_out"), ("MLP", "mlp_out")):
        found = getattr(patching, f"get_act_patch_{call}")(*given)
        near(sweep.patch(site, ("pos",)).measured, found)
    for site, call in (("z", "out"), ("q", "q"), ("v", "v"), ("pattern", "pattern")):
        if site == "v" and model.config.attention.kv_heads != model.config.attention.heads:
            continue  # theirs counts heads there, not those of the keys
        near(
            sweep.patch(site, ("head",)).measured, getattr(patching, f"get_act_patch_attn_head_{call}_all_pos")(*given)
        )
    found = patching.get_act_patch_attn_head_out_by_pos(*given)  # layer pos head
    near(sweep.patch("z", ("head", "pos")).measured, found.transpose(1, 2))

    with torch.enable_grad():
        slopes = {}
        hooks = [(f"blocks.{layer}.attn.hook_z", lambda z, hook: slopes.update({hook.name: z.requires_grad_()}) or z)
                 for layer in range(model.config.layers)]  # fmt: skip
        measured = metric(theirs.run_with_hooks(ids, fwd_hooks=hooks))
        each = torch.autograd.grad(measured, list(slopes.values()))
    change = [(cache[one] - corrupted[one]).reshape(grad.shape) for one, grad in zip(slopes, each, strict=True)]
    by_head = [(one * grad).unflatten(-1, (-1, model.config.d_head)) if one.dim() == 3 else one * grad
               for one, grad in zip(change, each, strict=True)]  # fmt: skip
    near(sweep.estimate("z", ("head",)) * sweep.span, torch.stack([one.sum((0, 1, 3)) for one in by_head]))

    last = model.config.layers - 1
    parts = ("q",) if model.config.attention.kv_heads != model.config.attention.heads else ("q", "k", "v")
    for part in parts:
        found = patching.get_act_patch_direct_path(theirs, ids, cache, corrupted, metric, 0, 1, part, verbose=False)
        ours = sweep.patch_paths(Node(part, last, 0))  # type: ignore[arg-type]
        near(ours.values[ours.writers.index(Node("head", 0, 1))] * sweep.span + sweep.nothing, found[last])
