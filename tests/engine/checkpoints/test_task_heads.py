"""Language models' sisters against transformers: their bodies alone, and under each head over classes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from engine.checkpoints import load
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES
from engine.generation.prompt import begin
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine.checkpoints.against import IDS, TARGET, equal, equal_patterns, opened, shaken

torch.set_num_threads(1)

PAD, END = 39, 38  # neither is in IDS
NAMED = {"id2label": {0: "bad", 1: "good", 2: "neither"}, "label2id": {"bad": 0, "good": 1, "neither": 2}}
LABELS = ("bad", "good", "neither")
ENDS = {"vocab_size": 40, "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": END}
GPT2 = ENDS | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
MODERN = ENDS | {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 36, "num_attention_heads": 4}
MODERN |= {"max_position_embeddings": 32}
GROUPS = MODERN | {"num_key_value_heads": 2}
NEO = ENDS | {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
OPT = ENDS | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 36}
OPT |= {"max_position_embeddings": 32}
NARROW = OPT | {"word_embed_proj_dim": 16}
FALCON = MODERN | {"attn_implementation": "eager"}
GEMMA = GROUPS | {"head_dim": 8}
ALL = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model")
NO_TOKENS = tuple(head for head in ALL if "Token" not in head)
NO_ANSWERS = tuple(head for head in ALL if "Question" not in head)
EXPERTS = GROUPS | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
DEEPSEEK = MODERN | {"num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 10, "qk_rope_head_dim": 4}
DEEPSEEK |= {"qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 12, "n_routed_experts": 4}
DEEPSEEK |= {"num_experts_per_tok": 2, "first_k_dense_replace": 1}
GLM = {name: size for name, size in DEEPSEEK.items() if "lora" not in name and "qk" not in name} | {"head_dim": 8}
SIZES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "gpt2": ("GPT2", GPT2, ALL),
    "gpt_neo": ("GPTNeo", NEO | {"max_position_embeddings": 32, "window_size": 4}, ALL),
    "gpt_neox": ("GPTNeoX", MODERN, ALL),
    "bloom": ("Bloom", ENDS | {"hidden_size": 32, "n_layer": 2, "n_head": 4}, ALL),
    "codegen": ("CodeGen", GPT2 | {"rotary_dim": 4}, ("Model",)),
    "falcon": ("Falcon", FALCON, ALL),
    "falcon, new": ("Falcon", FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}, ALL),
    "gptj": ("GPTJ", GPT2 | {"rotary_dim": 4}, NO_TOKENS),
    "opt": ("OPT", OPT | {"enable_bias": False}, NO_TOKENS),
    "opt, narrow": ("OPT", NARROW, NO_TOKENS),
    "opt, narrow, norms behind": ("OPT", NARROW | {"do_layer_norm_before": False}, NO_TOKENS),
    "llama": ("Llama", GROUPS, ALL),
    "mistral": ("Mistral", GROUPS | {"sliding_window": 4}, ALL),
    "qwen2": ("Qwen2", GROUPS, ALL),
    "qwen3": ("Qwen3", GROUPS | {"head_dim": 8}, ALL),
    "olmo": ("Olmo", GROUPS, ("ForSequenceClassification", "Model")),
    "cohere": ("Cohere", GROUPS, ("Model",)),
    "cohere2": ("Cohere2", GROUPS, ("Model",)),
    "granite": ("Granite", GROUPS, ("Model",)),
    "granitemoe": ("GraniteMoe", EXPERTS, ("Model",)),
    "granitemoeshared": ("GraniteMoeShared", EXPERTS | {"shared_intermediate_size": 14}, ("Model",)),
    "mpt": ("Mpt", ENDS | {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32}, ALL),
    "glm": ("Glm", GEMMA, NO_ANSWERS),
    "glm4": ("Glm4", GEMMA, NO_ANSWERS),
    "exaone4": ("Exaone4", GROUPS | {"sliding_window": 4}, ALL),
    "nanochat": ("NanoChat", GROUPS, ("Model",)),
    "olmo2": ("Olmo2", GROUPS, ("ForSequenceClassification", "Model")),
    "olmo3": ("Olmo3", GROUPS | {"sliding_window": 4}, ("ForSequenceClassification", "Model")),
    "deepseek_v2": ("DeepseekV2", DEEPSEEK, ("ForSequenceClassification", "Model")),
    "deepseek_v3": ("DeepseekV3", DEEPSEEK | {"n_group": 2, "topk_group": 1}, NO_ANSWERS),
    "glm4_moe": ("Glm4Moe", GLM, ("Model",)),
    "glm4_moe_lite": ("Glm4MoeLite", DEEPSEEK, ("Model",)),
    "gpt_oss": ("GptOss", EXPERTS, NO_ANSWERS),
    "mixtral": ("Mixtral", EXPERTS, ALL),
    "olmoe": ("Olmoe", EXPERTS, ("Model",)),
    "qwen2_moe": ("Qwen2Moe", EXPERTS | {"shared_expert_intermediate_size": 20}, ALL),
    "qwen3_moe": ("Qwen3Moe", EXPERTS, ALL),
    "gemma": ("Gemma", GEMMA, NO_ANSWERS),
    "gemma2": ("Gemma2", GEMMA | {"sliding_window": 4}, NO_ANSWERS),
    "gemma3_text": ("Gemma3Text", GEMMA | {"sliding_window": 4}, ("ForSequenceClassification", "Model")),
    "smollm3": ("SmolLM3", GROUPS | {"no_rope_layers": [1, 0]}, ALL),
    "phi": ("Phi", MODERN, NO_ANSWERS),
    "phi3": ("Phi3", GROUPS, NO_ANSWERS),
    "stablelm": ("StableLm", GROUPS, NO_ANSWERS),
    "starcoder2": ("Starcoder2", GROUPS, NO_ANSWERS),
    "imagegpt": ("ImageGPT", GPT2, ("ForImageClassification", "Model")),
}
DECODERS = [(name, head) for name, (_, _, heads) in SIZES.items() for head in heads]
KINDS = dict(zip(ALL, ("sequence", "token", "span", "none"), strict=True)) | {"ForImageClassification": "sequence"}


def theirs(name: str, head: str) -> Any:
    stem, sizes, _ = SIZES[name]
    config = getattr(transformers, f"{stem}Config")
    torch.manual_seed(0)
    return shaken(getattr(transformers, stem + head)(config(**sizes, **(NAMED if "ssification" in head else {}))))


def result(head: str, expected: Any) -> torch.Tensor:
    if "Question" in head:
        return torch.stack([expected.start_logits, expected.end_logits], dim=-1)
    logits: torch.Tensor = expected.last_hidden_state if head == "Model" else expected.logits
    return logits


def ours(head: str, trace: Trace) -> torch.Tensor:
    if head != "Model":
        return trace["logits"]
    return trace["head.narrow" if "head.narrow" in trace else "final_norm.out"]


@pytest.mark.parametrize(("name", "head"), DECODERS)
def test_a_decoders_head_equals_transformers_and_is_read_back(name: str, head: str, tmp_path: Path) -> None:
    model = theirs(name, head)
    checkpoint = opened(model, tmp_path / "theirs")
    found = checkpoint.config.head
    assert (found.kind, found.classes) == (KINDS[head], 3 if "Class" in head else 0)
    read = "mean" if "Image" in head else "last"
    assert found.kind != "sequence" or (found.read, found.has_bias) == (read, False)
    assert checkpoint.labels == (LABELS if found.classes else ())
    trace = run(checkpoint.model, IDS)
    with torch.no_grad():
        expected = model(IDS, output_attentions=True)
    equal(ours(head, trace), result(head, expected))
    equal_patterns(trace, "attn.pattern", expected.attentions)

    checkpoint.save(tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["architectures"] == [type(model).__name__]
    again, loading = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values()), loading
    with torch.no_grad():
        equal(result(head, again.eval()(IDS)), result(head, expected))
    reread = load(tmp_path / "ours")
    assert (reread.labels, canonical_config(reread.config)) == (checkpoint.labels, canonical_config(checkpoint.config))


@pytest.mark.parametrize("name", ["gpt2", "opt", "opt, narrow", "llama", "gpt_neox"])
def test_of_several_texts_the_last_real_token_of_each_is_read(name: str, tmp_path: Path) -> None:
    model = theirs(name, "ForSequenceClassification")
    texts = [[5, 0, 30, 7, 7, 31], [12, 3, 24], [9]]
    ids = torch.tensor([text + [PAD] * (6 - len(text)) for text in texts])
    with torch.no_grad():
        expected = model(ids, attention_mask=(ids != PAD).long()).logits
    equal(run(opened(model, tmp_path).model, texts, keep="logits")["logits"], expected)


@pytest.mark.parametrize("name", [name for name, (_, sizes, _) in SIZES.items() if "do_layer_norm_before" not in sizes])
def test_every_architecture_is_known_by_its_tensors_alone(name: str, tmp_path: Path) -> None:
    """A body's are those of a tied language model, which needs no more."""
    heads = [head for head in SIZES[name][2] if head != "Model"]
    for head in heads:
        theirs(name, head).save_pretrained(tmp_path / head)
        path = tmp_path / head / "config.json"
        config = json.loads(path.read_text())
        del config["architectures"]
        path.write_text(json.dumps(config))
        assert load(tmp_path / head).config.head.kind == KINDS[head]


