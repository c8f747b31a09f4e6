"""Composition in a run: the share of each earlier head is that of its term, written out by hand."""

import pytest
import torch

from engine import run
from engine.analysis.composition_in_run import compose_in_run, shares_at
from tests.engine import tiny


def test_composition_in_a_run_is_the_share_of_what_a_head_added_to_a_query_key_and_value() -> None:
    model = tiny.model(tiny.config(attention={"bias": True, "out_bias": True}))
    weights, trace, layer, head = model.state_dict(), run(model, tiny.IDS), 2, 3
    width, count = model.config.d_head, model.config.attention.heads
    block, rows = f"blocks.{layer}.", slice(head * width, (head + 1) * width)
    resid = trace[f"{block}resid_pre"][0].double()
    std = (resid.var(-1, unbiased=False) + model.config.norm.eps).sqrt()[:, None]
    gain, shift = (weights[f"{block}norm1.{name}"].double() for name in ("weight", "bias"))
    parts: dict[object, torch.Tensor] = {name: trace[f"embed.{name}"][0].double() for name in ("tokens", "positions")}
    for before in range(layer):
        out = weights[f"blocks.{before}.attn.out.weight"].double()
        for one in range(count):
            cut = slice(one * width, (one + 1) * width)
            parts[before, one] = trace[f"blocks.{before}.attn.z"][0, :, one].double() @ out[:, cut].mT
        added, fixed = (weights[f"blocks.{before}.{part}.out.bias"].double() for part in ("mlp", "attn"))
        parts[before, "MLP"] = trace[f"blocks.{before}.mlp.out"][0].double() - added
        parts[before, "biases"] = added + fixed
    found = compose_in_run(model, trace, layer, head)
    for letter in "qkv":
        matrix = weights[f"{block}attn.{letter}.weight"][rows].double()
        constant = matrix @ shift + weights[f"{block}attn.{letter}.bias"][rows].double()
        terms = {name: ((part - part.mean(-1, keepdim=True)) / std * gain) @ matrix.mT for name, part in parts.items()}
        terms["constant"] = constant.expand(len(resid), -1)
        lengths = {name: term.norm(dim=-1) for name, term in terms.items()}
        whole = torch.stack(list(lengths.values())).sum(0)
        for before in range(layer):
            for one in range(count):
                wanted = (lengths[before, one] / whole).mean()
                assert float(getattr(found, letter)[before, one]) == pytest.approx(float(wanted), rel=1e-5)


def test_a_head_or_place_that_there_is_not_is_refused() -> None:
    model = tiny.model()
    trace = run(model, tiny.IDS)
    for place in ((2, 4, 0), (3, 0, 0), (2, 0, len(tiny.IDS))):
        with pytest.raises(ValueError, match="must be 0 to"):
            shares_at(model, trace, *place)
