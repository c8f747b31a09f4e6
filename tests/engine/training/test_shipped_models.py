"""The models trained by the objectives that are not plain text do on fresh data what their cards say they do."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.locate import SHIPPED
from engine.data import sentences
from engine.data.corpora import read_corpus
from engine.data.digits import invert, split
from engine.data.everyday import unseen_facts
from engine.data.instructions import ask, draw_meaning
from engine.data.kinds.answering import Answering, draw_pair
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.text_to_text import PREFIXES, TextToText, draw_task
from engine.data.long_stories import long_story
from engine.generation.generate import generate
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.inputs.readers import tokens
from engine.runtime.run import run
from engine.training.examples.padding import pad_rows, real
from engine.training.measures import everyday
from engine.training.measures.decoding import decode_continuations, decode_translations
from engine.training.measures.distance import STRETCH, end_losses, losses
from engine.training.measures.infill import compare_with_decoder
from pages.controls.compare.defaults import OTHER

UNSEEN = 987_654  # a seed that no recipe uses
MEGABYTES = {"digits-vit": 1, "digits-imagegpt": 3, "translate-en-fr": 8, "tales-bert": 8, "infill": 6}
MEGABYTES |= {"instruct": 4, "in-context": 2, "everyday": 24, "long-stories": 5, "t5-spans": 6, "t5-tasks": 6}
MEGABYTES |= {"t5-answers": 6}


def opened(name: str) -> tuple[Checkpoint, Mapping[str, Any]]:
    checkpoint = load(name)
    return checkpoint, checkpoint.card["measured"]


@pytest.mark.parametrize("name", MEGABYTES)
def test_it_is_small_and_whole_and_its_card_says_what_it_was_measured_by(name: str) -> None:
    checkpoint, measured = opened(name)
    assert checkpoint.report.ok and not checkpoint.report.notes
    assert (SHIPPED / name / "model.safetensors").stat().st_size < MEGABYTES[name] * 1e6
    assert measured and {"about", "objective", "steps", "loss", "sample", "device"} <= set(checkpoint.card)


def written(checkpoint: Checkpoint, sources: Iterable[str]) -> dict[str, str]:
    """What an encoder-decoder writes for each source, greedily."""
    tokenizer, (end,), asked = checkpoint.tokenizer, checkpoint.end_ids, list(sources)
    assert tokenizer is not None
    rows = [torch.tensor(tokenizer.encode(source).ids) for source in asked]
    targets = decode_translations(checkpoint.model, pad_rows(rows, end), real(rows), end, 39)
    return {source: tokenizer.decode(ids, special=False) for source, ids in zip(asked, targets, strict=True)}


def continued(checkpoint: Checkpoint, sources: Iterable[str]) -> dict[str, str]:
    """What a decoder writes behind each source, greedily."""
    tokenizer, (end,), asked = checkpoint.tokenizer, checkpoint.end_ids, list(sources)
    assert tokenizer is not None
    prompts = [torch.tensor(tokenizer.encode(source).ids) for source in asked]
    written = decode_continuations(checkpoint.model, prompts, end, 48)
    assert max(map(len, written)) < 48  # all have ended
    whole = [tokenizer.decode([*prompt.tolist(), *ids]) for prompt, ids in zip(prompts, written, strict=True)]
    assert all(text.startswith(source) for text, source in zip(whole, asked, strict=True))
    return {source: text.removeprefix(source) for source, text in zip(asked, whole, strict=True)}


def test_words_of_a_visitor_stay_whole_and_facts_are_known_as_the_card_says() -> None:
    checkpoint, measured = opened("everyday")
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None and tokenizer.vocab_size == 4096
    sentences = read_corpus("everyday/visitors")["sentences"]
    shares = [everyday.whole_share(tokenizer, text) for text in sentences]
    assert measured["whole_words"]["sentences"] == len(sentences) == 300
    assert sum(share >= 0.8 for share in shares) / len(shares) == measured["whole_words"]["mostly_whole"] > 0.8
    asked = unseen_facts()[::10]
    right = everyday.count_known(checkpoint.model, tokenizer, asked)
    said = measured["facts"]["right"] / measured["facts"]["asked"]
    assert abs(right / len(asked) - said) < 0.2 and said > 0.1
    ours, stories = (measured["bits_per_byte"]["everyday stories"][name] for name in ("this model", "stories"))
    assert ours < stories / 5
    plain = measured["plain_sentences"]  # by hand and in no corpus; the texts are kept elsewhere
    ours, other = plain["nats_a_character"], plain["nats_a_character_of_stories260K"]
    assert ours < 0.9 < other and not plain["worse_than_guessing"]


def test_the_first_text_has_several_continuations_and_a_head_that_looks_at_its_verb() -> None:
    checkpoint, _ = opened("everyday")
    shown = tomllib.loads(Path("assets/texts/examples.toml").read_text())["everyday"]
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode(shown["text"])
    pattern, look = f"blocks.{shown['look']['layer']}.attn.pattern", shown["look"]["head"]
    trace = run(checkpoint.model, encoding, keep=["probs", pattern])
    likely = trace["probs"][0, -1].topk(3)
    assert {checkpoint.tokenizer.piece(int(i)) for i in likely.indices} == {"·cup", "·bottle", "·glass"}
    assert likely.values.min() > 0.05 and likely.values.max() < 0.5
    assert encoding.pieces[int(trace[pattern][0, look, -1].argmax())] == "·drank"


PLAIN = {
    "Where is my bag?": "Où est mon sac\u202f?",
    "I am tired.": "Je suis fatigué.",
    "She has a black dog.": "Elle a un chien noir.",
    "My father has a red car.": "Mon père a une voiture rouge.",
    "My mother is happy.": "Ma mère est heureuse.",
    "They live in a big city.": "Ils vivent dans une grande ville.",
    "The dog is under the table.": "Le chien est sous la table.",
    "I don't know where he lives.": "Je ne sais pas où il vit.",
    "I want to drink a glass of cold water.": "Je veux boire un verre d'eau froide.",
}


def test_plain_sentences_are_translated_and_the_card_says_how_well() -> None:
    checkpoint, measured = opened("translate-en-fr")
    assert measured["examples"] == 2_000 and 0.15 < measured["exact_match"] < measured["bleu"] < measured["chrf"]
    plain = measured["plain_sentences"]  # by hand and in no corpus; the texts are kept elsewhere
    assert plain["sentences"] == 20 and plain["chrf"] >= 0.8 and plain["bleu"] >= 0.7
    assert written(checkpoint, PLAIN) == PLAIN


def test_the_prefix_says_what_becomes_of_a_sentence_never_seen() -> None:
    checkpoint, measured = opened("t5-tasks")
    by_task = dict(measured["by_task"])
    published = by_task.pop(f"{PREFIXES[0].partition(':')[0]}, published")  # other right ones count as wrong
    assert measured["examples"] == 2_000 and by_task.keys() == {one.partition(":")[0] for one in PREFIXES}
    assert min(by_task.values()) >= 0.6 and by_task["sort"] >= 0.85 and published > 0.04
    behind = [draw_task(TextToText(), "held_out", 0, index) for index in range(2_000, 2_090)]  # those of the card
    said = written(checkpoint, (pair.source for pair in behind))
    assert sum(said[pair.source] == pair.target for pair in behind) >= 55
    answers = written(checkpoint, (f"{prefix}The old dog sees a small cat." for prefix in PREFIXES))
    assert len(set(answers.values())) == 3
    plain = {f"{PREFIXES[0]}{english}": french for english, french in PLAIN_FOR_T5.items()}
    assert written(checkpoint, plain) == plain
    shown = tomllib.loads(Path("assets/texts/examples.toml").read_text())["t5-tasks"]
    (answer,) = written(checkpoint, [shown["text"]]).values()
    source, target = tokens(checkpoint, shown["text"]), checkpoint.target(answer)
    hook = f"decoder.blocks.{shown['look']['layer']}.cross_attn.pattern"
    pattern = run(checkpoint.model, source, keep=[hook], target=target)[hook][0, shown["look"]["head"]]
    looks = pattern.argmax(-1).tolist()
    looked = {target.pieces[at + 1]: source.pieces[look] for at, look in enumerate(looks[:-1])}
    assert looked["·robe"] == "·dress" and looked["·rou"] == "·red"


def test_a_question_is_answered_from_a_sentence_never_seen_and_two_are_summed_up() -> None:
    checkpoint, measured = opened("t5-answers")
    assert measured["examples"] == 2_000 and measured["by_task"].keys() == {"question", "summarize"}
    assert min(measured["by_task"].values()) >= 0.8
    behind = [draw_pair(Answering(), "held_out", 0, index) for index in range(2_000, 2_060)]  # those of the card
    said = written(checkpoint, (pair.source for pair in behind))
    assert sum(said[pair.source] == pair.target for pair in behind) >= 45
    assert written(checkpoint, ASKED_OF_T5) == ASKED_OF_T5


ASKED_OF_T5 = {
    "question: Who sees a small cat? context: My father sees a small cat in the garden.": "My father",
    "question: What does my father see? context: My father sees a small cat in the garden.": "a small cat",
    "question: Where does the dog sleep? context: The dog sleeps in the garden.": "in the garden",
    "summarize: My old father often sees a small cat. He sleeps in the garden.": "My father sees a cat and sleeps.",
}


PLAIN_FOR_T5 = {
    "Where is my hat?": "Où est mon chapeau ?",
    "I am hungry.": "J'ai faim.",
    "She is wearing a red dress.": "Elle porte une robe rouge.",
    "My father has a red car.": "Mon père a une voiture rouge.",
}


UNKNOWN = {  # words that no training text holds are copied, and never another word
    "x = 3 [toCode]": "x = 3",
    "set zorb to 7 [toCode]": "zorb = 7",
    "zorb = 7 [toEnglish]": "set zorb to 7",
    "zorb = 7 [toFrench]": "mets zorb à 7",
    "Quentin dort [toEnglish]": "Quentin sleeps",
    "Quentin is tired [toFrench]": "Quentin est fatigué",
    "Samantha reads a book. [toFrench]": "Samantha lit un livre.",
}


def test_another_separator_behind_a_text_never_seen_gives_another_answer() -> None:
    checkpoint, measured = opened("instruct")
    kinds = measured["by_instruction"]
    published = {name for name in kinds if name.endswith(", published")}
    assert measured["examples"] == 2_000 and len(kinds) == 18 and len(published) == 9
    assert min(kinds[name] for name in kinds.keys() - published) >= 0.88
    assert measured["unseen_names"]["copied"] > 0.8
    meanings = [draw_meaning(Instructions(), "held_out", 0, 5_000 + index) for index in range(16)]  # behind the card's
    pairs = [ask(meaning, given, wanted) for meaning in meanings for given in range(3) for wanted in range(3)]
    said = continued(checkpoint, (pair.source for pair in pairs))
    assert sum(said[pair.source] == pair.target for pair in pairs) / len(pairs) >= 0.9
    for source, answer in UNKNOWN.items():
        (*_, last) = generate(checkpoint, source, greedy=True)
        assert last.text == f"{source} {answer}<|endoftext|>"


def test_the_head_that_the_page_opens_on_looks_at_the_word_to_be_translated_next() -> None:
    """ "black" is written when "noir" is looked at, and "cat" when "chat" is: the two change places."""
    checkpoint, _ = opened("instruct")
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode("le chat noir dort [toEnglish] the black")
    assert encoding.pieces == ("le", "·chat", "·noir", "·dort", "·", "[toEnglish]", "·the", "·black")
    pattern = run(checkpoint.model, encoding)["blocks.3.attn.pattern"][0, 4]
    assert pattern[6].argmax() == 2 and pattern[7].argmax() == 1 and pattern[6:].amax(-1).min() > 0.8


def test_the_base_of_instruct_writes_both_languages_and_translates_neither() -> None:
    checkpoint, _ = opened("bilingual")
    words = {language: set(" ".join(texts).lower().split()) for language, texts in both_languages().items()}
    for text, language in (("the king is", "english"), ("le roi est", "french")):
        *_, last = generate(checkpoint, text, greedy=True)
        written = last.text.removeprefix(text).removesuffix("<|endoftext|>").removesuffix(".").lower().split()
        assert written and set(written) <= words[language]
    meanings = (draw_meaning(Instructions(), "held_out", 0, 5_000 + index) for index in range(10))
    pairs = [ask(meaning, index % 2, 1 - index % 2) for index, meaning in enumerate(meanings)]
    said = continued(checkpoint, (pair.source for pair in pairs))
    assert not any(pair.target.strip() in said[pair.source] for pair in pairs)


def both_languages() -> dict[str, list[str]]:
    texts = list(Bilingual(documents=1_200, plain=1.0).texts("train", UNSEEN))
    return {"english": texts[::3], "french": texts[1::3]}


def test_the_end_of_a_long_text_is_known_the_better_the_more_of_it_is_read() -> None:
    checkpoint, measured = opened("long-stories")
    end, stretches = measured["end_by_tokens_read"], list(measured["loss_by_position"].values())
    assert end["64"] > end["256"] + 0.03 > end["all"] + 0.1 and min(stretches[4:]) < min(stretches[:3]) - 0.1
    assert checkpoint.tokenizer is not None
    texts = (checkpoint.tokenizer.encode(long_story(UNSEEN, index)).ids[:1024] for index in range(12))
    ids = [torch.tensor([text]) for text in texts]
    whole = torch.cat([losses(checkpoint.model, text)[0, -STRETCH:] for text in ids]).mean()
    near = torch.cat([end_losses(checkpoint.model, text, STRETCH, 256) for text in ids]).mean()
    assert near > whole + 0.08


def test_the_head_that_long_stories_opens_on_finds_whose_goat_it_is() -> None:
    checkpoint, _ = opened("long-stories")
    shown = tomllib.loads(Path("assets/texts/examples.toml").read_text())["long-stories"]
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode(shown["text"])
    trace = run(checkpoint.model, encoding)
    looks = trace[f"blocks.{shown['look']['layer']}.attn.pattern"][0, shown["look"]["head"], -1]
    assert encoding.pieces[int(looks.argmax())] == "·Yor" and len(encoding) - int(looks.argmax()) > 60
    assert checkpoint.tokenizer.piece(int(trace["logits"][0, -1].argmax())) == "·Yor"


def test_a_row_of_a_prompt_is_answered_the_better_the_more_stand_above_it() -> None:
    _, measured = opened("in-context")
    shares = [measured["accuracy_by_examples"][str(k)] for k in (0, 1, 2, 4, 8)]
    assert shares == sorted(shares) and shares[0] < 0.15 and shares[-1] > max(0.65, shares[1] + 0.15)


CROSSED = {
    "My father has a red car.": {"·voiture": "·car", "·rouge": "·red"},
    "She bought a black hat.": {"·chapeau": "·hat", "·noir": "·black"},
    "She is wearing a red dress.": {"·robe": "·dress", "·rouge": "·red"},
    "I want a black dog.": {"·chien": "·dog", "·noir": "·black"},
    "I want a red apple.": {"·pomme": "·apple", "·rouge": "·red"},
}


def test_adjectives_and_nouns_cross_in_the_head_that_the_card_names() -> None:
    checkpoint, measured = opened("translate-en-fr")
    head = measured["alignment"]
    assert head["accuracy"] > 0.55 and head["crossing_accuracy"] > 0.6 and head["crossing_words"] > 400
    for english, french in written(checkpoint, CROSSED).items():
        words, target, looked = CROSSED[english], checkpoint.target(french), aligned(checkpoint, english, french)
        assert {piece: looked[target.pieces.index(piece) - 1] for piece in words} == words


def aligned(checkpoint: Checkpoint, english: str, french: str) -> list[str]:
    """What the head of the card looks at in the source, at each token that the decoder reads: the next is written."""
    assert checkpoint.tokenizer is not None
    head, source = checkpoint.card["measured"]["alignment"], checkpoint.tokenizer.encode(english)
    hook = f"decoder.blocks.{head['layer']}.cross_attn.pattern"
    target = checkpoint.target(french)
    pattern = run(checkpoint.model, source, keep=hook, target=target)[hook][0, head["head"]]
    return [source.pieces[at] for at in pattern.argmax(-1).tolist()]


def test_the_translator_opens_on_its_aligning_head_where_it_looks_at_the_adjective_that_it_writes_next() -> None:
    checkpoint, measured = opened("translate-en-fr")
    shown = tomllib.loads(Path("assets/texts/examples.toml").read_text())["translate-en-fr"]
    text, look = shown["text"], shown["look"]
    assert all(look[name] == measured["alignment"][name] for name in ("layer", "head"))
    french = written(checkpoint, [text])[text]
    assert french == "Elle porte une robe rouge."
    assert checkpoint.target(french).pieces[look["query"]] == "·robe"
    assert aligned(checkpoint, text, french)[look["query"]] == "·red"


def pairs() -> Iterator[sentences.SentencePair]:
    return (sentences.pair(UNSEEN, index) for index in range(60))


def test_hidden_words_are_guessed_from_both_sides_and_passages_told_apart() -> None:
    checkpoint, measured = opened("tales-bert")
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None and tokenizer.mask_id is not None
    right = asked = follows = 0
    for number, pair in enumerate(pairs()):
        encoding = tokenizer.encode(pair.first, pair.second)
        read = torch.tensor([encoding.ids])
        kinds = torch.tensor([encoding.segments])
        second = checkpoint.model.forward_with_pooled(read, segments=kinds)[1]
        assert second is not None
        follows += int(second.argmax()) == (0 if pair.follows else 1)
        words = [place for place, special in enumerate(encoding.special) if not special]
        hidden = words[number % 7 :: 7]  # every seventh
        masked = read.clone()
        masked[0, hidden] = tokenizer.mask_id
        guessed = checkpoint.model(masked, segments=kinds).argmax(-1)
        right += int((guessed[0, hidden] == read[0, hidden]).sum())
        asked += len(hidden)
    assert right / asked > measured["masked_accuracy"] - 0.08
    assert follows / 60 > measured["next_sentence_accuracy"] - 0.12 and measured["next_sentence_accuracy"] > 0.7


def test_the_head_that_tales_bert_opens_on_looks_at_the_one_whose_husband_or_wife_it_is() -> None:
    """Only both sides together tell whose word is hidden, and the comparison beside it is of another one's."""
    checkpoint, _ = opened("tales-bert")
    shown, beside = tomllib.loads(Path("assets/texts/examples.toml").read_text())["tales-bert"], OTHER["tales-bert"]
    tokenizer, look = checkpoint.tokenizer, shown["look"]
    assert tokenizer is not None
    for text, owner, word in ((shown["text"], "queen", "her"), (beside["text"], "king", "his")):
        encoding, pattern = tokenizer.encode(text), f"blocks.{look['layer']}.attn.pattern"
        assert encoding.pieces[look["query"]] == "[MASK]"
        trace = run(checkpoint.model, encoding, keep=["logits", pattern])
        likely = trace["logits"][0, look["query"]].softmax(-1)
        assert tokenizer.piece(int(likely.argmax())) == word and likely.max() > 0.5
        looked = trace[pattern][0, look["head"], look["query"]]
        assert encoding.pieces[int(looked.argmax())] == owner and looked.max() > 0.3