def test_each_of_several_pictures_is_judged_by_the_mean_of_its_own_pixels(tmp_path: Path) -> None:
    """transformers takes the mean over padding as well, so each picture is given to it alone."""
    model = theirs("imagegpt", "ForImageClassification")
    checkpoint = opened(model, tmp_path)
    pictures = [[5, 0, 30, 7, 7, 31], [12, 3, 24, 1, 9, 9]]
    with torch.no_grad():
        equal(run(checkpoint.model, pictures)["logits"], model(torch.tensor(pictures)).logits)
        unequal = [pictures[0], pictures[1][:3]]
        alone = torch.cat([model(torch.tensor([one])).logits for one in unequal])
        hidden = torch.cat([model.transformer(torch.tensor([one]))[0].mean(1) for one in unequal])
    trace = run(checkpoint.model, unequal)
    equal(trace["logits"], alone)
    equal(trace["head.mean"], hidden)


def stored_again(folder: Path, change: Callable[[str], str], **more: torch.Tensor) -> None:
    tensors = {change(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors | more, folder / "model.safetensors", {"format": "pt"})


def test_answers_of_a_llama_are_found_under_either_of_its_bodys_names(tmp_path: Path) -> None:
    model = theirs("llama", "ForQuestionAnswering")
    model.save_pretrained(tmp_path)
    assert "transformer.norm.weight" in load_file(tmp_path / "model.safetensors")
    stored_again(tmp_path, lambda name: name.replace("transformer.", "model."))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    with torch.no_grad():
        equal(run(checkpoint.model, IDS)["logits"], result("ForQuestionAnswering", model(IDS)))


def test_a_head_over_words_beside_one_over_classes_is_left_out_on_purpose(tmp_path: Path) -> None:
    model = theirs("llama", "ForSequenceClassification")
    model.save_pretrained(tmp_path)
    stored_again(tmp_path, str, **{"lm_head.weight": torch.ones(40, 32)})
    report = load(tmp_path).report
    assert report.ok
    assert [row.name for row in report.rows_with("dropped")] == ["lm_head.weight"]


def test_of_two_heads_of_gpt2_the_one_over_words_is_kept(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(transformers.GPT2DoubleHeadsModel(transformers.GPT2Config(**GPT2, num_labels=1)))
    checkpoint = opened(model, tmp_path)
    dropped = {row.name.rpartition(".")[0] for row in checkpoint.report.rows_with("dropped")}
    assert dropped == {"multiple_choice_head.summary"}
    with torch.no_grad():
        equal(run(checkpoint.model, IDS)["logits"], model(IDS).logits)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama", {"architectures": ["LlamaBiModel"]}, r"must be one of .*LlamaForCausalLM.*, got \['LlamaBiModel'\]"),
        ("gpt2", {"architectures": ["GPT2LMHeadCustomModel"]}, "architectures must be one of"),
        ("qwen2", {"is_causal": False}, "is_causal must be True, got False: Loupe has no such model"),
        ("mistral", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types must be sliding_attention"),
    ],
)
def test_what_is_nearly_one_of_these_is_refused(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs(name, "ForSequenceClassification").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


def test_a_classifier_writes_no_text(tmp_path: Path) -> None:
    checkpoint = opened(theirs("gpt2", "ForSequenceClassification"), tmp_path)
    with pytest.raises(ValueError, match='has the head "sequence", which writes no text'):
        begin(checkpoint, [1, 2])


T5 = {"vocab_size": 40, "d_model": 24, "d_kv": 8, "d_ff": 36, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4}
T5 |= {"pad_token_id": 0, "eos_token_id": END, "decoder_start_token_id": 0}
BART = {"vocab_size": 40, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 3, "encoder_ffn_dim": 36, "decoder_ffn_dim": 32, "max_position_embeddings": 32}
BART |= {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": END, "bos_token_id": None}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
PAIRS = [
    ("Bart", BART, "ForSequenceClassification"),
    ("Bart", BART | {"scale_embedding": True}, "ForQuestionAnswering"),
    ("T5", T5, "ForSequenceClassification"),
    ("T5", T5 | GATED, "ForSequenceClassification"),
    ("T5", T5, "ForQuestionAnswering"),
]
ENDED = torch.cat([IDS[:, :-1], torch.tensor([[END]])], dim=1)


def pair(stem: str, sizes: dict[str, Any], head: str) -> Any:
    config = getattr(transformers, f"{stem}Config")(**sizes, **(NAMED if "Class" in head else {}))
    torch.manual_seed(0)
    return shaken(getattr(transformers, stem + head)(config))


@pytest.mark.parametrize(("stem", "sizes", "head"), PAIRS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_encoder_decoder_reads_its_text_twice_and_judges_it(
    stem: str, sizes: dict[str, Any], head: str, tmp_path: Path
) -> None:
    model = pair(stem, sizes, head)
    checkpoint = opened(model, tmp_path / "theirs")
    trace = run(checkpoint.model, ENDED)
    with torch.no_grad():
        expected = model(ENDED, output_attentions=True)
    equal(trace["logits"], result(head, expected))
    equal_patterns(trace, "encoder.attn.pattern", expected.encoder_attentions)
    equal_patterns(trace, "decoder.attn.pattern", expected.decoder_attentions)
    equal_patterns(trace, "cross_attn.pattern", expected.cross_attentions)
    assert trace.target is not None
    assert trace.target.tolist() == [[sizes["decoder_start_token_id"], *ENDED[0, :-1].tolist()]]
    equal(checkpoint.model(ENDED), result(head, expected))

    checkpoint.save(tmp_path / "ours")
    again, loading = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    assert not [name for name in loading["missing_keys"] if "embed_tokens" not in name], loading
    again.config.pad_token_id = model.config.pad_token_id  # which is the tokenizer's to know, and there is none
    with torch.no_grad():
        equal(result(head, again.eval()(ENDED)), result(head, expected))
    assert checkpoint.labels == (LABELS if "Class" in head else ())
    assert load(tmp_path / "ours").labels == checkpoint.labels


@pytest.mark.parametrize("stem", ["Bart", "T5"])
def test_each_of_several_texts_is_judged_at_its_own_end(stem: str, tmp_path: Path) -> None:
    model = pair(stem, BART if stem == "Bart" else T5, "ForSequenceClassification")
    checkpoint = opened(model, tmp_path)
    texts = [[5, 1, 30, 7, 7, END], [12, 3, END]]
    pad = model.config.pad_token_id
    ids = torch.tensor([texts[0], [*texts[1], pad, pad, pad]])
    with torch.no_grad():
        expected = model(ids, attention_mask=(ids != pad).long()).logits
    equal(run(checkpoint.model, texts)["logits"], expected)
    padding = ids != pad
    equal(checkpoint.model(ids, padding=padding), expected)


def test_a_bart_of_fairseqs_first_files_with_its_norms_before_is_refused(tmp_path: Path) -> None:
    pair("Bart", BART, "ForSequenceClassification").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalize_before": True}))
    with pytest.raises(ValueError, match="normalize_before must be False, got True: Loupe has no such model"):
        load(tmp_path)


def test_a_target_of_ones_own_takes_the_place_of_the_text(tmp_path: Path) -> None:
    model = pair("Bart", BART, "ForQuestionAnswering")
    with torch.no_grad():
        expected = model(IDS, decoder_input_ids=TARGET)
    equal(run(opened(model, tmp_path).model, IDS, target=TARGET)["logits"], result("ForQuestionAnswering", expected))


@pytest.mark.parametrize("changes", [{}, {"feed_forward_proj": "gated-gelu"}], ids=str)
@pytest.mark.parametrize("head", ["EncoderModel", "ForTokenClassification"])
def test_t5s_encoder_alone_equals_transformers(head: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = pair("T5", T5 | changes, head)
    checkpoint = opened(model, tmp_path / "theirs")
    assert (checkpoint.config.encoder, checkpoint.config.attention.mask) == (None, "full")
    trace = run(checkpoint.model, IDS)
    with torch.no_grad():
        expected = model(IDS, output_attentions=True)
    kind = "Model" if head == "EncoderModel" else head
    equal(ours(kind, trace), result(kind, expected))
    equal_patterns(trace, "attn.pattern", expected.attentions)

    checkpoint.save(tmp_path / "ours")
    again, loading = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    assert not [name for name in loading["missing_keys"] if "embed_tokens" not in name], loading
    with torch.no_grad():
        equal(result(kind, again.eval()(IDS)), result(kind, expected))
    assert canonical_config(load(tmp_path / "ours").config) == canonical_config(checkpoint.config)


def test_a_whole_t5_that_calls_itself_an_encoder_is_read_as_one(tmp_path: Path) -> None:
    model = pair("T5", T5, "ForConditionalGeneration")
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["T5EncoderModel"]}))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert {row.name.partition(".")[0] for row in checkpoint.report.rows_with("dropped")} == {"decoder"}
    with torch.no_grad():
        equal(run(checkpoint.model, IDS)["final_norm.out"], model.encoder(IDS).last_hidden_state)


def test_every_family_with_a_language_model_and_tasks_is_here() -> None:
    several = {name for name, families in FAMILIES.items() if {f.head for f in families} >= {"language", "none"}}
    assert several <= SIZES.keys() | {"t5", "mt5"}


@pytest.mark.parametrize("name", ["gpt2", "opt", "llama", "gemma2", "phi"])
@pytest.mark.parametrize("pad", [12, None, "absent"])
def test_the_last_token_that_is_no_padding_is_read_wherever_padding_stands(name: str, pad: Any, tmp_path: Path) -> None:
    """The end token as the padding (12 here), padding before the text and behind it, a text of padding alone."""
    stem, sizes, _ = SIZES[name]
    torch.manual_seed(0)
    more = {} if pad == "absent" else {"pad_token_id": pad}
    sizes = {key: value for key, value in sizes.items() if key != "pad_token_id"} | more
    model = shaken(
        getattr(transformers, f"{stem}ForSequenceClassification")(getattr(transformers, f"{stem}Config")(**sizes))
    )
    checkpoint = opened(model, tmp_path)
    if pad == "absent":  # then it is what transformers' class says
        path = tmp_path / "config.json"
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "pad_token_id"}))
        checkpoint = load(tmp_path)
    for text in ([5, 7, 12], [12, 12, 5, 7], [5, 12, 7, 12, 12], [12, 12], [5, 1], [7, 0]):
        with torch.no_grad():
            equal(run(checkpoint.model, text)["logits"], model(torch.tensor([text])).logits)


