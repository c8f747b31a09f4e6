"""Encoder, decoder, both: what each kind of model sees and says, attention across, and a target given or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.pseudo import pseudo_surprise
from engine.analysis.surprise import Surprise, examples_of, surprise
from engine.checkpoints import Checkpoint
from engine.generation.generate import generate
from engine.inputs.readers import shift_target
from engine.model.layers.attention import Attention
from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding

LONGEST = 48  # tokens, which the translator reads at most


def guess_each(checkpoint: Checkpoint, encoding: Encoding) -> Surprise:
    """Every token as the model is asked for it: by an encoder hidden and guessed from both sides, one at a time; by a
    decoder guessed from those before it. Raises ValueError for a text in which nothing can be asked."""
    if checkpoint.config.attention.mask == "full":
        return pseudo_surprise(checkpoint, encoding.ids, encoding.segments)
    return surprise(checkpoint, encoding.ids)


@torch.inference_mode()
def guess_from_before(checkpoint: Checkpoint, encoding: Encoding) -> list[bool]:
    """Whether an encoder guesses each token, but special ones, with all that is after it cut away: it reads what is
    before, a mask, and the special token that ends the text. Its training never cut a text there."""
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None and tokenizer.mask_id is not None
    end, right = encoding.ids[-1:] if encoding.special[-1] else (), []
    for at, special in enumerate(encoding.special):
        if not special:
            ids = [*encoding.ids[:at], tokenizer.mask_id, *end]
            logits = run(checkpoint.model, Encoding.from_ids(ids), keep=["logits"])["logits"]
            right.append(int(logits[0, at].argmax()) == encoding.ids[at])
    return right


def mean_pattern(trace_pattern: Tensor) -> Tensor:
    """Mean over the heads of the first text, pos key, of batch head pos key."""
    return trace_pattern[0].mean(0)


# --- attention across ---


@dataclass(frozen=True)
class CrossAttentionHead:
    """Cross-attention of one head of the decoder. `q` is pos d_head, `k` and `v` are key d_head; `pattern`, pos key,
    and `z`, pos d_head, are computed from them."""

    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Tensor
    z: Tensor


def attend_across(name: str, source: Sequence[int], target: Sequence[int], layer: int, head: int) -> CrossAttentionHead:
    """Computes cross-attention by hand: queries from the decoder's stream, keys and values from the encoder's output,
    the same in every layer (Vaswani et al. 2017, section 3.2.3). In a pre-norm model the queries read the normed
    stream, and the encoder's output has passed its final norm."""
    checkpoint = library.checkpoint(name)
    encoder = checkpoint.config.encoder
    assert encoder is not None
    attention = checkpoint.model.get_submodule(f"decoder.blocks.{layer}.cross_attn")
    assert isinstance(attention, Attention)
    trace = library.traces.trace(name, Encoding.from_ids(source), target=Encoding.from_ids(target))
    after = checkpoint.config.norm.place == "after"
    x = trace[f"decoder.blocks.{layer}.{'norm1' if after else 'norm_cross'}.out"][0]
    ends = f"blocks.{encoder.layers - 1}.norm2" if after else "final_norm"
    memory = trace[f"encoder.{ends}.out"][0]
    with torch.no_grad():
        q = attention.q(x).unflatten(-1, (attention.heads, -1))[:, head]
        k = attention.k(memory).unflatten(-1, (attention.heads, -1))[:, head]
        v = attention.v(memory).unflatten(-1, (attention.heads, -1))[:, head]
    pattern = softmax(q @ k.T / q.shape[-1] ** 0.5)
    return CrossAttentionHead(q, k, v, pattern, pattern @ v)


# --- the target ---


def shifted_right(checkpoint: Checkpoint, source: Encoding, target: Encoding) -> tuple[list[int], list[int]]:
    """Input of the decoder and its targets at each position: the same tokens, shifted by one (Vaswani et al. 2017,
    section 3.1)."""
    examples = examples_of(checkpoint, target.ids, source.ids)
    return examples.inputs["target"][0].tolist(), examples.targets[0].tolist()


@dataclass(frozen=True)
class TeacherForcedPass:
    """Forward pass over a given target. `read` are the tokens that the decoder is given, `asked` the right ones, `says`
    the model's first choices, `shares` the probabilities of the right ones, `logits` pos vocab."""

    read: list[int]
    asked: list[int]
    says: list[int]
    shares: Tensor
    logits: Tensor


@torch.inference_mode()
def teacher_forced(checkpoint: Checkpoint, source: Encoding, target: Encoding) -> TeacherForcedPass:
    """The decoder reads the right tokens, whatever it says itself (Williams & Zipser 1989); all places at once."""
    read, asked = shifted_right(checkpoint, source, target)
    logits = checkpoint.model(torch.tensor([source.ids]), target=torch.tensor([read]))[0]
    shares = softmax(logits).gather(-1, torch.tensor(asked)[:, None])[:, 0]
    return TeacherForcedPass(read, asked, logits.argmax(-1).tolist(), shares, logits)


@dataclass(frozen=True)
class GreedyTranslation:
    """`ids` are the tokens written, the end included where it came; `logits` are pos vocab, of one pass each."""

    read: list[int]
    ids: list[int]
    logits: Tensor


def write_words(checkpoint: Checkpoint, source: Encoding, most: int = LONGEST - 1) -> GreedyTranslation:
    """The decoder reads what it wrote itself, a pass for every token, and takes the likeliest."""
    steps = list(generate(checkpoint, source, most, greedy=True))
    ids = [step.id for step in steps]
    return GreedyTranslation([steps[0].before[-1], *ids[:-1]], ids, torch.stack([step.logits for step in steps]))


def gap_to_forced(checkpoint: Checkpoint, source: Encoding, written: GreedyTranslation) -> float:
    """Largest difference between the logits of what was written token by token, and those of one pass that is given
    the same tokens."""
    ends = checkpoint.end_ids
    target = shift_target(checkpoint, [id for id in written.ids if id not in ends])
    logits = teacher_forced(checkpoint, source, target).logits[: len(written.ids)]
    return float((logits - written.logits).abs().max())
