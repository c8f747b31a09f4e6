"""Numbers that lessons and their notes state, computed by the engine again: a table of where, what and how."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.analysis.interventions.marks import FOUND
from engine.analysis.sizes.envelope import envelope
from engine.analysis.sizes.parameters import count
from engine.analysis.surprise import surprise
from engine.checkpoints import Checkpoint
from engine.course.adapting import count_lora, open_lora, recorded_reward
from engine.course.adjectives import find_adjective_head
from engine.course.averaging import average_by_loop, scores_of, softmax_weights
from engine.course.batch import compare_row
from engine.course.bits import INTEGERS, bits_of_weight, measure_formats, split_float, store_integers
from engine.course.block import LINES, four_lines, sum_gaps
from engine.course.cause import HeadEffects, measure_heads
from engine.course.circuits import direct_effects, head_scores
from engine.course.embeddings import analogy, context_similarity, embedding_table, rank, whole_words
from engine.course.encoder_decoder import attend_across, guess_each, guess_from_before
from engine.course.experts import mix_experts
from engine.course.family import count_by_group
from engine.course.fill_gap import ask_sentinels, ask_span, words_of
from engine.course.find_circuit import answer_key, measure_parts, swap
from engine.course.heads import fit_difference, link_tokens
from engine.course.how_much import PUBLISHED, TOKENS_A_WEIGHT, PowerLaw
from engine.course.languages import LANGUAGES, count_tokens, measured
from engine.course.long_sequences import keep_window
from engine.course.lookup import look_up
from engine.course.loss import gradients
from engine.course.norms import normalise
from engine.course.one_step import find_slopes, step_one_weight
from engine.course.picture import next_pixel
from engine.course.policy import best_policy, likely_words, preference
from engine.course.positions import alibi, rotated_score, shuffle_change
from engine.course.price import config_of, count_parts, count_text, find_crossing, kv_bytes
from engine.course.residual import branch_gradients
from engine.course.scaling import SAMPLES, attend, random_scores, score_variance
from engine.course.tokens import KINDS, comes_back, cut
from engine.course.vector_to_word import at_temperature, compare_continuations, search_beams, softmax_terms
from engine.course.vocabulary import learn_merges
from engine.data.corpora import read_corpus
from engine.data.digits import LEVELS
from engine.inputs.readers import pictures, read_translation, tokens
from engine.model.presets import NAMED
from engine.runtime import library
from engine.training.examples.masked import CHOSEN, MASKED, REPLACED
from engine.training.measures.antecedents import measure_antecedents
from engine.training.policy.rules.happy_words import happy_words
from pages.controls import words
from pages.controls.learn import course
from pages.controls.learn.fields import read_matrix
from pages.learn.lessons.adapting import lesson as adapting
from pages.learn.lessons.averaging import lesson as averaging
from pages.learn.lessons.batch import lesson as batch
from pages.learn.lessons.bits import lesson as bits
from pages.learn.lessons.block import lesson as block
from pages.learn.lessons.cause import lesson as cause
from pages.learn.lessons.embeddings import lesson as embeddings
from pages.learn.lessons.encoder_decoder import lesson as encoder_decoder
from pages.learn.lessons.fill_gap import lesson as fill_gap
from pages.learn.lessons.find_circuit import lesson as find_circuit
from pages.learn.lessons.heads_learn import lesson as heads_learn
from pages.learn.lessons.in_prompt import lesson as in_prompt
from pages.learn.lessons.long_sequences import lesson as long_sequences
from pages.learn.lessons.loss import lesson as loss
from pages.learn.lessons.masks_and_heads import lesson as masks_and_heads
from pages.learn.lessons.norms import lesson as norms
from pages.learn.lessons.one_step import lesson as one_step
from pages.learn.lessons.picture import lesson as picture
from pages.learn.lessons.policy import lesson as policy
from pages.learn.lessons.positions import lesson as positions
from pages.learn.lessons.price import lesson as price
from pages.learn.lessons.query_key_value import lesson as query_key_value
from pages.learn.lessons.residual import lesson as residual
from pages.learn.lessons.scaling import lesson as scaling
from pages.learn.lessons.tokens import lesson as tokens_lesson
from pages.learn.lessons.vector_to_word import lesson as vector_to_word
from pages.learn.lessons.vocabulary import lesson as vocabulary
from tests.pages.stated import bare

NOTE, TEXT, GLOSSARY = "teacher.{lang}.md", "{lang}.md", "glossary.md"
BERT = "tales-bert"
NOTES = [lesson.name for lesson in course.lessons() if lesson.note]
# A decimal, a percentage, or a number of two digits and more, but a year, a section or a part of a word; stated.py
# reads those of one digit, and test_course_counts.py what is counted and named.
STATED_NUMBER = re.compile(r"(?<![\w.,/-])(?:\d[\d,]*\.\d+|\d[\d,]*\d|\d(?= ?%))(?: ?%)?(?![\w/])")
ASIDE = re.compile(r"\$\$?[^$]+\$\$?|`[^`]*`|\b(?:19|20)\d\d\b|(?:sections?|figure|table) [\d.]+")
PAPERS = {  # numbers that nothing here computes, each with whence it is
    ("loss", "10 %"): "Devlin et al. 2019, section 3.1",
    ("loss", "2"): "what a loss in bits is the power of, by definition",
    ("tokens", "150,000"): "The Unicode Standard, version 16.0: 154,998 characters",
    ("family", "110"): "Devlin et al. 2019, section 3",
    ("glossary", "16"): "Dosovitskiy et al. 2021, the patches of ViT-B/16",
    **dict.fromkeys(
        [("adapting", one) for one in ("300", "0.189", "0.190", "0.191")], "a long test of test_course_true.py"
    ),
}


@cache
def of(name: str) -> Checkpoint:
    return library.checkpoint(name)


def write(values: Sequence[float], spec: str) -> list[str]:
    return [format(value, spec) for value in values]


def near_girl() -> list[str]:
    table, known = embedding_table(of("everyday")), whole_words(of("everyday"))
    found = rank(table[known["girl"]], table, known, ("girl",))
    return [*(f"“{word}”" for word in found.words[:2]), *write(found.cosines[:2], ".2f")]


def table_of_everyday() -> list[str]:
    rows, width = embedding_table(of(embeddings.MODEL)).shape
    return [f"{rows:,}", f"{width}", f"{rows * width:,}"]


def analogies() -> list[str]:
    table, known = embedding_table(of(embeddings.MODEL)), whole_words(of(embeddings.MODEL))
    tried = embeddings.EXAMPLES[0], embeddings.EXAMPLES[3]
    return [f"“{analogy(table, known, *one).words[0]}”" for one in tried]


def bank() -> list[str]:
    return [format(float(context_similarity(of("everyday"), embeddings.TEXTS, "bank")[-1]), ".2f")]


def longer_vectors() -> list[str]:
    encoding = tokens(of(norms.MODEL), course.read_lesson("norms").inside["text"])
    trace, sums = library.traces.trace(norms.MODEL, encoding), []
    for layer in range(of(norms.MODEL).config.layers):
        before, mid, after = (trace[f"blocks.{layer}.resid_{at}"][0].norm(dim=-1) for at in ("pre", "mid", "post"))
        sums += [mid > before, after > mid]
    return [f"{int(torch.stack(sums).sum())}", f"{torch.stack(sums).numel()}"]


def blocks_share() -> list[str]:
    block = of(norms.MODEL).model.blocks[0]
    mlp = sum(one.numel() for one in block.mlp.parameters())
    assert abs(mlp / sum(one.numel() for one in block.parameters()) - 2 / 3) < 0.01
    return []


def without_residuals() -> list[str]:
    found = residual.train(residual.BLOCKS, False, residual.STEPS, 0).gradients[-1]
    assert int(found.argmin()) == 0 and int(found.argmax()) == residual.BLOCKS - 1
    return [format(float(found[0]), ".2g"), format(float(found[-1]), ".2g")]


def sixteen_blocks() -> list[str]:
    without, with_ = (residual.read_recording()[name]["losses"][-1] for name in ("without", "with"))
    return [f"{without:.2f}", f"{with_:.4f}", f"{residual.read_recording()['steps'] - 1}"]


def sixteen_additions() -> list[str]:
    _skip, branch = branch_gradients(1.0, 0.1)
    return [f"{branch:g}", f"{1 + branch:g}", f"{(1 + branch) ** 16:.2f}"]


def text_loss() -> list[str]:
    read = of(loss.DECODER).tokenizer.encode(loss.TEXT)
    found = surprise(of(loss.DECODER), read.ids)
    worst = -float(found.log_probabilities.min())
    return [
        *write([found.total, found.mean, found.perplexity, worst], ".3f"),
        f"“{read.pieces[int(found.log_probabilities.argmin()) + 1].strip('·')}”",
        f"{len(read.ids) - 1} ",
        f"{worst:.2f}",
        f"{math.exp(-worst):.5f}",
        f"{100 * worst / found.total:.0f} %",
    ]


def gradient_at_logits() -> list[str]:
    return write(gradients(torch.tensor([0.7, 0.2, 0.1]).log(), 1).by_hand.tolist(), ".1f")


def lookup() -> list[str]:
    keys, values = read_matrix(query_key_value.KEYS, 2), read_matrix(query_key_value.VALUES)
    query = torch.tensor(query_key_value.ASKED)
    found = look_up(query, keys, values)
    other = look_up(query, torch.tensor([[1.0, 1], [3, 3], [-2, -1]]), values)
    stated = [*found.weights.tolist(), *found.out.tolist(), float(other.weights[1])]
    return [*write(stated, ".3f"), *write(query_key_value.ASKED, "g"), *write((keys @ query).tolist(), "g")]


def mix_by_hand() -> list[str]:
    return write((torch.tensor([0.25, 0.75, 0]) @ torch.tensor([[1.0, 0], [0, 1], [1, 1]])).tolist(), "g")


def gradient_at_256() -> list[str]:
    scores, (plain, divided) = random_scores(256, scaling.KEYS), scaling.gradients_by_products(256, 0)
    most = format(float(attend(scores, 1.0).max()), ".4f"), format(float(attend(scores, 16.0).max()), ".2f")
    return ["256", *most, format(plain, ".4f"), format(divided, ".3f")]


def gradients_by_products() -> list[str]:
    plain, divided = scaling.gradients_by_products(256, 0)
    settings = ["256", "64", "100"]
    smaller = [
        sum(before < after for before, after in (scaling.gradients_by_products(d, seed) for seed in range(100)))
        for d in (64, 256)
    ]
    assert 29 < divided / plain < 40  # "thirty times"
    stated = [format(divided * 16, ".2f"), format(divided, ".3f"), format(plain, ".4f")]
    return [*stated, *settings, *(f" {count} " for count in smaller)]


def variances() -> list[str]:
    found = score_variance(64)
    off = {f"{100 * share:.1f} %" for share in (1 - found.plain / 64, 1 - found.divided)}
    return [format(found.plain, ".2f"), format(found.divided, ".3f"), *off, f"{SAMPLES:,}", f" {math.sqrt(64):g} "]


def two_trainings() -> list[str]:
    scaled, unscaled = (scaling.read_recording(name)["loss"].iloc[-1] for name in scaling.RUNS)
    return [f"{scaled:.3f}", f"{unscaled:.2f}", f"{scaling.read_recording('scaled')['step'].iloc[-1]}"]


def one_token_by_hand() -> list[str]:
    x = torch.tensor([[1.0, 2, 3, 6]])
    first, second, _mean, last = normalise(x, "layer")[0].tolist()
    return [f"{float(x.var(correction=0)):g}", *write([first, second, last], ".3f")]


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


def it() -> list[str]:
    found, heads = measure_antecedents(of("everyday")), of("everyday").config
    assert found["right"] < 0.75 * found["asked"]  # no head knows
    guessed = found["asked"] // 2  # of two things
    return [f"{heads.layers * heads.attention.heads} ", f"{found['right']} ", f"{found['asked']} ", f" {guessed}"]


def adjectives() -> list[str]:
    found = find_adjective_head(of(heads_learn.EVERYDAY))
    assert (found.layer + 1, found.head + 1) == (4, 4)
    return [f"{found.asked} ", *(f"{100 * found.shares[kind]:.0f} %" for kind in ("near", "noun", "far"))]


def particle() -> list[str]:
    ids = of(masks_and_heads.MODEL).tokenizer.encode(masks_and_heads.PARTICLE).ids
    found = link_tokens(masks_and_heads.MODEL, ids, len(ids) - 1, 1)
    return [f"{100 * float(one):.1f} %" for one in (found.weights.max(), found.between.mean())]


def both_sides() -> list[str]:
    """Of the sentences that no corpus has."""
    texts = read_corpus("everyday/visitors")["sentences"][:60]
    both, before, following = list[bool](), list[bool](), list[bool]()
    for text in texts:
        read = tokens(of(encoder_decoder.ENCODER), text)
        both += (guess_each(of(encoder_decoder.ENCODER), read).ranks == 1).tolist()
        before += guess_from_before(of(encoder_decoder.ENCODER), read)
        decoder = of(encoder_decoder.DECODER)
        following += (guess_each(decoder, tokens(decoder, text)).ranks == 1).tolist()
    assert len(both) == len(before)
    card = of(encoder_decoder.ENCODER).card["measured"]["masked_accuracy"]
    shares = [f"{100 * sum(one) / len(one):.0f} %" for one in (both, before, following)]
    return [f"{len(texts)} ", *shares, f"{100 * card:.1f} %"]


def copied() -> list[str]:
    encoding = of(heads_learn.REPEATS).tokenizer.encode(heads_learn.SEQUENCE)
    layer, head = divmod(int(head_scores(of(heads_learn.REPEATS), encoding).induction.argmax()), 4)
    pattern = library.traces.trace(heads_learn.REPEATS, encoding)[f"blocks.{layer}.attn.pattern"][0, head]
    assert float(pattern[-1].max()) > 0.99
    return [f"“{encoding.pieces[int(pattern[-1].argmax())]}”", "99 %"]


def falls() -> list[str]:
    rows = {row["step"]: row for row in heads_learn.read_recording()["rows"]}
    rise = [max(map(max, rows[119][name])) - max(map(max, rows[0][name])) for name in ("previous", "induction")]
    assert max(rise) < 0.1  # "while neither head is there"
    return write([rows[step]["loss"] for step in (0, 119, 400)], ".2f")


def formed() -> list[str]:
    rows = {row["step"]: row for row in heads_learn.read_recording()["rows"]}
    shares = [max(map(max, rows[step]["induction"])) for step in (0, 119, 400)]
    return ["119", "400", *write([*shares, rows[119]["loss"], rows[400]["loss"]], ".2f")]


def windows() -> list[str]:
    model = of(long_sequences.READER)
    encoding, last = model.tokenizer.encode(long_sequences.TEXT), model.config.layers - 1
    found = [keep_window(model, encoding, last, 0, size) for size in (4, 8)]
    return ["4", "8", *(f"{100 * share:.0f} %" for one in found for share in (one.cells, one.mass))]


def cafe() -> list[str]:
    assert not comes_back("wordpiece", "Café") and comes_back("unigram", "the red ball")
    return ["“cafe”"] if "".join(cut("wordpiece", "Café").pieces).replace("#", "") == "cafe" else ["?"]


def two_logits() -> list[str]:
    logits = torch.tensor([0.0, 1.0])
    return write([*at_temperature(logits, 1).tolist(), *at_temperature(logits, 2).tolist()], ".3f")


def two_words() -> list[str]:
    found = compare_continuations(vector_to_word.EVERYDAY, vector_to_word.CONTEXTS, vector_to_word.WORDS)
    first, second = (found[:, 0] - found[:, 1]).tolist()
    return write([first, -second], ".1f")


def wider_beams() -> list[str]:
    text, length = "The old man bought", vector_to_word.SEARCHED
    found = [search_beams("everyday", text, width, length)[-1].best[0] for width in (1, vector_to_word.WIDEST)]
    assert found[0].log_probability > found[1].log_probability
    return [f"“{text}”", f" {length} ", *(f"{-one.log_probability:.2f}" for one in found)]


def underflow() -> list[str]:
    return ["100", "0.0001", f"{-100 * math.log(0.0001):.0f}", f"{vector_to_word.ADDED:g}"]


def three_logits() -> list[str]:
    logits = read_matrix(f"[{vector_to_word.LOGITS}]")[0]
    warm, cold = (f"{float(at_temperature(logits, t).max()):.3f}" for t in (2, 0.5))
    terms, _total = softmax_terms(logits)
    powers = [term / min(terms) for term in terms]
    given = write([*logits.tolist(), *(logits - logits.min()).tolist()], "g")
    return [*write([*at_temperature(logits, 1).tolist(), *powers[1:], sum(powers)], ".3f"), warm, cold, "0.5", *given]


def pirate() -> list[str]:
    base = of(adapting.MODEL)
    adapter = next(one for one in library.adapters_for(adapting.MODEL) if one.name == "style-pirate")
    (out, into), rank = (found := open_lora(base, adapter, "blocks.0.mlp.pre")).w.shape, found.used
    counted, few = count_lora(base, adapter), rank * (out + into)
    whole = [counted.model, counted.adapter, few, out * into, rank]
    return [f"{out} × {into}", f"({out} + {into})", *write(whole, ","), f"{100 * few / (out * into):.1f} %"]


def happy() -> list[str]:
    earned = [f"{happy_words('', text):g}" for text in (adapting.ENDING, "happy happy happy")]
    ends = [recorded_reward("ppo-free")[at] for at in (0, -1)]
    return [*earned, *write([one.reward for one in ends], ".1f"), *(f"{100 * one.distinct:.0f} %" for one in ends)]


def tuned_losses() -> list[str]:
    ids = tuple(tokens(of(adapting.CLASSIFIED), adapting.STORY).ids)
    alone, kept = (adapting.run_fine_tuning(ids, 0, weight) for weight in (0.0, 0.5))
    return write([alone[0][0].language, alone[-1][0].language, kept[-1][0].language], ".2f")


def means() -> list[str]:
    x = read_matrix(averaging.TENSOR)
    weights = softmax_weights(scores_of(x))
    return [
        *write(weights[-1].tolist(), ".2f"),
        *write(softmax_weights(0 * scores_of(x))[1].tolist(), "g"),
        *write(average_by_loop(x).flatten().tolist(), ".4g"),
    ]


def red() -> list[str]:
    model = of(encoder_decoder.BOTH)
    reading = read_translation(model, encoder_decoder.TEXT, "", encoder_decoder.LONGEST)
    source, target = reading.read, reading.target
    look = encoder_decoder.aligning_head(model)
    found = attend_across(encoder_decoder.BOTH, source.ids, target.ids, *look)
    at = target.pieces[1:].index("·rouge")
    looked = source.pieces[int(found.pattern[at].argmax())].strip("·")
    assert (at + 1, source.pieces.index("·red") + 1) == (6, 5)  # sixth in French and fifth in English
    return [f"“{looked}”", f"{100 * float(found.pattern[at].max()):.0f} %", *map(str, map(len, (found.q, found.k)))]


def bert() -> list[str]:
    config = NAMED["bert-base"].config
    whole, seen = count(config), envelope(config)[0].count
    table = config.vocab_size * config.d_model
    numbers = [whole, seen, whole - seen, count_by_group(config)["W_O"].value, config.vocab_size, table]
    small = [f"{seen / 1e6:.0f} ", f"{config.layers} "]
    return [*write(numbers, ","), *small, f"{100 * (whole - seen) / whole:.1f} %", f"{100 * table / whole:.1f} %"]


def ordered() -> list[str]:
    model = of(positions.MODEL)
    ids, size = model.tokenizer.encode(positions.TEXT).ids, model.config.vocab_size
    assert shuffle_change("none", "full", ids, size) < positions.NOTICED
    q, k, places = torch.tensor([1.0, 0.5]), torch.tensor([0.5, 1.0]), ((5, 2), (25, 22))
    turned = {f"{float(rotated_score(q, k, *pair)):.4f}" for pair in places}
    slopes = write(alibi(8, 4)[:, 1, 0].tolist(), ".4f")
    noticed = f"{shuffle_change('none', 'causal', ids, size):.3f}"
    return [noticed, *turned, *map(str, chain(*places)), f"{5 - 2}", *(slope.rstrip("0") for slope in slopes)]


def phones() -> list[str]:
    assert [comes_back(kind, "猫坐在垫子上。") for kind in KINDS].count(False) == 4
    count, size = len(cut("bpe", tokens_lesson.TEXT)), len(tokens_lesson.TEXT.encode())
    return [f"{size} - {size - count} = {count}"]


def cost_by_language() -> list[str]:
    counted = {main: [count_tokens("bpe", main, measured(one)[0]).tokens for one in LANGUAGES] for main in ("en", "fi")}
    english, finnish = (LANGUAGES.index(one) for one in ("en", "fi"))
    assert min(counted["fi"]) == counted["fi"][finnish] < counted["fi"][english] / 2
    return [f" {row[at]}" for row in counted.values() for at in (english, finnish)]


def best_of_two_cuts() -> list[str]:
    return [f"{math.exp(-5 - -6):.2f}", "−4 − 1 = −5", "−2 − 3 − 1 = −6", "5", "6"]


def merges() -> list[str]:
    learned = learn_merges(vocabulary.TEXT, "bpe").steps
    best = [step.pairs[0] for step in learned]
    assert [pair.entry for pair in best[:4]] == ["th", "thi", "thin", "the"]
    first = learn_merges(vocabulary.TEXT, "wordpiece").steps[0].pairs[0]
    low = learn_merges("low low low lower", "bpe").steps
    assert [pair.count for pair in low[0].pairs[:2]] == [4, 4] and first.count == 1
    done = [f"{pair.first} + {pair.second}" for pair in best[:4]]
    counts = [best[0].count, *(pair.count for pair in best[2:4]), low[0].symbols, low[1].symbols]
    return [*done, f"{first.first} + {first.second}", *map(str, counts)]


def one_weight() -> list[str]:
    ids = of(one_step.MODEL).tokenizer.encode(one_step.TEXT).ids
    slope, rate = find_slopes(one_step.MODEL, ids, one_step.MATRICES)[0], one_step.RATE
    step, far = (step_one_weight(one_step.MODEL, ids, slope, one) for one in (rate, one_step.RATES[-1]))
    assert far.loss_after > far.loss
    kept = (step.loss - step.loss_after) / (step.loss - step.promised)
    stated = [step.weight, slope.gradient, -slope.gradient, step.loss, step.loss_after, step.promised]
    assert f"{step.after:.2f}" == f"{round(step.weight, 3) - rate * round(slope.gradient, 3):.2f}"  # as by hand
    said = [f"{100 * kept:.0f} %", *write([one_step.RATES_OF_ALL[1], one_step.RATES_OF_ALL[3]], "g")]
    return [*write(stated, ".3f"), f"{step.after:.2f}", f" {rate:g} ", *said]


def covered() -> list[str]:
    ids, layer = of(block.MODEL).tokenizer.encode(block.TEXT).ids, block.BLOCK - 1
    lines = four_lines(block.MODEL, ids, layer)
    assert max(block.EXACT, sum_gaps(block.MODEL, ids, layer)["W_Q"]) < sum_gaps(block.MODEL, ids, layer)["attention"]
    return write([float(lines[at][-1, block.COLUMN]) for at in (0, 2, LINES.index("x + attention"))], ".2f")


def few_rows() -> list[str]:
    tables = (in_prompt.read_rows(in_prompt.TABLES[one]) for one in ("labels", "backwards"))
    (*labels, asked), (*backwards, last) = tables
    found = in_prompt.shots_of(in_prompt.MODEL, tuple(labels), *asked)
    read = in_prompt.shots_of(in_prompt.MODEL, tuple(backwards), *last)[-1].probability
    tuned = in_prompt.tune(in_prompt.MODEL, tuple(backwards), *last, in_prompt.STEPS, in_prompt.RATE)
    assert read > 0.99 and tuned.probabilities[-1] < 0.05 and tuned.losses[-1] < in_prompt.KNOWN
    first = next(shot.k for shot in found if shot.written == asked[1])
    sure = write([found[-1].probability, found[0].probability], ".2f")
    return [*sure, f" {first}", f" {len(labels)} ", "0.05", "0.99"]


def first_swap() -> list[str]:
    text, (place, token) = tuple(find_circuit.TEXTS[1].split()), find_circuit.SWAPS[1]
    effects = {one: measure_parts(1, text, swap(text, place, one), len(text) - 1) for one in "acd"}
    first, second = (effects[token].parts.index(line.part) for line in answer_key(1).lines)
    shown = [one for one, found in effects.items() if abs(found.swapped[first]) > FOUND]
    assert shown == ["a"] and list(effects[token].list_found(effects[token].swapped)) == [("head", 1, 0)]
    added, zeroed = effects[token].added + 0.0, effects[token].zeroed
    share = f"{float(effects['a'].swapped[first]):.2f}"
    return [f"{float(added[first]):.1f}", f"{float(added[second]):+.1f}", f"{float(zeroed[first]):.1f}", share]


def other_labels() -> list[str]:
    table, written = in_prompt.TABLES["labels"], []
    for first, second in (("zug", "fen"), ("city", "animal")):
        *rows, asked = in_prompt.read_rows(table.replace("lor", first).replace("mip", second))
        written.append([shot.written for shot in in_prompt.shots_of(in_prompt.MODEL, tuple(rows), *asked)])
    works, fails = written
    assert "city" not in fails
    return [f" {works.index('zug')} ", f"*{fails[-1]}*"]


def weights_of_in_context() -> list[str]:
    return [f"{sum(weight.numel() for weight in of(in_prompt.MODEL).model.parameters()):,}"]


def pixels() -> list[str]:
    shown, near_and_far = pictures()[0][0].tolist(), picture.neighbours()
    ids, probabilities = next_pixel(picture.WRITER, shown, picture.GIVEN)
    true = round(shown[picture.GIVEN // picture.SIDE][picture.GIVEN % picture.SIDE] * (LEVELS - 1))
    assert int(probabilities.argmax()) == LEVELS - 1 and len(ids) == picture.GIVEN + 1
    tokens_of_224 = (224 // 16) ** 2 + 1
    assert 2.5e9 < (224 * 224) ** 2
    stated = [f"{true}", f"{float(probabilities[true]):.2f}", f"{tokens_of_224}", f"{tokens_of_224**2:,}", "2.5"]
    stated += [f"{picture.GIVEN} ", f"{224 // 16} "]
    return [*stated, *(f"{one:+.2f}" for one in near_and_far)]


def gap() -> list[str]:
    span = ask_span(fill_gap.GLM, *words_of(fill_gap.TEXT, fill_gap.FIRST, fill_gap.LAST))
    seen = span.sees.sum(-1)
    assert span.reads[fill_gap.start_of(span)] == "[sop]" and int(seen[-1]) == len(span.reads)
    asked = ask_sentinels(fill_gap.T5, *words_of(fill_gap.TEXT, fill_gap.FIRST, fill_gap.LAST))
    both = asked.reads, asked.asked
    without = [sum(piece != "·" for piece in pieces) for pieces in both]  # the space before a sentinel
    sizes = [len(span.reads), int(seen[fill_gap.start_of(span)]), *without, *map(len, both)]
    return [f" {size}" for size in sizes]


def masks() -> list[str]:
    count = len(of(masks_and_heads.MODEL).tokenizer.encode(masks_and_heads.TEXT).ids)
    return [f" {count} ", f" {count * count} ", f"{count * (count - 1) // 2} "]


def padded() -> list[str]:
    rows = [len(tokens(of(BERT), text)) for text in batch.TEXTS]
    return [f"{len(rows) * max(rows)} ", f"{max(rows)},", f" {len(rows) * max(rows) - sum(rows)} "]


def widths_of_mlp() -> list[str]:
    config = of(norms.MODEL).config
    return [f" {config.d_model} ", f" {config.mlp.d_mlp} "]


def by_rotation() -> list[str]:
    return [f"{math.cos(0.01):.5f}", "0.99"]  # the latter is said not to be it


def envelope_of_bert() -> list[str]:
    config = NAMED["bert-base"].config
    seen, whole = envelope(config)[0].count, count(config)
    assert round(whole / 1e7) * 10 in (110, 120)
    return [f"{seen / 1e6:.0f} "]


def far() -> list[str]:
    model, tokens_of = of(long_sequences.READER), long_sequences.SHORTEST * 16
    return [f"{tokens_of}", f" {model.config.layers} ", f" {model.config.layers * (4 - 1)} ", f"{4**2} "]


def patches() -> list[str]:
    side = 224 // 16
    return ["224", "16", f"{224 * 224:,}", f"{side * side}"]


def shares() -> list[str]:
    words, reference = likely_words(policy.MODEL, of(policy.MODEL).tokenizer.encode(policy.TEXT).ids, policy.WORDS)
    reference = [*reference, 1 - sum(reference)]  # of all others
    rewards = [policy.REWARD if at == 1 else 0.0 for at in range(len(reference))]
    best = best_policy(reference, rewards, policy.PRICE)
    by_hand = best_policy([0.5, 0.5], [1.0, 0.0], 1.0).tolist()
    said = [reference[1], 1 - reference[1], float(best[1])]
    often = f"{100 * preference(rewards, 1, 0):.0f} %"
    named = [often, "0.5", f"{policy.PRICES[0]:g}", f" {policy.REWARD:g}.", f"“{words[1].strip('·')}”"]
    return [*write(said, ".3f"), *write(by_hand, ".2f"), *named]


def best_two_of_four() -> list[str]:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    total = float(probabilities[:2].sum())
    out = float(mix_experts(probabilities.log(), torch.tensor([[1.0], [-1.0]])))
    return [f"{total:g}", *(f"{one / total:.3f}" for one in (0.5, 0.3)), f"{out:g}", *write([0.5, 0.3], "g")]


def two_steps_by_hand() -> list[str]:
    w, rate, stated = 5.0, 0.25, ["0.25"]
    for _step in range(2):
        w -= rate * 2 * (w - 2)
        stated.append(f"{w:g}")
    return stated


def half_the_bits() -> list[str]:
    ids = of(bits.MODEL).tokenizer.encode(bits.TEXT).ids
    eight, four = measure_formats(bits.MODEL, ids, ["int8", "int4"], 32)
    return [f"{eight.kl:.5f}", f"{four.kl:.3f}", "32"]


def groups_of_weights() -> list[str]:
    weights, stated = read_matrix(bits.WEIGHTS).flatten(), ["16"]
    assert int((store_integers(weights[:-1], 4, 16).integers == 0).sum()) == 0
    for size in (16, 4):
        off = float((store_integers(weights, INTEGERS["int4"], size).values - weights).abs().mean())
        stated += [f"{off:.4g}", f" {bits_of_weight('int4', min(size, len(weights))):g}"]
    return [*stated, f" {bits_of_weight('int8', 16):g} ", " 4."]


def four_weights() -> list[str]:
    weights, stated = torch.tensor([0.3, -0.6, 1.2, 2.1]), list[str]()
    for size, integers in ((4, [1, -2, 4, 7]), (2, [0, 0, 1, 1])):
        found = store_integers(weights, size, 4)
        assert found.integers.tolist() == integers
        stated.append(f"{float(found.scales[0]):.1f}")
    return stated


def too_large() -> list[str]:
    assert [split_float(257, kind).value for kind in ("float32", "bfloat16", "float16")] == [257, 256, 257]
    assert split_float(70_000, "float16").infinite and not split_float(70_000, "bfloat16").infinite
    return ["257", f"{70_000:,}"]


def brain_float() -> list[str]:
    wide, found = split_float(1, "float32"), split_float(1, "bfloat16")
    assert wide.exponent_bits == found.exponent_bits
    sizes = 1 + found.exponent_bits + found.mantissa_bits, found.exponent_bits, found.mantissa_bits
    return [*(f" {size} " for size in sizes), f"{2 ** (wide.mantissa_bits - found.mantissa_bits):,}"]


def attention_of_gpt2() -> list[str]:
    context, one = config_of("gpt2").context, count_parts("gpt2", config_of("gpt2").context)
    return [f"{100 * one.attention / one.mlp:.1f} %", f"{context:,}", f"{find_crossing('gpt2'):,}"]


def twice_the_text() -> list[str]:
    length = len(of(price.MODEL).tokenizer.encode(price.TEXT).ids)
    short, long = (count_text(price.MODEL, length * times) for times in (1, 2))
    return write([long.cached / short.cached, long.again / short.again], ".2f")


def cache_of_a_token() -> list[str]:
    size = kv_bytes(40, 8, 128, 1, 2)
    return ["40", "128", f" = {size:,} ", f"{2**30 // size:,}"]


def tokens_for_gpt3() -> list[str]:
    weights, tokens = (size / 1e9 for size in PUBLISHED["GPT-3"])
    best = TOKENS_A_WEIGHT * weights
    return [f"{weights:.0f}", f"{tokens:.0f}", f"{best:,.0f}", f"{TOKENS_A_WEIGHT}", f"{best / tokens:.1f}"]


def doubled() -> list[str]:
    law = PowerLaw(4, 0.1)
    share = law.loss(2) / law.loss(1)
    return [f"{share:.2f}", f"{1 - share:.0%}".replace("%", " %"), "0.1", f"{round(law.times(0.5)):,}"]


def effects(model: str) -> HeadEffects:
    return measure_heads(model, of(model).tokenizer.encode(cause.TEXT[model]).ids)


def loud_and_needed() -> list[str]:
    found = effects(cause.REPEATS)
    pairs = [(found.added[place], found.lost[place]) for place in (found.loudest, found.needed)]
    return write([float(one) for pair in pairs for one in pair], ".2f")


def heads_of_everyday() -> list[str]:
    found, stated = effects("everyday"), list[str]()
    for place in (found.loudest, found.needed):
        stated += write([float(found.added[place]), float(found.lost[place])], ".2f")
    return stated


STATED: list[tuple[str, str, Callable[[], list[str]]]] = [
    (NOTE, "embeddings", near_girl),
    (NOTE, "embeddings", analogies),
    (NOTE, "embeddings", bank),
    (NOTE, "embeddings", table_of_everyday),
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
    (NOTE, "masks_and_heads", lambda: [format(float(softmax_weights(torch.zeros(6, 6))[0, 0]), ".2f")]),
    (NOTE, "residual", sixteen_blocks),
    (NOTE, "residual", sixteen_additions),
    (NOTE, "residual", lambda: ["10⁻¹⁶", "10"]),
    (NOTE, "loss", gradient_at_logits),
    (NOTE, "block", covered),
    (NOTE, "in_prompt", few_rows),
    (NOTE, "in_prompt", other_labels),
    (NOTE, "find_circuit", first_swap),
    (NOTE, "cause", loud_and_needed),
    (NOTE, "cause", heads_of_everyday),
    (TEXT, "how_much", lambda: [f"{TOKENS_A_WEIGHT}"]),
    (NOTE, "how_much", tokens_for_gpt3),
    (NOTE, "how_much", doubled),
    (NOTE, "price", attention_of_gpt2),
    (NOTE, "price", twice_the_text),
    (NOTE, "price", cache_of_a_token),
    (NOTE, "bits", half_the_bits),
    (NOTE, "bits", groups_of_weights),
    (NOTE, "bits", four_weights),
    (NOTE, "bits", too_large),
    (GLOSSARY, "glossary", brain_float),
    (TEXT, "in_prompt", weights_of_in_context),
    (NOTE, "picture", pixels),
    (NOTE, "fill_gap", gap),
    (NOTE, "policy", shares),
    (NOTE, "one_step", one_weight),
    (NOTE, "one_step", two_steps_by_hand),
    (NOTE, "query_key_value", mix_by_hand),
    (NOTE, "experts", best_two_of_four),
    (NOTE, "scaling", two_trainings),
    (NOTE, "norms", one_token_by_hand),
    (NOTE, "heads_learn", copied),
    (NOTE, "heads_learn", lambda: ["8", f" {8 - 1}"]),  # of a segment that an exercise on paper gives
    (NOTE, "heads_learn", formed),
    (NOTE, "heads_learn", adjectives),
    (NOTE, "adapting", pirate),
    (NOTE, "adapting", happy),
    (NOTE, "adapting", lambda: ["0.5"]),  # where the slider of λ begins
    (NOTE, "averaging", means),
    (NOTE, "encoder_decoder", red),
    (NOTE, "family", bert),
    (NOTE, "positions", ordered),
    (NOTE, "tokens", phones),
    (NOTE, "vector_to_word", three_logits),
    (NOTE, "vector_to_word", two_words),
    (NOTE, "vocabulary", merges),
    (NOTE, "languages", cost_by_language),
    (NOTE, "languages", best_of_two_cuts),
    (NOTE, "masks_and_heads", masks),
    (NOTE, "masks_and_heads", particle),
    (NOTE, "batch", padded),
    (NOTE, "norms", widths_of_mlp),
    (NOTE, "loss", lambda: ["80", "10", f"{loss.DRAWS:,}"]),  # shares of the paper
    (NOTE, "one_step", lambda: write([*one_step.RATES[-2:], one_step.STEPS], "g")),
    (NOTE, "vector_to_word", lambda: [f" {vector_to_word.ADDED:g} "]),
    (NOTE, "in_prompt", lambda: [f"{300 * 1000:,}"]),
    (NOTE, "long_sequences", far),
    (TEXT, "adapting", lambda: ["0.5"]),
    (GLOSSARY, "glossary", lambda: [f"{2**8}"]),
    (GLOSSARY, "glossary", lambda: [f"{1 / math.log(2):.2f}"]),
    (GLOSSARY, "glossary", lambda: [f"{share:.0%}".replace("%", " %") for share in (CHOSEN, MASKED, REPLACED)]),
    (TEXT, "adapting", tuned_losses),
    (TEXT, "family", envelope_of_bert),
    (TEXT, "family", lambda: ["11", f" {2 * 4} ", f" {3 + 1 + 2 * 4} "]),  # matrices of d x d: the MLP's, all, with W_O
    (TEXT, "picture", patches),
    (TEXT, "positions", by_rotation),
    (TEXT, "residual", lambda: ["0.1"]),  # a size that the text supposes
    (TEXT, "tokens", lambda: [f"{2**8}"]),  # values of a byte
    (TEXT, "heads_learn", falls),
    (TEXT, "heads_learn", it),
    (TEXT, "encoder_decoder", both_sides),
    (TEXT, "norms", blocks_share),
    (TEXT, "norms", longer_vectors),
    (TEXT, "scaling", gradients_by_products),
    (TEXT, "tokens", cafe),
    (TEXT, "vector_to_word", two_logits),
    (TEXT, "vector_to_word", underflow),
    (TEXT, "vector_to_word", wider_beams),
]


CHECKPOINTS = Path(__file__).parents[2] / "assets" / "checkpoints"

computed = cache(lambda compute: compute())


@pytest.mark.parametrize(("place", "name", "compute"), STATED)
def test_a_text_states_what_the_engine_computes(place: str, name: str, compute: Callable[[], list[str]]) -> None:
    for lang in words.languages(words.CATALOGUE):
        said = read(lang, place, name)
        for number in computed(compute):
            quoted = number.replace("“", "« ").replace("”", " »")
            forms = {number, number.replace(".", ","), number.replace(",", " "), quoted}
            assert any(form in said for form in forms), (lang, number)


@pytest.mark.parametrize("name", ["glossary", *(lesson.name for lesson in course.lessons())])
def test_each_number_of_a_lesson_and_its_note_is_computed_or_from_a_paper(name: str) -> None:
    """But for those that an exercise on paper gives. test_course_counts.py: those in French are the same."""
    papers = {number for lesson, number in PAPERS if lesson == name}
    for place in (GLOSSARY,) if name == "glossary" else (TEXT, NOTE) if name in NOTES else (TEXT,):
        told = read(words.ENGLISH, place, name).split("+++\n")[-1].split("\n\n")
        given = numbers_of(one for one in told if one.startswith("On paper:"))
        stated = numbers_of(told) - given
        known = chain(*(computed(compute) for where, lesson, compute in STATED if (where, lesson) == (place, name)))
        assert not stated - numbers_of(known) - papers, place


@pytest.mark.parametrize("card", sorted(CHECKPOINTS.glob("*/card.json")), ids=lambda path: path.parent.name)
def test_each_number_of_a_card_is_one_that_was_measured(card: Path) -> None:
    about = json.loads(card.read_text(encoding="utf-8"))
    config = json.loads(card.with_name("config.json").read_text(encoding="utf-8"))
    known = {
        form
        for value in leaves([about, config, len(about.get("program", ()))])
        for form in (f"{value:,}", f"{value:.0%}".replace("%", " %"))
    }
    assert about["name"] == card.parent.name
    assert not numbers_of([about["about"]]) - known


def leaves(tree: Any) -> Iterator[float]:
    """The numbers of what JSON holds."""
    if isinstance(tree, dict | list):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(one)
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield tree


def read(lang: str, place: str, name: str) -> str:
    path = words.CATALOGUE / lang / place if place == GLOSSARY else course.LESSONS / name / place.format(lang=lang)
    said = path.read_text(encoding="utf-8")
    return said.replace("\u202f", " ").replace("\xa0", " ")


def numbers_of(texts: Iterable[str]) -> set[str]:
    """Of English texts."""
    said = [(text, ASIDE.sub("", text)) for text in texts]
    return {one for text, rest in said for one in (*STATED_NUMBER.findall(rest), *bare(text, words.ENGLISH))}
