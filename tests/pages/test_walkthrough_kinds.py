"""The walkthrough page with every kind of model: its own fields, and what a person is told."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import Checkpoint, load, run
from engine.budget import budget
from engine.checkpoints import shipped_names
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import pictures
from engine.model.config import MLP, Attention, ModelConfig, OutputHead
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from tests.browser import zoo
from views.core.markdown import escape_markdown
from views.core.payload import Named, unpack

TERMS = (
    "content with content is",
    "content with position (the query with the key of the distance)",
    "position with content (the query of the distance with the key)",
)
APP = str(Path(__file__).parents[2] / "app.py")


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kinds")
    zoo.fill(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "models_folder", str(folder))
        library.checkpoint.cache_clear()
        yield folder
    library.checkpoint.cache_clear()


def opened(model: str, **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    app.query_params["model"] = model
    for name, value in query.items():
        app.query_params[name] = str(value)
    return app.run()


def picture(app: AppTest) -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = [e.proto for e in app.get("bidi_component") if "walkthrough" in e.proto.component_name]
    return unpack(found.bytes)


def told(app: AppTest) -> str:
    assert not app.exception, app.exception
    return " ".join(element.value for element in (*app.warning, *app.info))


@pytest.mark.parametrize("name", zoo.GIVEN)
def test_every_kind_opens_on_a_finished_picture_that_holds_every_hook_of_the_engines_run(
    name: str, models: Path
) -> None:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    for part, value in {"model": name, **zoo.GIVEN[name]}.items():
        app.query_params[part] = value
    header, arrays = picture(app.run())
    assert header["model"]["name"] == name
    assert ("next.probability" in arrays) == (name != "opt-350m-body")
    trace = zoo.traced(models, name)
    for hook in (hook for hook in trace if hook != "logits" or hook in arrays):
        value = trace[hook][0] if trace.dims(hook)[0] == "batch" else trace[hook]
        np.testing.assert_array_equal(np.ravel(arrays[hook].data), value.float().flatten().numpy(), err_msg=hook)


def test_a_disentangled_score_is_told_by_its_terms(models: Path) -> None:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/analyse/why_head.py")
    for part, value in {
        "model": "deberta",
        **zoo.GIVEN["deberta"],
        "layer": "1",
        "head": "2",
        "pos": "4",
        "key": "1",
    }.items():
        app.query_params[part] = value
    said = " ".join(element.value for element in app.run().markdown)
    trace = zoo.traced(models, "deberta")
    parts = [float(trace[f"blocks.1.attn.{part}"][0, 2, 4, 1]) for part in ("scores", "c2p", "p2c")]
    assert f"is **{sum(parts):.2f}**" in said
    assert all(f"{name} {value:+.2f}" in said for name, value in zip(TERMS, parts, strict=True))


def test_an_answer_is_the_best_stretch_of_the_context() -> None:
    app = opened("roberta-qa", text="Who was sad?", second="The dog was sad.")
    assert [app.text_input(key=key).label for key in ("text", "second")] == ["question", "context"]
    header, arrays = picture(app)
    read = library.checkpoint("roberta-qa").tokenizer.encode("Who was sad?", "The dog was sad.")
    logits = run(library.checkpoint("roberta-qa").model, read)["logits"][0]
    first = len(read) - read.pieces[::-1].index("</s>", 1)  # behind the two marks between the texts
    inside = range(first, len(read) - 1)
    pairs = {(i, j): float(logits[i, 0] + logits[j, 1]) for i in inside for j in inside if i <= j}
    start, end = max(pairs, key=pairs.__getitem__)
    answer = header["answer"]
    assert (answer["start"], answer["end"]) == (start, end)
    assert answer["text"] == read.text[read.spans[start][0] : read.spans[end][1]]
    assert answer["shares"] == pytest.approx([float(logits.softmax(0)[start, 0]), float(logits.softmax(0)[end, 1])])
    assert header["row0"] == start and header["reads"] == "answer" and header["count"] == len(read)
    best = logits.argmax(0).tolist()
    assert arrays["next.id"].data[:, 0].tolist() == best
    assert [header["names"][str(i)] for i in best] == [read.pieces[i] for i in best]
    np.testing.assert_array_equal(arrays["logits"].data, logits.numpy())


def test_a_question_without_a_context_is_answered_from_itself() -> None:
    header, _ = picture(opened("roberta-qa", text="The dog was sad.", second=""))
    assert header["answer"]["text"] in "The dog was sad."


@pytest.mark.parametrize("kind", ["multi_label_classification", "regression"])
def test_labels_that_do_not_exclude_each_other_are_shown_each_by_itself(kind: str, models: Path) -> None:
    folder = models / f"gpt-neo-{kind}"
    copytree(models / "gpt-neo-class", folder, dirs_exist_ok=True)
    theirs = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(theirs | {"problem_type": kind}))
    header, arrays = picture(opened(folder.name, text="The dog was sad"))
    assert header["reads"] == "class" and header["link"] == ("identity" if kind == "regression" else "logistic")
    if kind != "regression":
        logits = torch.tensor(arrays["next.logit"].data)
        np.testing.assert_allclose(arrays["next.probability"].data, logits.sigmoid().numpy(), rtol=1e-6)


def test_a_decoder_that_reads_the_text_again_is_given_it_one_token_behind() -> None:
    app = opened("bart-class", text="The delighted dog")
    header, arrays = picture(app)
    read = library.checkpoint("bart-class").tokenizer.encode("The delighted dog")
    assert header["lanes"]["encoder"]["pieces"] == list(read.pieces)
    assert header["lanes"]["decoder"]["pieces"] == ["<start>", *read.pieces[:-1]]
    logits = run(library.checkpoint("bart-class").model, read)["logits"]
    np.testing.assert_array_equal(arrays["next.logit"].data[0], logits[0].sort(descending=True).values.numpy())
    assert not [box for box in app.text_input if box.key == "target"]


def small(vocab_size: int, **parts: object) -> Transformer:
    config = ModelConfig(vocab_size, 32, 16, 1, Attention(2), MLP(16), **parts)  # type: ignore[arg-type]
    return initialise(Transformer(config), 0)


def test_a_tokenizer_that_has_more_tokens_than_the_model_says_which_it_lacks(models: Path) -> None:
    tokenizer = library.checkpoint("alibi").tokenizer
    Checkpoint(small(300), tokenizer=tokenizer).save(models / "fewer")
    library.checkpoint.cache_clear()
    assert picture(opened("fewer"))[0]["lanes"][""]["pieces"]  # opens on words of its own
    wrong = next(id for id in range(300, tokenizer.vocab_size) if tokenizer.piece(id).isalpha())
    assert "the tokens 0 to 299" in told(opened("fewer", text=tokenizer.piece(wrong)))


@pytest.mark.parametrize(
    "head",
    [OutputHead(), OutputHead("span"), OutputHead("token", 1, dense=True), OutputHead("sequence", 2, read="last")],
)
def test_a_model_without_a_tokenizer_reads_ids(models: Path, head: OutputHead) -> None:
    name = f"mute-{head.kind}"  # traces are kept by name
    Checkpoint(small(9, head=head)).save(models / name)
    library.checkpoint.cache_clear()
    header, _ = picture(opened(name))
    assert header["lanes"][""]["ids"] == [0, 1, 2, 3]
    assert picture(opened(name, text="8 1"))[0]["lanes"][""]["pieces"] == ["#8", "#1"]
    assert "the tokens 0 to 8" in told(opened(name, text="1 9"))
    assert "token ids such as" in told(opened(name, text="some words"))


def test_two_texts_reach_a_model_that_reads_pairs() -> None:
    header, arrays = picture(opened("bert", text="The dog ran", second="He was sad"))
    lane = header["lanes"][""]
    assert lane["pieces"].count("[SEP]") == 2 and set(lane["segments"]) == {0, 1}
    assert arrays["next_sentence"].data.shape == (1, 2)
    assert header["reads"] == "here" and header["sampled"] is None
    yes, no = np.exp(arrays["next_sentence"].data[0].astype(float))
    assert header["follows"] == pytest.approx(yes / (yes + no), abs=1e-6)
    assert picture(opened("bert", text="The dog ran"))[0]["follows"] is None


def test_an_empty_target_is_what_the_model_writes_and_a_given_one_is_read_as_it_is() -> None:
    checkpoint = library.checkpoint("original")
    header, _ = picture(opened("original", text="The delighted dog"))
    ids = header["lanes"]["decoder"]["ids"]
    logits = run(checkpoint.model, checkpoint.tokenizer.encode("The delighted dog"), target=ids)["logits"][0]
    assert ids[1:] == logits[:-1].argmax(-1).tolist()  # greedy, every token the likeliest behind those before it
    header, arrays = picture(opened("original", text="The delighted dog", target="Le chien"))
    assert header["lanes"]["decoder"]["pieces"] == ["<start>", "Le", "chien"]
    assert arrays["decoder.blocks.0.cross_attn.pattern"].data.shape == (4, 3, 3)
    assert header["sampled"] is not None


def test_a_gap_is_filled_and_a_text_without_one_is_told_so() -> None:
    header, _ = picture(opened("glm", text="The dog [gMASK] sad", span=" was very"))
    assert header["lanes"][""]["pieces"].count("[sop]") == 1
    assert r"\[gMASK\]" in told(opened("glm", text="The dog was sad"))
    assert "shorten it" in told(opened("glm", text="The dog ran. " * 60 + "[gMASK]"))


def test_an_empty_text_keeps_the_picture_and_says_so_until_the_example_is_put_back() -> None:
    app = opened("original", text="The delighted dog")
    before = picture(app)[0]["lanes"]
    app.text_input(key="text").set_value("").run()
    assert [one.value for one in app.info] == ["No text. Still showing the previous one. Type a few words above."]
    assert picture(app)[0]["lanes"] == before
    app.button(key="example text").click().run()
    assert not app.info and app.text_input(key="text").value and picture(app)[0]["lanes"] != before
    app = opened("stories", text="")
    assert app.info and picture(app)[0]["lanes"][""]["pieces"][:3] == ["M", "ax", "·gave"]  # that of the example


def test_the_menu_says_what_each_shipped_model_reads_and_does() -> None:
    (menu,) = [one for one in opened("stories").selectbox if one.key == "model"]
    for name in shipped_names():
        assert f"**{name}**: {escape_markdown(library.checkpoint(name).card['about'])}" in menu.help


@pytest.mark.parametrize("given", [0, 1, 32, 63, 64])
def test_a_picture_is_completed_from_the_pixels_given(given: int) -> None:
    header, arrays = picture(opened("imagegpt", picture=5, given=given))
    drawn = torch.tensor(arrays["picture"].data).flatten()
    original = pictures()[0][5].flatten()
    torch.testing.assert_close(drawn[:given], original[:given], atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.tensor(arrays["original"].data).flatten(), original, atol=1e-5, rtol=0)
    assert drawn.min() >= 0 and header["lanes"][""]["grid"]["given"] == given
    assert len(header["lanes"][""]["pieces"]) == 65


def test_a_picture_larger_than_the_page_draws_is_read_as_far_as_that(models: Path) -> None:
    config = ModelConfig(6, 400, 16, 1, Attention(2), MLP(16), tied=False, head=OutputHead(outputs=5))
    processor = PalettePixels.grey((20, 20), 5)
    Checkpoint(initialise(Transformer(config), 0), processor=processor).save(models / "large")
    library.checkpoint.cache_clear()
    app = opened("large", given=100)
    header, arrays = picture(app)
    assert len(header["lanes"][""]["pieces"]) == budget.max_tokens
    assert (arrays["picture"].data.reshape(-1) < 0).sum() == 400 - budget.max_tokens
    assert app.slider(key="given").max == budget.max_tokens - 1


def test_a_picture_is_judged_whole_or_not_at_all(models: Path) -> None:
    header, arrays = picture(opened("imagegpt-class", picture=5))
    assert header["reads"] == "class" and header["count"] == 10
    assert len(header["lanes"][""]["pieces"]) == 64 and arrays["head.mean"].data.shape == (1, 32)
    config = ModelConfig(6, 400, 16, 1, Attention(2), MLP(16), head=OutputHead("sequence", 3, read="mean"))
    processor = PalettePixels.grey((20, 20), 5)
    Checkpoint(initialise(Transformer(config), 0), processor=processor).save(models / "large-class")
    library.checkpoint.cache_clear()
    assert f"all 400 pixels, and at most {budget.max_tokens} are drawn here" in told(opened("large-class"))


def test_a_picture_number_that_is_not_there_opens_the_page_all_the_same() -> None:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    app.query_params["model"] = "vit"
    app.query_params["picture"] = "99999"
    header, _ = picture(app.run())
    assert header["reads"] == "class"


def test_long_texts_are_cut_for_both_stacks() -> None:
    header, _ = picture(opened("t5", text="The dog runs. " * 40, target="Le chien " * 60))
    assert len(header["lanes"]["encoder"]["pieces"]) == len(header["lanes"]["decoder"]["pieces"]) == 48
    assert "cut" in header["notice"]


@pytest.mark.parametrize("model", ["bert", "t5", "vit"])
def test_weights_kept_in_half_precision_are_drawn_as_they_are(model: str, models: Path) -> None:
    checkpoint = load(models / model)
    checkpoint.model.to(torch.bfloat16)
    checkpoint.save(models / f"half-{model}")
    header, arrays = picture(opened(library.rename_with(f"half-{model}", dtype=None)))
    assert header["dtype"] == "bfloat16"
    for name in (name for name in arrays if name.endswith(("resid_post", "attn.pattern"))):
        drawn = torch.tensor(arrays[name].data)
        assert torch.equal(drawn.bfloat16().float(), drawn), name