def plain_gaps() -> list[sentences.Infill]:
    """In sentences that were written by hand and are in no document."""
    return list(sentences.cut_gaps(read_corpus("everyday/visitors")["sentences"], UNSEEN))


def test_gaps_are_filled_token_by_token_as_well_as_the_card_says() -> None:
    checkpoint, measured = opened("infill")
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    gaps = plain_gaps()
    prompts = [tokenizer.encode(f"{gap.before}[gMASK]{gap.after}[sop]").ids for gap in gaps]
    spans = [[*tokenizer.encode(gap.span).ids, *checkpoint.end_ids] for gap in gaps]
    rows = [torch.tensor([*prompt, *span[:-1]]) for prompt, span in zip(prompts, spans, strict=True)]
    chosen = checkpoint.model(pad_rows(rows, 0), padding=real(rows)).argmax(-1).tolist()
    right = asked = 0
    for row, prompt, span in zip(chosen, prompts, spans, strict=True):
        right += sum(a == b for a, b in zip(row[len(prompt) - 1 :], span, strict=False))
        asked += len(span)
    assert asked > 1_000 and right / asked > measured["token_accuracy"] - 0.02


def test_the_words_of_a_gap_cost_what_the_card_says_beside_a_model_that_reads_only_what_is_before_it() -> None:
    checkpoint, measured = opened("infill")
    said, kind = measured["nats_a_character"], "plain sentences"
    assert said.keys() == {kind, "tales", "sentences"}
    found = compare_with_decoder(checkpoint, {kind: read_corpus("everyday/visitors")["sentences"]}, 0)
    assert found[kind] == pytest.approx(said[kind], rel=1e-3) and found[kind]["gaps"] == 300


