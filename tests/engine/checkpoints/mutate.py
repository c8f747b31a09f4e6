"""Small valid checkpoints of every format, and ways to damage their files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.save import export_checkpoint
from engine.tokenizers.kinds.word import train
from tests.engine import tiny

TEXT = "the cat sat on the mat"
ANSWERS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 10**4, 10**9, 2**31, 2**63, 10**30, 10**400, 0.5, 1e308, float("nan"),
    float("inf"), "", "4", "x", "../../x", "gelu", "\0", "\ud800", "é" * 50, [], [1], [None], [[]], {}, {"a": {}},
    {"rope_type": "linear"}, {"rope_type": "yarn", "factor": 2.0}, [0] * 40, "a" * 300,
)  # fmt: skip


def gpt2(folder: Path) -> None:
    tokenizer = train([TEXT])
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size))
    Checkpoint(model, tokenizer, {"title": "A cat"}).save(folder)


def described(folder: Path) -> None:
    """One file that says itself what model it is, with its tokenizer in the header."""
    gpt2(folder)
    checkpoint = load(folder)
    for file in folder.iterdir():
        file.unlink()
    export_checkpoint(checkpoint, "file", folder)


def weights_alone(folder: Path) -> None:
    gpt2(folder)
    (folder / "config.json").unlink()


def sharded(folder: Path) -> None:
    gpt2(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    index = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(tensors)}
    for file in set(index.values()):
        save_file({name: tensor for name, tensor in tensors.items() if index[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def pickled(folder: Path, zipped: bool = True) -> None:
    gpt2(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)


def old_pickled(folder: Path) -> None:
    pickled(folder, zipped=False)


def wrapped(folder: Path) -> None:
    pickled(folder)
    tensors = torch.load(folder / "pytorch_model.bin", weights_only=True)
    (folder / "pytorch_model.bin").unlink()
    (folder / "config.json").unlink()
    saved = {"state_dict": {f"module.{name}": tensor for name, tensor in tensors.items()}, "epoch": 3, "lr": [0.1]}
    torch.save(saved, folder / "last.ckpt")


def nanogpt(folder: Path) -> None:
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 16, "bias": False, "vocab_size": 11, "dropout": 0.0}
    blocks = {"attn.c_attn": (24, 8), "attn.c_proj": (8, 8), "mlp.c_fc": (32, 8), "mlp.c_proj": (8, 32)}
    shapes = {f"h.{layer}.{name}": shape for layer in range(2) for name, shape in blocks.items()}
    shapes |= {f"h.{layer}.ln_{number}": (8,) for layer in range(2) for number in (1, 2)}
    shapes |= {"wte": (11, 8), "wpe": (16, 8), "ln_f": (8,)}
    state = {f"transformer.{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    state["lm_head.weight"] = state["transformer.wte.weight"]
    torch.save({"model": state, "model_args": sizes, "iter_num": 3}, folder / "ckpt.pt")


def llama2c(folder: Path) -> None:
    dim, hidden, layers, heads, vocab, context = 8, 16, 2, 2, 260, 16
    count = vocab * dim + layers * (2 * dim + 4 * dim * dim + 3 * dim * hidden) + dim + context * dim // heads
    numbers = torch.randn(count) * 0.1
    header = struct.pack("<7i", dim, hidden, layers, heads, heads, vocab, context)
    (folder / "model.bin").write_bytes(header + numbers.numpy().tobytes())
    words = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % byte for byte in range(256)), b"a"]
    tokens = b"".join(struct.pack("<fi", 0.0, len(word)) + word for word in words)
    (folder / "tokenizer.bin").write_bytes(struct.pack("<i", 9) + tokens)


def of_transformers(build: Callable[[], nn.Module]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        model: Any = build()
        model.save_pretrained(folder)

    return write


SIZES: dict[str, Any] = {"vocab_size": 40, "num_hidden_layers": 2, "intermediate_size": 24, "hidden_size": 16}
LLAMA = transformers.LlamaConfig(
    **SIZES, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
    rope_scaling={"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 16},
)  # fmt: skip
BERT = transformers.BertConfig(**SIZES, num_attention_heads=4, max_position_embeddings=32)
T5 = transformers.T5Config(vocab_size=40, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4)
MARIAN = transformers.MarianConfig(
    vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=32, pad_token_id=1, decoder_start_token_id=1,
)  # fmt: skip
VIT = transformers.ViTConfig(
    **{name: size for name, size in SIZES.items() if name != "vocab_size"},
    num_attention_heads=4,
    image_size=8,
    patch_size=4,
    num_labels=3,
)


def llama(folder: Path) -> None:
    of_transformers(lambda: transformers.LlamaForCausalLM(LLAMA))(folder)
    text = folder / "text"
    text.write_text("\n".join([TEXT, "a dog ran", "hats and bats", "some more of it"] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    text.unlink()
    (folder / "tokenizer.vocab").unlink()


def bert(folder: Path) -> None:
    of_transformers(lambda: transformers.BertForPreTraining(BERT))(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT.split()[:5], *"abcdefghijklmnopqrst", "##t", "##s"]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))


def bpe(folder: Path) -> None:
    gpt2(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps({"a": 0, "t": 1, "at": 2, "c": 3, "cat": 4, "<|endoftext|>": 5}))
    (folder / "merges.txt").write_text("#version: 0.2\na t\nc at\n")


CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "gpt2": gpt2,
    "described": described,
    "weights alone": weights_alone,
    "sharded": sharded,
    "pickled": pickled,
    "old pickled": old_pickled,
    "wrapped": wrapped,
    "nanogpt": nanogpt,
    "llama2.c": llama2c,
    "llama": llama,
    "bert": bert,
    "bpe": bpe,
    "t5": of_transformers(lambda: transformers.T5ForConditionalGeneration(T5)),
    "marian": of_transformers(lambda: transformers.MarianMTModel(MARIAN)),
    "vit": of_transformers(lambda: transformers.ViTForImageClassification(VIT)),
}


def damage(path: Path, random: Random) -> str:
    """Changes one file in one way, and says which."""
    data = path.read_bytes()
    text = path.suffix == ".json" and random.random() < 0.8
    header = path.suffix == ".safetensors" and random.random() < 0.5
    change = in_json if text else in_header if header else random.choice(OF_BYTES)
    path.write_bytes(change(data, random))
    return change.__name__


def in_json(data: bytes, random: Random) -> bytes:
    return json.dumps(changed(json.loads(data), random)).encode("utf-8", "surrogatepass")


def in_header(data: bytes, random: Random) -> bytes:
    """One value of a safetensors header, padded or not."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.dumps(changed(json.loads(data[8 : 8 + length]), random)).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def changed(tree: Any, random: Random) -> Any:
    """One place of a JSON value replaced, taken out, or swapped with another."""
    here = tree
    while True:
        places = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not places:
            return random.choice(ANSWERS)
        place = random.choice(places)
        if not isinstance(here[place], (dict, list)) or not here[place] or random.random() < 0.2:
            break
        here = here[place]
    kind = random.randrange(4)
    if kind == 0:
        del here[place]
    elif kind == 1 and isinstance(here, dict):
        here[random.choice(["", "a", "__metadata__", f"{place}x"])] = here[place]
    elif kind == 2:
        other = random.choice(places)
        here[place], here[other] = here[other], here[place]
    else:
        here[place] = random.choice(ANSWERS)
    return tree


