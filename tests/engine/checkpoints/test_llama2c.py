"""llama2.c's plain files: the numbers of the same model in transformers, and no trust in a header."""

import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.llama2c import MAGIC, is_llama2c, read_llama2c, read_tokens, tokenizer_beside
from engine.generation.generate import generate
from engine.runtime.run import run

REAL = Path(__file__).parents[3].parent / "shared" / "real" / "stories260K"
IDS = torch.tensor([[1, 5, 30, 7, 7, 31, 12, 3, 24, 1]])
SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "intermediate_size": 36}
SIZES |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 16}


def llama(tied: bool) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, tie_word_embeddings=tied, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def neighbours(weight: Tensor, d_head: int) -> Tensor:
    """The inverse of `permute_reverse` in llama2.c's export.py: row 2i of a head is row i, 2i+1 is d_head/2 + i."""
    rows = [
        head * d_head + pair + half * d_head // 2
        for head in range(len(weight) // d_head)
        for pair in range(d_head // 2)
        for half in range(2)
    ]
    return weight[rows]


def exported(model: Any, version: int) -> bytes:
    """As `legacy_export` and `version1_export` of llama2.c's export.py write it."""
    state, config = model.state_dict(), model.config
    layers = range(config.num_hidden_layers)
    d_head = config.hidden_size // config.num_attention_heads
    tied = config.tie_word_embeddings

    def of_layers(name: str) -> list[Tensor]:
        found = [state[f"model.layers.{layer}.{name}.weight"] for layer in layers]
        return [neighbours(w, d_head) if name.endswith(("q_proj", "k_proj")) else w for w in found]

    embedding, final = state["model.embed_tokens.weight"], state["model.norm.weight"]
    attention = [w for x in "qkvo" for w in of_layers(f"self_attn.{x}_proj")]
    mlp = [w for x in ("gate", "down", "up") for w in of_layers(f"mlp.{x}_proj")]
    norms = of_layers("input_layernorm"), of_layers("post_attention_layernorm")
    sizes = [config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_attention_heads]
    sizes += [config.num_key_value_heads, config.vocab_size, config.max_position_embeddings]
    if version == 0:
        sizes[5] *= 1 if tied else -1
        header = struct.pack("<7i", *sizes)
        angles = torch.zeros(2, config.max_position_embeddings, d_head // 2)
        tensors = [embedding, *norms[0], *attention, *norms[1], *mlp, final, angles]
    else:
        header = (MAGIC + struct.pack("<i7iB", 1, *sizes, tied)).ljust(256, b"\0")
        tensors = [*norms[0], *norms[1], final, embedding, *attention, *mlp]
    tensors += [] if tied else [state["lm_head.weight"]]
    return header + b"".join(tensor.float().contiguous().numpy().tobytes() for tensor in tensors)


def opened(path: Path) -> Checkpoint:
    checkpoint = load(path)
    assert checkpoint.report.ok, checkpoint.report
    return checkpoint


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_attention_are_those_of_the_model_in_transformers(tmp_path: Path, version: int, tied: bool) -> None:
    model = llama(tied)
    path = tmp_path / "model.bin"
    path.write_bytes(exported(model, version))
    assert is_llama2c(path)
    ours = opened(path)
    trace = run(ours.model, IDS)
    with torch.no_grad():
        theirs = model(IDS, output_attentions=True)
    torch.testing.assert_close(trace["logits"], theirs.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(theirs.attentions), atol=1e-5, rtol=0)
    assert ours.config.tied is tied and ours.config.context == 16
    dropped = {row.name for row in ours.report.rows_with("dropped")}
    assert dropped == (set() if version else {"freq_cis_real", "freq_cis_imag"})


def test_it_is_saved_as_a_llama_that_transformers_reads(tmp_path: Path) -> None:
    model = llama(True)
    (tmp_path / "model.bin").write_bytes(exported(model, 0))
    opened(tmp_path / "model.bin").save(tmp_path / "saved")
    again = type(model).from_pretrained(tmp_path / "saved")
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_the_real_file_is_the_same_model_and_writes_the_same_story() -> None:
    if not REAL.exists():
        pytest.skip(f"no real checkpoint at {REAL}")
    ours, theirs = opened(REAL / "stories260K.bin"), load(REAL)
    assert ours.config == theirs.config
    for (name, one), other in zip(ours.model.state_dict().items(), theirs.model.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    tokenizer = tokenizer_beside(REAL / "stories260K.bin", 512)
    assert tokenizer is not None and theirs.tokenizer is not None
    text = 'Once upon a time, Lily\'s 🦉 said:\n"1234"'
    assert tokenizer.encode(text).ids == theirs.tokenizer.encode(text).ids
    steps = generate(Checkpoint(ours.model, tokenizer), "", max_tokens=50, greedy=True, stop_at_end=False)
    story = tokenizer.decode([step.id for step in steps])
    assert len(story) > 90
    assert (REAL / "golden_greedy256.txt").read_text().startswith(story)


def tokens(path: Path, entries: list[tuple[float, bytes]]) -> Path:
    body = b"".join(struct.pack("<fi", score, len(entry)) + entry for score, entry in entries)
    path.write_bytes(struct.pack("<i", 9) + body)
    return path


MARKS = [(0.0, b"<unk>"), (0.0, b"\n<s>\n"), (0.0, b"\n</s>\n"), *((0.0, b"<0x%02X>" % byte) for byte in range(256))]
ENTRIES = [*MARKS, (-1.0, b" b"), (-2.0, b"ab"), (-3.0, b" "), (-4.0, b"a"), (-5.0, b"b"), (-6.0, "é".encode())]


def test_a_text_is_cut_as_run_c_does(tmp_path: Path) -> None:
    """<s>, a space before the text, the best merge first, and the bytes of what has no token."""
    tokenizer = read_tokens(tokens(tmp_path / "tok265.bin", ENTRIES), 265)
    assert tokenizer.encode("ab  bé\n").ids == (1, 261, 260, 261, 259, 264, 3 + 10)
    assert tokenizer.decode(tokenizer.encode("ab  bé\n").ids, special=False) == "ab  bé\n"
    assert (tokenizer.end_id, tokenizer.vocab_size) == (2, 265)
    found = tokenizer_beside(tmp_path / "model.bin", 265)
    assert found is not None and found.pieces == tokenizer.pieces
    assert tokenizer_beside(tmp_path / "model.bin", 9) is None


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (lambda good: good[:-1], "damaged at token 264"),
        (lambda good: good + b"x", "1 bytes more"),
        (lambda good: good[:8] + b"\xff\xff\xff\x7f" + good[12:], "damaged at token 0"),
        (lambda good: good.replace(b"ab", b" b"), "no two alike"),
        (lambda good: good + bytes(10**6), "longer than those"),
    ],
)
def test_a_damaged_file_of_tokens_is_named(tmp_path: Path, data: Any, wrong: str) -> None:
    path = tokens(tmp_path / "tok265.bin", ENTRIES)
    path.write_bytes(data(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"tok265\.bin must hold .*{wrong}"):
        read_tokens(path, 265)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda data: data[:20], "begin with a header"),
        (lambda data: data[:-4], "bytes long"),
        (lambda data: data + b"\0", "bytes long"),
        (lambda data: struct.pack("<i", 2**30) + data[4:], "bytes long|sizes that make"),
        (lambda data: struct.pack("<7i", 4, 4, 2**20, 2, 2, 4, 4) + data[28:], "sizes that make"),
        (lambda data: struct.pack("<7i", 4, 4, 2, 0, 2, 4, 4) + data[28:], "sizes that make"),
        (lambda data: struct.pack("<7i", 4, 4, 2, 2, -2, 4, 4) + data[28:], "sizes that make"),
        (lambda data: MAGIC + struct.pack("<i", 2) + data, "quantised"),
    ],
)
def test_a_header_that_is_not_true_is_refused(tmp_path: Path, change: Any, wrong: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(change(exported(llama(True), 0)))
    with pytest.raises(ValueError, match=rf"model\.bin must .*({wrong})"):
        read_llama2c(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=st.binary(min_size=0, max_size=300))
def test_no_header_makes_it_read_beyond_the_file(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(header)
    with pytest.raises(ValueError, match=r"model\.bin must "):
        read_llama2c(tmp_path / "model.bin")


def test_other_files_that_end_in_bin_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    for zipped in (True, False):
        torch.save({"a": torch.zeros(9)}, path, _use_new_zipfile_serialization=zipped)
        assert not is_llama2c(path)
    assert not is_llama2c(tokens(tmp_path / "tok265.bin", ENTRIES))