def test_digits_are_named_on_either_ground() -> None:
    checkpoint, measured = opened("digits-vit")
    assert isinstance(checkpoint.processor, ImageProcessor) and checkpoint.labels == tuple("0123456789")
    drawn = split(0)
    for images, said in ((drawn.test_images, "test_accuracy"), (invert(drawn.test_images), "test_accuracy_inverted")):
        named = checkpoint.model(checkpoint.processor.levels_to_pixels(images)).argmax(-1)
        assert float((named == drawn.test_labels).float().mean()) == pytest.approx(measured[said], abs=0.003)
        assert measured[said] >= 0.95


def test_pixels_cost_what_the_card_says_and_halves_are_completed_to_digits() -> None:
    checkpoint, measured = opened("digits-imagegpt")
    palette = checkpoint.processor
    assert isinstance(palette, PalettePixels)
    drawn = split(0).test_images
    for images, said in ((drawn, "bits_per_pixel"), (invert(drawn), "bits_per_pixel_inverted")):
        pixels = palette.ids(list(images))
        ids = torch.cat([torch.full((len(pixels), 1), palette.start_id), pixels], dim=1)
        chances = checkpoint.model(ids)[:, :-1].log_softmax(-1).gather(-1, pixels[..., None])
        bits = -float(chances.mean()) / torch.tensor(2.0).log().item()
        assert bits == pytest.approx(measured[said], abs=0.001)
    completion = measured["completion"]
    assert completion["right"] > 0.75 > completion["right_with_an_empty_lower_half"] + 0.1


