import pytest
import torch

from engine.runtime.run import run
from engine.tokenizers import Encoding
from tests.engine import tiny


def test_stack_puts_one_hook_of_every_layer_behind_each_other() -> None:
    trace = run(tiny.model(), tiny.IDS)
    patterns = trace.stack("attn.pattern")
    assert patterns.shape == (3, 1, 4, 8, 8)
    assert torch.equal(patterns[2], trace["blocks.2.attn.pattern"])
    assert torch.equal(trace.stack("attn.hook_pattern"), patterns)
    assert trace.stack("mlp.out").shape == (3, 1, 8, 16)


def test_stack_of_what_was_not_recorded_says_how_to_record_it() -> None:
    trace = run(tiny.model(), tiny.IDS, keep="logits")
    with pytest.raises(KeyError, match=r"pass 'blocks.\*.attn.pattern' in run"):
        trace.stack("attn.pattern")


def test_a_hook_that_was_not_recorded_says_how_to_record_it() -> None:
    trace = run(tiny.model(), tiny.IDS, keep="*.attn.pattern")
    assert len(trace) == 3
    assert "logits" not in trace
    assert "no such hook" not in trace
    with pytest.raises(KeyError, match=r"'logits' was not recorded; pass it in run"):
        trace["logits"]


def test_a_pattern_for_several_hooks_is_refused_where_one_is_meant() -> None:
    with pytest.raises(KeyError, match=r"stands for 3 hooks; name one of them, or use stack"):
        run(tiny.model(), tiny.IDS)["*.attn.pattern"]


def test_a_trace_cannot_be_written_to() -> None:
    trace = run(tiny.model(), tiny.IDS)
    with pytest.raises(TypeError):
        trace["logits"] = torch.zeros(1)  # type: ignore[index]


def test_bytes_count_views_of_the_same_memory_once() -> None:
    trace = run(tiny.model(), tiny.IDS, keep=["*.attn.mask"])
    assert trace.bytes == 8 * 8  # one bool mask, shared by three layers and four heads
    full = run(tiny.model(), tiny.IDS)
    assert full.bytes <= sum(value.numel() * value.element_size() for value in full.values())


def test_the_encoding_of_a_text_travels_with_its_trace() -> None:
    text = Encoding("ab", (3, 4), ("a", "b"), ((0, 1), (1, 2)), (False, False), (0, 0))
    trace = run(tiny.model(), text)
    assert trace.encoding is text
    assert trace.ids.tolist() == [[3, 4]]
    both = run(tiny.model(), [text, text])
    assert both.encodings == (text, text)
    with pytest.raises(ValueError, match="has 2 encodings, not one"):
        both.encoding  # noqa: B018
    with pytest.raises(ValueError, match="has 0 encodings, not one"):
        run(tiny.model(), [3, 4]).encoding  # noqa: B018