def somewhere(data: bytes, random: Random) -> int:
    """Headers and ends are where it hurts."""
    end = max(len(data) - 1, 0)
    return min(end, random.choice([random.randrange(64), random.randrange(2000), random.randrange(len(data) or 1)]))


def flipped(data: bytes, random: Random) -> bytes:
    raw = bytearray(data)
    for _ in range(random.randrange(1, 6)):
        at = somewhere(data, random)
        at = at if random.random() < 0.7 else -at
        raw[at : at + 1] = bytes([raw[at] ^ (1 << random.randrange(8))]) if raw else b""
    return bytes(raw)


def overwritten(data: bytes, random: Random) -> bytes:
    at, value = somewhere(data, random), random.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1])
    width = random.choice([1, 2, 4, 8])
    return data[:at] + (value % 256**width).to_bytes(width, "little") + data[at + width :]


def truncated(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def spliced(data: bytes, random: Random) -> bytes:
    start, to, length = somewhere(data, random), somewhere(data, random), random.randrange(200)
    return data[:to] + data[start : start + length] + data[to + random.choice([0, length]) :]


def filled(data: bytes, random: Random) -> bytes:
    """Numbers that are none."""
    at = random.randrange(len(data) + 1) // 4 * 4
    return data[:at] + struct.pack("<f", random.choice([float("nan"), float("inf"), 3e38])) + data[at + 4 :]


OF_BYTES = (flipped, overwritten, truncated, spliced, filled)
