"""Numbers that lessons and their notes state, computed by the engine again: a table of where, what and how."""

from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch

from engine.analysis.surprise import surprise
from engine.checkpoints import Checkpoint
from engine.course.batch import compare_row
from engine.course.circuits import direct_effects
from engine.course.embeddings import context_similarity, embedding_table, rank, whole_words
from engine.course.heads import fit_difference
from engine.course.long_sequences import keep_window
from engine.course.lookup import look_up
from engine.course.norms import normalise
from engine.course.scaling import attend, random_scores, score_variance, softmax_gradient
from engine.course.tokens import comes_back, cut
from engine.course.vector_to_word import at_temperature
from engine.inputs.readers import tokens
from engine.runtime import library
from pages.controls.learn import words
from pages.controls.learn.fields import read_matrix
from pages.learn.lessons import batch, embeddings, heads_learn, long_sequences, loss, norms, query_key_value, residual

NOTE, TEXT = "teacher/{}.md", "{}.md"
BERT = "stories-bert"


@cache
def of(name: str) -> Checkpoint:
    return library.checkpoint(name)


def write(values: Sequence[float], spec: str) -> list[str]:
    return [format(value, spec) for value in values]


def near_girl() -> list[str]:
    table, known = embedding_table(of("everyday")), whole_words(of("everyday"))
    found = rank(table[known["girl"]], table, known, ("girl",))
    return [*(f"“{word}”" for word in found.words[:2]), *write(found.cosines[:2], ".2f")]


def bank() -> list[str]:
    return [format(float(context_similarity(of("everyday"), embeddings.TEXTS, "bank")[-1]), ".2f")]


def blocks_share() -> list[str]:
    block = of("stories").model.blocks[0]
    mlp = sum(one.numel() for one in block.mlp.parameters())
    assert abs(mlp / sum(one.numel() for one in block.parameters()) - 2 / 3) < 0.01
    return []


def without_residuals() -> list[str]:
    found = residual.train(5, False, residual.STEPS, 0).gradients[-1]
    return [format(float(found[0]), ".2g"), format(float(found[-1]), ".2g")]


def text_loss() -> list[str]:
    found = surprise(of(loss.DECODER), of(loss.DECODER).tokenizer.encode(loss.TEXT).ids)
    worst = -float(found.log_probabilities.min())
    return [*write([found.total, found.mean, found.perplexity, worst], ".3f")]


def lookup() -> list[str]:
    keys, values = read_matrix(query_key_value.KEYS, 2), read_matrix(query_key_value.VALUES)
    found = look_up(torch.tensor(query_key_value.ASKED), keys, values)
    other = look_up(torch.tensor(query_key_value.ASKED), torch.tensor([[1.0, 1], [3, 3], [-2, -1]]), values)
    return write([*found.weights.tolist(), *found.out.tolist(), float(other.weights[1])], ".3f")


def gradient_at_256() -> list[str]:
    scores = random_scores(256, 8)
    plain, divided = attend(scores, 1.0), attend(scores, 16.0)
    steep = float(softmax_gradient(divided).abs().max())
    return [
        format(float(plain.max()), ".4f"), format(float(softmax_gradient(plain).abs().max()), ".4f"),
        format(float(divided.max()), ".2f"), format(steep, ".2f"),
    ]  # fmt: skip


def gradient_by_products() -> list[str]:
    return [format(float(softmax_gradient(attend(random_scores(256, 8), 16.0)).abs().max()) / 16, ".3f")]


def variances() -> list[str]:
    found = score_variance(64)
    return [format(found.plain, ".2f"), format(found.divided, ".3f")]


def one_of_a_batch() -> list[str]:
    return write(normalise(read_matrix(norms.BATCH), "batch")[0].tolist(), ".3f")


def unmasked_padding() -> list[str]:
    rows = [list(tokens(of(BERT), text).ids) for text in batch.TEXTS]
    found = compare_row(BERT, rows, 1, masked=False)
    return [f"{found.changed(batch.DIGITS):,}", f"{found.alone.numel():,}", f"{100 * found.on_padding:.1f} %"]


def name_mover() -> list[str]:
    encoding = of("stories").tokenizer.encode(heads_learn.STORY)
    logits = library.traces.trace("stories", encoding)["logits"]
    return [f"{float(direct_effects(of('stories'), encoding, int(logits[0, -1].argmax())).max()):+.1f}"]


def windows() -> list[str]:
    encoding = of("stories").tokenizer.encode(long_sequences.TEXT)
    found = [keep_window(of("stories"), encoding, 3, 0, size) for size in (4, 8)]
    return [f"{100 * share:.0f} %" for one in found for share in (one.cells, one.mass)]


def cafe() -> list[str]:
    assert not comes_back("wordpiece", "Café") and comes_back("unigram", "the red ball")
    return ["“cafe”"] if "".join(cut("wordpiece", "Café").pieces).replace("#", "") == "cafe" else ["?"]


def two_logits() -> list[str]:
    logits = torch.tensor([0.0, 1.0])
    return write([*at_temperature(logits, 1).tolist(), *at_temperature(logits, 2).tolist()], ".3f")


STATED: list[tuple[str, str, Callable[[], list[str]]]] = [
    (NOTE, "embeddings", near_girl),
    (NOTE, "embeddings", bank),
    (NOTE, "residual", without_residuals),
    (NOTE, "loss", text_loss),
    (NOTE, "query_key_value", lookup),
    (NOTE, "scaling", gradient_at_256),
    (NOTE, "scaling", variances),
    (NOTE, "norms", one_of_a_batch),
    (NOTE, "batch", unmasked_padding),
    (NOTE, "heads_learn", name_mover),
    (NOTE, "long_sequences", windows),
    (NOTE, "masks_and_heads", lambda: [format(fit_difference(1).losses[-1], ".2f")]),
    (TEXT, "norms", blocks_share),
    (TEXT, "scaling", gradient_by_products),
    (TEXT, "tokens", cafe),
    (TEXT, "vector_to_word", two_logits),
]


@pytest.mark.parametrize(("place", "name", "compute"), STATED)
def test_a_text_states_what_the_engine_computes(place: str, name: str, compute: Callable[[], list[str]]) -> None:
    for lang in words.languages(words.CATALOGUE):
        said = (words.CATALOGUE / lang / place.format(name)).read_text(encoding="utf-8")
        said = said.replace("\u202f", " ").replace("\xa0", " ")
        for number in compute():
            quoted = number.replace("“", "« ").replace("”", " »")
            forms = {number, number.replace(".", ","), number.replace(",", " "), quoted}
            assert any(form in said for form in forms), (lang, number)