@pytest.mark.parametrize("stem", ["Bart", "T5"])
def test_an_encoder_decoder_is_judged_at_its_last_end_token(stem: str, tmp_path: Path) -> None:
    model = pair(stem, BART if stem == "Bart" else T5, "ForSequenceClassification")
    checkpoint = opened(model, tmp_path)
    for text in ([5, 7, END, 4, 9], [END, 5, END, 3], [END, 4]):
        with torch.no_grad():
            equal(run(checkpoint.model, text)["logits"], model(torch.tensor([text])).logits)


def kinds_of_labels(kind: str | None, count: int, folder: Path, stem: str = "Bert") -> Any:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if stem == "GPT2":
        sizes = GPT2
    config = getattr(transformers, f"{stem}Config")(**sizes | {"vocab_size": 40}, num_labels=count, problem_type=kind)
    torch.manual_seed(0)
    return opened(shaken(getattr(transformers, f"{stem}ForSequenceClassification")(config)), folder)


@pytest.mark.parametrize("stem", ["Bert", "GPT2", "DistilBert"])
@pytest.mark.parametrize("count", [1, 3])
def test_labels_that_do_not_exclude_each_other_have_probabilities_of_their_own(
    stem: str, count: int, tmp_path: Path
) -> None:
    checkpoint = kinds_of_labels("multi_label_classification", count, tmp_path / "one", stem)
    trace = run(checkpoint.model, IDS, keep=["logits", "probs"])
    torch.testing.assert_close(trace["probs"], trace["logits"].sigmoid())
    checkpoint.save(tmp_path / "two")
    assert load(tmp_path / "two").config.link == "logistic"
    assert json.loads((tmp_path / "two" / "config.json").read_text())["problem_type"] == "multi_label_classification"


