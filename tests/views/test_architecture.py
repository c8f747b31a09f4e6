"""What the architecture page draws is what the config says and the formulas give."""

from typing import Any

import pytest

from engine.analysis.sizes import Symbol, count, parameters
from engine.analysis.switches import SWITCHES
from engine.model.config import ModelConfig
from engine.model.presets import NAMED
from tests.engine.analysis.test_sizes import EVERYTHING
from views.architecture import architecture as view
from views.core.payload import unpack

BERT = NAMED["bert-base"].config


def header(*names: str, **more: Any) -> dict[str, Any]:
    return unpack(view.architecture([(name, NAMED[name].config) for name in names], **more))[0]


def test_every_part_arrives_with_its_count_and_a_block_that_is_drawn(subtests: pytest.Subtests) -> None:
    for name, config in EVERYTHING.items():
        with subtests.test(name=name):
            (model,) = unpack(view.architecture([(name, config)]))[0]["models"]
            assert model["total"] == count(config) == sum(part["count"] for part in model["parts"])
            assert [part["tex"] for part in model["parts"]] == [part.formula.tex for part in parameters(config)]
            assert {part["block"] for part in model["parts"]} <= drawn_blocks(model)


def drawn_blocks(model: dict[str, Any]) -> set[str]:
    """The ids that assets/views/components/stack.js gives to the blocks of a drawing."""
    found = {box["id"] for box in model["ends"]["boxes"]}
    for stack in model["stacks"]:
        own = {row["id"] for row in stack["embedding"]} | {"attn", "relative", "distances"}
        own |= {"mlp"} if stack["mlp"] else set()
        own |= {"cross_attn", "norm_cross"} if stack["cross"] else set()
        own |= {"embed_norm"} if stack["embedNorm"] else set()
        own |= {"final_norm"} if stack["finalNorm"] else set()
        if stack["place"] != "output":
            own |= {"norm1"} | ({"norm2"} if stack["sublayers"] != "parallel_one_norm" else set())
        own |= {"norm1_after", "norm2_after"} if stack["place"] in ("around", "output") else set()
        found |= {stack["prefix"] + block for block in own}
    return found


def test_the_relatives_are_one_picture_with_other_switches() -> None:
    bert, t5, llama, glm, vit = header("bert-base", "t5-small", "llama-3-8b", "chatglm-6b", "vit-b-16")["models"]
    masks = [[stack["attention"]["mask"] for stack in model["stacks"]] for model in (bert, t5, llama, glm, vit)]
    assert masks == [["full"], ["full", "causal"], ["causal"], ["prefix"], ["full"]]
    assert [row["id"] for row in bert["stacks"][0]["embedding"]] == ["tokens", "positions", "segments"]
    assert t5["stacks"][1]["cross"]["mask"] == "full" and t5["stacks"][0]["cross"] is None
    assert (llama["stacks"][0]["attention"]["heads"], llama["stacks"][0]["attention"]["kvHeads"]) == (32, 8)
    assert glm["stacks"][0]["attention"]["notes"] == ["rotary positions", "of two kinds"]
    assert vit["stacks"][0]["reads"] == "[CLS] and 14 × 14 patches of a picture"
    (whisper,) = unpack(view.architecture([("whisper", EVERYTHING["whisper"])]))[0]["models"]
    reads = [(stack["embedding"][0]["id"], stack["reads"]) for stack in whisper["stacks"]]
    assert reads == [("sound", "48 frames of 7 mel bins"), ("tokens", "token ids")]
    assert "shared" not in whisper["stacks"][1]["embedding"][0]["detail"]
    assert [model["ends"]["tied"] for model in (bert, t5, llama, vit)] == [False, True, False, False]


def test_what_differs_is_marked_in_the_blocks_that_show_it() -> None:
    assert header("bert-base", "gpt2", differing=["mask", "pooler"])["marked"] == ["attn", "pooler"]
    assert set(view.SHOWN_BY) == {switch.name for switch in SWITCHES}


def test_a_table_has_each_formula_in_tex_and_the_sum() -> None:
    table = view.table(view.part_rows(BERT), count(BERT), "parameters")
    assert "| tokens,\u00a0$W_E$ | 23,440,896 | 21.41\u00a0% | ${V \\cdot d}$ | ${30{,}522 \\cdot 768}$ |" in table
    assert (
        table.splitlines()[-1] == "| **all** | | | **109,482,240** |  |" or "**109,482,240**" in table.splitlines()[-1]
    )
    narrow = view.table([("less", -3 * Symbol("d", 5))], -15, "parameters", narrow=True)
    assert narrow.splitlines()[2] == "| less | −15 | ${-3 \\cdot d}$ | ${-3 \\cdot 5}$ |"


def test_sizes_in_words() -> None:
    assert [view.percent(x) for x in (0.2141, 0.000171, 2.3e-7, 0)] == [
        "21.41\u00a0%",
        "0.017\u00a0%",
        "2.3e-05\u00a0%",
        "0.00\u00a0%",
    ]
    assert [view.size(n) for n in (512, 1536, 5 * 2**30)] == ["512 bytes", "1.50 KiB", "5.00 GiB"]
    assert [view.about(n) for n in (101_297_664, 6_738_415_616)] == ["101.3 million", "6.7 billion"]


def test_a_model_without_norms_or_mlp_is_drawn_too() -> None:
    config: ModelConfig = ModelConfig.from_dict(
        {"vocab_size": 9, "context": 4, "d_model": 8, "layers": 1, "attention": {"heads": 2}, "norm": {"kind": "none"}}
    )
    (model,) = unpack(view.architecture([("tiny", config)]))[0]["models"]
    assert model["stacks"][0]["mlp"] is None and model["stacks"][0]["norm"] == ""
    assert model["total"] == count(config) == 9 * 8 + 4 * 8 + 4 * (8 * 8 + 8)
