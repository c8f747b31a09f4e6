"""A small random model of transformers beside Loupe's reading of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.checkpoints import Checkpoint, load
from engine.runtime.run import run
from engine.runtime.trace import Trace

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1]])
TARGET = torch.tensor([[2, 17, 4, 33, 9, 9]])


def shaken(model: Any) -> Any:
    """Every tensor that is saved moved away from zero and one, so that none can be forgotten unnoticed."""
    torch.manual_seed(1)
    with torch.no_grad():
        for tensor in (*model.parameters(), *(b for n, b in model.named_buffers() if n == "final_logits_bias")):
            if tensor.requires_grad or tensor.shape[0] == 1:
                tensor.add_(torch.randn_like(tensor), alpha=0.1)  # at 0.2 float32 itself is off by 1e-5
    model.set_attn_implementation("eager")
    return model.eval()


def opened(model: Any, folder: Path) -> Checkpoint:
    model.save_pretrained(folder)
    checkpoint = load(folder)
    assert checkpoint.report.ok, checkpoint.report
    return checkpoint


def equal(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


def equal_patterns(trace: Trace, suffix: str, theirs: tuple[Tensor, ...]) -> None:
    torch.testing.assert_close(trace.stack(suffix), torch.stack(theirs), atol=1e-5, rtol=0)


def equal_pair(checkpoint: Checkpoint, model: Any, padding: Tensor | None = None) -> None:
    """An encoder-decoder: logits, hidden states and all three kinds of attention."""
    trace = run(checkpoint.model, IDS, target=TARGET)
    with torch.no_grad():
        theirs = model(IDS, decoder_input_ids=TARGET, output_attentions=True, output_hidden_states=True)
    equal(trace["logits"], theirs.logits)
    equal_patterns(trace, "encoder.attn.pattern", theirs.encoder_attentions)
    equal_patterns(trace, "decoder.attn.pattern", theirs.decoder_attentions)
    equal_patterns(trace, "cross_attn.pattern", theirs.cross_attentions)
    for side, hidden in (("encoder", theirs.encoder_hidden_states), ("decoder", theirs.decoder_hidden_states)):
        for ours, other in zip(trace.stack(f"{side}.resid_pre"), hidden[:-1], strict=True):
            equal(ours, other)


def written_back(checkpoint: Checkpoint, folder: Path, kind: type[nn.Module]) -> Any:
    """What transformers reads of what Loupe saves."""
    checkpoint.save(folder)
    assert load(folder).config == checkpoint.config
    assert load(folder).report.ok
    model, loading = kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    assert not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    assert not loading["missing_keys"], loading
    return model.eval()