def test_a_regression_gives_scores_and_no_probabilities(tmp_path: Path) -> None:
    for name, (kind, count) in {"a": ("regression", 3), "b": ("regression", 1), "c": (None, 1)}.items():
        checkpoint = kinds_of_labels(kind, count, tmp_path / name)
        assert checkpoint.config.link == "identity" and "probs" not in checkpoint.model.hook_names
    assert kinds_of_labels("single_label_classification", 2, tmp_path / "d").config.link == "softmax"
    for changes, message in (
        ({"problem_type": "ranking"}, "problem_type must be one of single_label_classification, .* got 'ranking'"),
        ({"problem_type": "single_label_classification", "num_labels": 1}, "needs 2 labels or more"),
    ):
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "d", config=changes)


@pytest.mark.parametrize("said", [
    {"num_labels": 3, "id2label": None}, {"id2label": {"0": "a", "1": "b", "2": "c"}},
    {"num_labels": 3, "id2label": {"0": "a"}}, {"num_labels": 3, "id2label": {"0": "a", "1": "b", "2": "c", "3": "d"}},
    {"_num_labels": 5, "id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"x": 7}},
    {"num_labels": 3, "id2label": {"0": "c", "1": "b", "2": "a"}, "label2id": None},
], ids=str)  # fmt: skip
def test_labels_are_counted_and_named_as_transformers_does(said: dict[str, Any], tmp_path: Path) -> None:
    kinds_of_labels(None, 3, tmp_path)
    path = tmp_path / "config.json"
    plain = {k: v for k, v in json.loads(path.read_text()).items() if k not in ("id2label", "label2id")}
    path.write_text(json.dumps(plain | said))
    checkpoint, model = load(tmp_path), transformers.BertForSequenceClassification.from_pretrained(tmp_path)
    assert checkpoint.config.head.classes == model.config.num_labels
    named = tuple(model.config.id2label[i] for i in range(3))
    assert checkpoint.labels in (named, ()) and (checkpoint.labels or named[0] == "LABEL_0")
    with torch.no_grad():
        equal(run(checkpoint.model, IDS)["logits"], model.eval()(IDS).logits)


def test_a_count_of_labels_that_the_weights_lack_is_one_sentence(tmp_path: Path) -> None:
    kinds_of_labels(None, 3, tmp_path)
    with pytest.raises(ValueError, match=r"classifier.weight in .* must have shape \(4, 16\)"):
        load(tmp_path, config={"num_labels": 4})
    with pytest.raises(ValueError, match="id2label must name one class or more, and is empty"):
        load(tmp_path, config={"id2label": {}})