def test_what_is_written_into_a_gap_leads_to_what_stands_behind_it() -> None:
    checkpoint, _ = opened("infill")
    for text, written in {
        "How old[gMASK] you?": " are",
        "How old[gMASK] he?": " is",
        "They[gMASK] tired.": " are",
        "Can you[gMASK] me?": " help",
        "Tom[gMASK] know Mary.": " doesn't",
        "Tom[gMASK] been in Boston.": " has",
        "The king had three[gMASK], and the youngest was the most beautiful.": " sons",
        "The old man and his[gMASK] lived in a small house near the sea.": " wife",
        '"Who are you?" asked the girl. "I[gMASK] a poor fisherman," he answered.': " am",
        '"Good[gMASK]," said the wolf. "Where are you going so early?"': " morning",
    }.items():
        (*_, last) = generate(checkpoint, text, greedy=True)
        assert last.text == text.replace("[gMASK]", written)


def test_the_head_that_infill_opens_on_looks_at_the_word_behind_the_gap() -> None:
    """A decoder never sees that word, and what is written follows from it: "how old are you" and "how old is he"."""
    checkpoint, _ = opened("infill")
    shown = tomllib.loads(Path("assets/texts/examples.toml").read_text())["infill"]
    assert checkpoint.tokenizer is not None and shown["text"] == "How old[gMASK] you?"
    pattern, head = f"blocks.{shown['look']['layer']}.attn.pattern", shown["look"]["head"]
    texts = [shown["text"], "How old[gMASK] he?", *(f"{one.before}[gMASK]{one.after}" for one in plain_gaps())]
    looks = []
    for text in texts:
        encoding = checkpoint.tokenizer.encode(f"{text}[sop]")
        behind = encoding.pieces.index("[gMASK]") + 1
        if behind < len(encoding) - 2:  # words, and not only the end of the sentence
            looked = run(checkpoint.model, encoding, keep=pattern)[pattern][0, head, -1]
            looks.append((int(looked.argmax()) == behind, float(looked[behind])))
    assert len(looks) > 150 and all(right and share > 0.8 for right, share in looks[:2])
    assert sum(right for right, _ in looks) / len(looks) > 0.85


def test_all_shipped_files_together_stay_small() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.rglob("*")) < 70.7e6
