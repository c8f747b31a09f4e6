"""Every switch of every published model can be read, and thrown to a model that can be built, or to one sentence."""

from dataclasses import replace

import pytest

from engine.analysis.switches import SWITCHES, differing_switches, option_label, sizes, thrown, with_sizes
from engine.model.presets import NAMED, blueprint

MODELS = (
    "bert-base", "albert-base", "gpt2", "t5-small", "llama-3-8b", "gpt-j-6b", "chatglm-6b", "vit-b-16", "gemma-2-2b",
)  # fmt: skip


def test_a_models_own_settings_are_options_and_change_nothing(subtests: pytest.Subtests) -> None:
    for name in NAMED:
        with subtests.test(name=name):
            config = NAMED[name].config
            own = {switch.name: switch.get(config) for switch in SWITCHES}
            for switch in SWITCHES:
                assert own[switch.name] in switch.options(config), switch.name
            assert thrown(config, own) == config
            assert with_sizes(config, **sizes(config)) == config


@pytest.mark.parametrize("name", MODELS)
def test_each_option_gives_a_model_that_stands_so_or_says_why_not(name: str) -> None:
    config = NAMED[name].config
    built = 0
    for switch in SWITCHES:
        for option in switch.options(config):
            try:
                changed = thrown(config, {switch.name: option})
            except ValueError as error:
                assert str(error).endswith("."), (switch.name, option)
                continue
            assert switch.get(changed) == option, (switch.name, option)
            if changed.layers <= 12:
                blueprint(replace(changed, layers=1))
                built += 1
    assert built > 30 or config.layers > 12


def test_bert_and_gpt2_are_told_apart_by_their_switches() -> None:
    bert, gpt2 = NAMED["bert-base"].config, NAMED["gpt2"].config
    assert differing_switches(bert, gpt2) == ["mask", "segments", "place", "activation", "head", "pooler"]
    settings = {switch.name: switch.get(gpt2) for switch in SWITCHES}
    assert differing_switches(thrown(bert, settings), gpt2) == []


def test_a_second_stack_sees_both_sides_and_takes_the_changes_of_the_first() -> None:
    two = thrown(NAMED["gpt2"].config, {"stacks": "two", "mlp": "gated", "kv_heads": "3", "biases": "no"})
    assert two.encoder is not None and two.encoder.mlp == two.mlp
    assert two.encoder.attention == replace(two.attention, mask="full")
    assert two.attention.kv_heads == 3 and two.mlp is not None and two.mlp.gated and not two.mlp.bias


def test_other_sizes_reach_both_stacks() -> None:
    config = with_sizes(NAMED["t5-small"].config, layers=3, d_model=256, heads=4, d_mlp=100)
    assert sizes(config) == {"layers": 3, "d_model": 256, "heads": 4, "d_mlp": 100}
    assert config.encoder is not None and config.encoder.layers == 3
    assert config.encoder.attention.heads == 4 and config.encoder.mlp == config.mlp


def test_what_no_model_can_be_is_the_configs_own_sentence() -> None:
    with pytest.raises(ValueError, match="parallel sublayers must have their norms before them"):
        thrown(NAMED["gpt2"].config, {"sublayers": "parallel", "place": "after"})
    with pytest.raises(ValueError, match="d_model 768 cannot be split into 7 heads; try 6 or 8"):
        with_sizes(NAMED["gpt2"].config, layers=12, d_model=768, heads=7, d_mlp=3072)


def test_options_are_spoken_in_words() -> None:
    assert [option_label(option) for option in ("gelu_tanh", "parallel_one_norm")] == ["gelu tanh", "parallel, 1 norm"]
