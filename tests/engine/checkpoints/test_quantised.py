"""Folders of quantised weights: each kind packed here as its definition says, one number after another, and opened."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from engine.analysis.parity import parity
from engine.checkpoints import load
from engine.checkpoints.quantised import quantisations
from engine.inputs.readers import Reading
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine.checkpoints.against import IDS, shaken

SIZES: dict[str, Any] = {"vocab_size": 40, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 32}
GROUP = 32
Packed = tuple[Mapping[str, Tensor], Tensor]  # tensors by the ends of their names, and the matrix that they are
Pack = Callable[[int, int], Packed]


def drawn(most: int, *shape: int, least: int = 0) -> Tensor:
    return torch.randint(least, most, shape)


def scales(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    return (torch.rand(shape) * 0.02 + 0.001).to(dtype)


def text(said: str) -> Tensor:
    return torch.tensor([*said.encode()], dtype=torch.uint8)


def words(rows: Tensor, bits: int, dtype: torch.dtype = torch.int32) -> Tensor:
    """Each row as one long number, whose lowest bits are the first of it."""
    count = -(-rows.shape[1] * bits // 32)
    long = [sum(int(number) << bits * at for at, number in enumerate(row)) for row in rows]
    return torch.tensor([[*number.to_bytes(4 * count, "little")] for number in long], dtype=torch.uint8).view(dtype)


def matrix(rows: int, columns: int, value: Callable[[int, int], Tensor]) -> Tensor:
    return torch.stack([torch.stack([value(row, column).float() for column in range(columns)]) for row in range(rows)])


def gptq(bits: int, act_order: bool, version: int) -> Pack:
    def pack(rows: int, columns: int) -> Packed:
        groups = columns // GROUP
        numbers, zeros, scale = drawn(2**bits, rows, columns), drawn(2**bits, groups, rows), scales(groups, rows)
        index = torch.arange(columns) // GROUP
        index = index[torch.randperm(columns)] if act_order else index
        held = (zeros - 1) % 2**bits if version == 1 else zeros
        tensors = {".qweight": words(numbers, bits).T, ".qzeros": words(held, bits), ".scales": scale}
        whole = matrix(
            rows,
            columns,
            lambda o, i: scale[index[i], o].float() * (numbers[o, i] - zeros[index[i], o]),
        )
        return {**tensors, ".g_idx": index.int()}, whole

    return pack


def awq(rows: int, columns: int) -> Packed:
    groups, order = columns // GROUP, [0, 2, 4, 6, 1, 3, 5, 7]
    numbers, zeros, scale = drawn(16, columns, rows), drawn(16, groups, rows), scales(groups, rows)
    ordered = [8 * (at // 8) + order[at % 8] for at in range(rows)]
    tensors = {".qweight": words(numbers[:, ordered], 4), ".qzeros": words(zeros[:, ordered], 4), ".scales": scale}
    return tensors, matrix(
        rows, columns, lambda o, i: (numbers[i, o] - zeros[i // GROUP, o]) * scale[i // GROUP, o].float()
    )


def packed_integers(bits: int, zeroed: bool, act_order: bool = False, older: bool = False) -> Pack:
    def pack(rows: int, columns: int) -> Packed:
        groups, half = columns // GROUP, 2 ** (bits - 1)
        numbers, scale = drawn(half, rows, columns, least=-half), scales(rows, groups, dtype=torch.bfloat16)
        zeros = drawn(half, rows, groups, least=-half) if zeroed else torch.zeros(rows, groups, dtype=torch.int64)
        index = torch.arange(columns) // GROUP
        index = index[torch.randperm(columns)] if act_order else index
        tensors = {".weight_packed": words(numbers + half, bits), ".weight_scale": scale}
        tensors |= {".weight_shape": torch.tensor([rows, columns])}
        held = zeros.to(torch.int8) if older else words((zeros + half).T, bits).T
        tensors |= {".weight_zero_point": held} if zeroed else {}
        tensors |= {".weight_g_idx": index.int()} if act_order else {}
        return tensors, matrix(
            rows, columns, lambda o, i: (numbers[o, i] - zeros[o, index[i]]) * scale[o, index[i]].float()
        )

    return pack


def whole_integers(rows: int, columns: int) -> Packed:
    numbers, scale = drawn(128, rows, columns, least=-128), scales(rows, 1)
    tensors = {".weight": numbers.to(torch.int8), ".weight_scale": scale, ".input_scale": torch.ones(1)}
    return tensors, matrix(rows, columns, lambda o, i: numbers[o, i] * scale[o, 0].float())


def eight_bit_floats(end: str, block: tuple[int, int] | None) -> Pack:
    def pack(rows: int, columns: int) -> Packed:
        high, wide = block or (rows, columns)
        numbers = torch.randn(rows, columns).to(torch.float8_e4m3fn)
        scale = scales(-(-rows // high), -(-columns // wide), dtype=torch.float32)
        tensors = {".weight": numbers, end: scale if block else scale.view(1)}
        return tensors, matrix(rows, columns, lambda o, i: numbers[o, i].float() * scale[o // high, i // wide])

    return pack


def four_bits(kind: str, nested: bool) -> Pack:
    def pack(rows: int, columns: int) -> Packed:
        count = rows * columns
        numbers, levels, blocks = drawn(16, count), torch.linspace(-1, 1, 16), count // 64
        state = {"quant_type": kind, "blocksize": 64, "dtype": "bfloat16", "shape": [rows, columns]}
        tensors = {".weight": (numbers[::2] * 16 + numbers[1::2]).to(torch.uint8)[:, None]}
        tensors |= {".weight.quant_map": levels}
        if nested:
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.0173}
            held, inner, outer = drawn(256, blocks), torch.rand(256) * 0.01, torch.rand(-(-blocks // 256))
            size = torch.stack([inner[int(one)] * outer[at // 256] + 0.0173 for at, one in enumerate(held)])
            tensors |= {".weight.absmax": held.to(torch.uint8), ".weight.nested_absmax": outer}
            tensors |= {".weight.nested_quant_map": inner}
        else:
            tensors[".weight.absmax"] = size = torch.rand(blocks)
        tensors[f".weight.quant_state.bitsandbytes__{kind}"] = text(json.dumps(state))
        return tensors, matrix(
            rows, columns, lambda o, i: levels[numbers[o * columns + i]] * size[(o * columns + i) // 64]
        )

    return pack


def eight_bits(rows: int, columns: int) -> Packed:
    numbers, scale = drawn(128, rows, columns, least=-127), torch.rand(rows) * 4
    tensors = {".weight": numbers.to(torch.int8), ".SCB": scale, ".weight_format": torch.tensor(0, dtype=torch.uint8)}
    return tensors, matrix(rows, columns, lambda o, i: numbers[o, i] * scale[o] * 7.874015718698502e-3)


def mlx(bits: int) -> Pack:
    def pack(rows: int, columns: int) -> Packed:
        numbers, groups = drawn(2**bits, rows, columns), columns // GROUP
        scale, bias = scales(rows, groups), -scales(rows, groups)
        tensors = {".weight": words(numbers, bits, torch.uint32), ".scales": scale, ".biases": bias}
        return tensors, matrix(
            rows, columns, lambda o, i: scale[o, i // GROUP].float() * numbers[o, i] + bias[o, i // GROUP].float()
        )

    return pack


def of_gptq(bits: int, **more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": GROUP, **more}}


def of_compressed(format: str, strategy: str, **more: Any) -> dict[str, Any]:
    arguments = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": strategy, **more}
    groups = {"group_0": {"targets": ["Linear"], "weights": arguments}}
    table = {"quant_method": "compressed-tensors", "format": format, "config_groups": groups}
    table |= {"ignore": ["lm_head"], "quantization_status": "compressed"}
    return {"quantization_config": table}


def of_awq(**more: Any) -> dict[str, Any]:
    table = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True, **more}
    return {"quantization_config": table}


def of_fp8(**more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", **more}}


def of_mlx(bits: int, **more: Any) -> dict[str, Any]:
    return {"quantization": {"group_size": GROUP, "bits": bits, **more}}


BITSANDBYTES = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
CASES: dict[str, tuple[Pack, Mapping[str, Any], str]] = {
    **{f"gptq {bits}": (gptq(bits, False, 1), of_gptq(bits), f"GPTQ {bits} bits") for bits in (2, 3, 4, 8)},
    "gptq by act-order": (gptq(4, True, 1), of_gptq(4, desc_act=True, sym=False), "GPTQ 4 bits"),
    "gptq 2": (gptq(4, False, 2), of_gptq(4, checkpoint_format="gptq_v2"), "GPTQ 4 bits"),
    "awq": (awq, of_awq(), "AWQ 4 bits"),
    "packed 4": (
        packed_integers(4, False),
        of_compressed("pack-quantized", "group", num_bits=4, group_size=GROUP),
        "compressed-tensors int4",
    ),
    "packed 3 by act-order": (
        packed_integers(3, True, True),
        of_compressed("pack-quantized", "group", num_bits=3, symmetric=False, group_size=GROUP, actorder="group"),
        "compressed-tensors int3",
    ),
    "packed 4 with whole zeros": (
        packed_integers(4, True, older=True),
        of_compressed("pack-quantized", "group", num_bits=4, symmetric=False, group_size=GROUP),
        "compressed-tensors int4",
    ),
    "packed 8 with zeros": (
        packed_integers(8, True),
        of_compressed("pack-quantized", "group", symmetric=False, group_size=GROUP),
        "compressed-tensors int8",
    ),
    "int8": (whole_integers, of_compressed("int-quantized", "channel"), "compressed-tensors int8"),
    "float8 of a matrix": (
        eight_bit_floats(".weight_scale", None),
        of_compressed("float-quantized", "tensor", type="float"),
        "compressed-tensors float8",
    ),
    "float8 of rows": (
        eight_bit_floats(".weight_scale", (1, 128)),
        of_compressed("float-quantized", "channel", type="float"),
        "compressed-tensors float8",
    ),
    "float8 of blocks": (
        eight_bit_floats(".weight_scale", (16, 64)),
        of_compressed("naive-quantized", "block", type="float", block_structure=[16, 64]),
        "compressed-tensors float8",
    ),
    "fp8": (eight_bit_floats(".weight_scale_inv", (32, 32)), of_fp8(weight_block_size=[32, 32]), "float8"),
    "fp8 of a matrix": (
        eight_bit_floats(".weight_scale", None),
        {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}},
        "float8",
    ),
    "fp8 by its names": (eight_bit_floats(".weight_scale_inv", (128, 128)), {}, "float8"),
    "nf4": (four_bits("nf4", True), BITSANDBYTES, "bitsandbytes nf4"),
    "fp4 by its names": (four_bits("fp4", False), {}, "bitsandbytes fp4"),
    "int8 of bitsandbytes": (eight_bits, BITSANDBYTES, "bitsandbytes int8"),
    **{f"mlx {b}": (mlx(b), of_mlx(b), f"MLX {b} bits") for b in (3, 4, 6, 8)},
}  # fmt: skip


def llama() -> Any:
    torch.manual_seed(0)
    return shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)))


def write(model: Any, folder: Path, pack: Pack, says: Mapping[str, Any], part: str = "_proj") -> dict[str, Tensor]:
    """Writes the model with its matrices packed, puts what they are into it, and returns that."""
    model.save_pretrained(folder)
    tensors, expected = load_file(folder / "model.safetensors"), {}
    for name in [name for name in tensors if f"{part}.weight" in name]:
        module = name.removesuffix(".weight")
        packed, expected[name] = pack(*tensors.pop(name).shape)
        tensors |= {module + end: tensor.contiguous() for end, tensor in packed.items()}
    save_file(tensors, folder / "model.safetensors")
    change_config(folder, says)
    model.load_state_dict({**model.state_dict(), **expected})
    return expected


def change_config(folder: Path, says: Mapping[str, Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **says}))


def agrees(model: Any, folder: Path, expected: Mapping[str, Tensor], kind: str) -> None:
    """Opened, run, saved and opened by transformers, it is the model of these matrices to the last bit."""
    checkpoint = load(folder)
    assert checkpoint.report.ok, checkpoint.report
    assert {row.name for row in checkpoint.report.rows if row.dtype == kind} == {*expected}
    assert any(f"{kind})" in note and "bits each" in note for note in checkpoint.report.notes), checkpoint.report.notes
    assert not any("does not read" in note for note in checkpoint.report.notes)
    rounded = any(name.endswith(".input_scale") for name in load_file(folder / "model.safetensors"))
    assert rounded == any("rounds activations were left out" in note for note in checkpoint.report.notes)
    with torch.no_grad():
        torch.testing.assert_close(run(checkpoint.model, IDS)["logits"], model(IDS).logits, atol=1e-4, rtol=0)
    checkpoint.save(folder / "saved")
    assert not {"quantization", "quantization_config"} & json.loads((folder / "saved/config.json").read_text()).keys()
    again, told = type(model).from_pretrained(folder / "saved", output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    state = again.state_dict()
    for name, one in expected.items():
        assert torch.equal(state[name], one), name
    compared = parity(checkpoint, folder, Reading(Encoding.from_ids([5, 3, 30, 7])))
    assert compared.logits < 1e-4 and compared.through == "our export"


@pytest.mark.parametrize("name", CASES)
def test_a_folder_is_the_model_of_its_numbers_to_the_last_bit(name: str, tmp_path: Path) -> None:
    pack, says, kind = CASES[name]
    model = llama()
    agrees(model, tmp_path, write(model, tmp_path, pack, says), kind)


def test_experts_of_gpt_oss_are_what_transformers_makes_of_them(tmp_path: Path) -> None:
    sizes = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4}
    torch.manual_seed(0)
    model = shaken(transformers.GptOssForCausalLM(transformers.GptOssConfig(**sizes)))
    model.save_pretrained(tmp_path)
    tensors, expected = load_file(tmp_path / "model.safetensors"), {}
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, inputs, outputs = tensors.pop(name).shape
        blocks = drawn(256, experts, outputs, inputs // 32, 16).to(torch.uint8)
        powers = drawn(125, experts, outputs, inputs // 32, least=118).to(torch.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": powers}
        expected[name] = convert_moe_packed_tensors(blocks, powers, dtype=torch.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    change_config(tmp_path, {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}})
    model.load_state_dict({**model.state_dict(), **expected})
    theirs = transformers.GptOssForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert all(torch.equal(theirs.state_dict()[name], one) for name, one in expected.items())
    agrees(model, tmp_path, expected, "MXFP4")
    tensors[f"{name}_scales"][0, 0, 0] = 255
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="finite numbers"):
        load(tmp_path)


def test_blocks_of_float8_are_what_transformers_makes_of_them(tmp_path: Path) -> None:
    expected = write(llama(), tmp_path, *CASES["fp8"][:2])
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert all(torch.equal(theirs.state_dict()[name], one) for name, one in expected.items())


@pytest.mark.parametrize("name", ["gptq 4", "nf4"])
def test_matrices_of_conv1d_are_turned_over(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=40, n_embd=64, n_layer=2, n_head=4, n_positions=32)
    model = shaken(transformers.GPT2LMHeadModel(config))
    pack, says, kind = CASES[name]

    def turned(inputs: int, outputs: int) -> Packed:
        tensors, whole = pack(outputs, inputs)
        return tensors, whole.T.contiguous()

    expected = write(model, tmp_path, turned, says, part="attn.c_proj")
    agrees(model, tmp_path, expected, kind)


REFUSED: list[tuple[str, Mapping[str, Any], str]] = [
    ("gptq 4", of_gptq(5), "must have bits 2 or 3 or 4 or 8 .* got 5"),
    ("gptq 4", of_gptq(4, checkpoint_format="marlin"), "checkpoint_format 'gptq' or 'gptq_v2' .* got 'marlin'"),
    ("gptq 4", of_gptq(4, dynamic={"+:.*mlp": {"bits": 8}}), "must have dynamic left out"),
    ("gptq 4", of_gptq(4, group_size=0), "must have group_size a whole number above 0"),
    ("gptq 4", of_gptq(4, group_size=48), "must have a number of inputs that 48 divides, got 64"),
    ("gptq 4", of_gptq(8), r"scales .* must be .* of shape \(1, 96\) .* got float16 of shape \(2, 96\)"),
    ("gptq 4", of_gptq(4, quant_method="aqlm"), "MXFP4.* and config.json has a quantization_config of 'aqlm'"),
    ("gptq 4", {"quantization_config": "gptq"}, "quantization_config must be a table, got 'gptq'"),
    ("gptq 4", {}, "must not be quantised but as config.json says, and .*g_idx is of GPTQ"),
    ("awq", of_awq(version="gemv"), "must have version 'gemm' or .* got 'gemv'"),
    ("awq", of_awq(zero_point=False), "must have zero_point True"),
    ("int8", of_compressed("nvfp4-pack-quantized", "channel"), "format 'dense' or .* got 'nvfp4-pack-quantized'"),
    ("int8", of_compressed("int-quantized", "group", group_size=GROUP), "must be of one group .* fits 0"),
    ("int8", of_compressed("int-quantized", "tensor_group"), "must have strategy 'tensor' or .* got 'tensor_group'"),
    ("mlx 4", of_mlx(4, mode="mxfp4"), "must have mode 'affine' .* got 'mxfp4'"),
    ("mlx 4", of_mlx(4, group_size=64), r"scales .* must be .* of shape \(96, 1\)"),
    ("fp8", of_fp8(weight_block_size=[32]), "must have weight_block_size two whole"),
    ("fp8", of_fp8(), "must be float32 or .* of shape .* not of one model"),
]


def test_what_is_not_decoded_is_refused_by_name(tmp_path: Path) -> None:
    for at, (name, says, told) in enumerate(REFUSED):
        folder = tmp_path / str(at)
        write(llama(), folder, CASES[name][0], says, "up_proj")
        with pytest.raises(ValueError, match=told) as caught:
            load(folder)
        assert str(caught.value).endswith(".") and len(str(caught.value)) < 700, caught.value


STATE = "weight.quant_state.bitsandbytes__nf4"
LAYER = "model.layers.0.mlp.up_proj."
DAMAGED: list[tuple[str, str, Tensor | None, str]] = [
    ("gptq by act-order", "g_idx", torch.full((64,), 2, dtype=torch.int32), "must name groups from 0 to 1, got 2"),
    ("gptq by act-order", "g_idx", torch.full((64,), -1, dtype=torch.int32), "must name groups from 0 to 1, got -1"),
    ("gptq by act-order", "g_idx", None, "must come with .*g_idx"),
    ("gptq 4", "qzeros", torch.zeros(2, 11, dtype=torch.int32), r"must be int32 .*shape \(2, 12\).*got int32 of shape"),
    ("gptq 4", "qweight", torch.zeros(8, 0, dtype=torch.int32), "none of them empty"),
    ("gptq 4", "qweight", None, "must not be quantised but as config.json says"),
    ("gptq 4", "weight", torch.zeros(96, 64), "must come once"),
    ("awq", "scales", torch.full((2, 96), torch.nan, dtype=torch.float16), "finite numbers"),
    ("packed 4", "weight_shape", torch.tensor([96, 10**12]), "must be the shape of what"),
    ("packed 4", "weight_shape", None, "must come with .*weight_shape"),
    ("int8", "weight_scale", torch.ones(7, 1), "fits 0"),
    ("nf4", STATE, text("{"), "does not read as such"),
    ("nf4", STATE, text('{"quant_type": "nf4", "shape": [1e400, -1], "blocksize": 64}'), "shape and blocksize"),
    ("nf4", STATE, text('{"quant_type": "nf4", "shape": [1000000000, 64], "blocksize": 64}'), "not of one model"),
    ("nf4", "weight.absmax", torch.zeros(3), "not of one model"),
    ("int8 of bitsandbytes", "weight_format", torch.tensor(2, dtype=torch.uint8), "must be 0"),
    ("int8 of bitsandbytes", "weight", None, "must come with .*up_proj.weight, int8, which"),
    ("mlx 4", "biases", None, "must come with .*biases"),
    ("mlx 6", "weight", torch.zeros(96, 13, dtype=torch.int32).view(torch.uint32), "that 6 divides"),
    ("fp8", "weight_scale_inv", torch.ones(2, 3), "not of one model"),
]  # fmt: skip


def test_a_damaged_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for at, (name, end, tensor, told) in enumerate(DAMAGED):
        folder = tmp_path / str(at)
        write(llama(), folder, *CASES[name][:2], "up_proj")
        tensors = load_file(folder / "model.safetensors")
        tensors.pop(LAYER + end, None)
        save_file(tensors | ({} if tensor is None else {LAYER + end: tensor}), folder / "model.safetensors")
        with pytest.raises(ValueError, match=told) as caught:
            load(folder)
        assert str(caught.value).endswith((".", "?")) and len(str(caught.value)) < 700, (name, end, caught.value)


def test_a_config_that_says_more_than_the_weights_is_a_note(tmp_path: Path) -> None:
    model = llama()
    model.save_pretrained(tmp_path)
    change_config(tmp_path, {**BITSANDBYTES, "quantization_config": {"load_in_4bit": True}})
    assert any("none is: they were read as they are" in note for note in load(tmp_path).report.notes)


def test_every_kind_is_compared() -> None:
    compared = {kind.split()[0] for _, _, kind in CASES.values()} | {"MXFP4", "FP8"}
    assert {kind.name for kind in quantisations()} == compared - {"float8"}
