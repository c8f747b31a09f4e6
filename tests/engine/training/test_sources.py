from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.data.documents import Document, read_parts
from engine.data.kinds.rows import Rows
from engine.data.kinds.stories import Stories
from engine.data.kinds.text import Text
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.scoring.examples import UNASKED
from engine.training import Recipe, parse_recipe, train
from engine.training.recipe.data_recipe import Data
from engine.training.sources import open_source
from engine.training.sources.corpus import choose_sample, describe_unknown, open_corpus
from engine.training.sources.windows import Windows

REPEATS = """
[model]
d_model = 16
layers = 2
attention = { heads = 2 }
[data]
repeats = { shortest = 3, longest = 7 }
tokenizer = { kind = "char" }
[objective]
kind = "repeated"
[schedule]
steps = 10
[batch]
size = 32
context = 20
"""


def test_a_batch_depends_on_its_step_and_seed_alone(recipe: Recipe, tmp_path: Path) -> None:
    source, again = Windows(recipe, tmp_path / "a"), Windows(recipe, tmp_path / "b")
    seventh = source.batch(7)
    source.batch(1)
    assert torch.equal(source.batch(7).ids, seventh.ids)
    assert torch.equal(again.batch(7).ids, seventh.ids)
    assert not torch.equal(source.batch(8).ids, seventh.ids)
    assert not torch.equal(Windows(replace(recipe, seed=4), tmp_path / "c").batch(7).ids, seventh.ids)


def test_targets_are_the_text_one_token_later(recipe: Recipe, tmp_path: Path) -> None:
    source = Windows(recipe, tmp_path)
    examples = source.batch(1)
    assert examples.ids.shape == examples.targets.shape == (4, 8)
    assert torch.equal(examples.ids[:, 1:], examples.targets[:, :-1])
    text = source.tokenizer.decode(source.corpus.train.ids.tolist())
    for ids, targets in zip(examples.ids.tolist(), examples.targets.tolist(), strict=True):
        assert source.tokenizer.decode([*ids, targets[-1]]) in text


def test_the_corpus_kept_in_the_folder_is_the_one_that_was_made(recipe: Recipe, tmp_path: Path) -> None:
    made, kept = Windows(recipe, tmp_path), Windows(recipe, tmp_path)
    assert len(list((tmp_path / "data").iterdir())) == 1
    assert torch.equal(made.corpus.train.ids, kept.corpus.train.ids)
    assert kept.tokenizer.encode("the cat").ids == made.tokenizer.encode("the cat").ids


def test_half_of_the_windows_begin_with_a_document(recipe: Recipe, tmp_path: Path) -> None:
    stories = Data(Stories(documents=20, held_out=3), tokenizer=TokenizerRecipe("char"))
    source = Windows(replace(recipe, data=stories, batch=replace(recipe.batch, size=400)), tmp_path)
    corpus = source.corpus.train
    begins = {tuple(corpus.ids[start : start + 8].tolist()) for (start,) in corpus.starts.tolist()}
    share = sum(tuple(row) in begins for row in source.batch(1).ids.tolist()) / 400
    assert 0.42 < share < 0.6


def test_held_out_stories_are_none_of_those_trained_on() -> None:
    told = Stories(documents=200, held_out=50).make_documents(0)
    assert len(list(told.held_out())) == 50
    assert not set(told.train()) & set(told.held_out())


def test_a_text_is_cut_once_at_a_line_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {n}\n" for n in range(100)))
    told = Text(str(path), 0.25).make_documents(0)
    ((ours,),) = (document.texts for document in told.train())
    ((theirs,),) = (document.texts for document in told.held_out())
    assert ours + theirs == path.read_text()
    assert theirs.startswith("line ") and 0.2 < len(theirs) / len(ours + theirs) < 0.3


TYPED = "so <|endoftext|> is typed, and [MASK], [CLS], <unk> too.\n" + 40 * "<|> [end of text] MASK CLS unk: is text.\n"


@pytest.mark.parametrize("kind", ["char", "word", "byte", "bpe", "bpe-characters", "wordpiece", "unigram"])
def test_a_mark_in_a_text_is_learned_as_it_is_read_when_typed(kind: str, tmp_path: Path) -> None:
    (tmp_path / "typed.txt").write_text(TYPED)
    data = Data(Text(str(tmp_path / "typed.txt")), tokenizer=TokenizerRecipe(kind))
    corpus = open_corpus(replace(data.table.make_documents(0), read=read_parts), data, 0, tmp_path)
    typed = (tmp_path / "typed.txt").read_text()
    learned = [*corpus.train.ids.tolist(), *corpus.held_out.ids.tolist()]
    marks = {id for name, id in corpus.tokenizer.special_tokens.items() if name not in ("<unk>", "[UNK]")}
    read = corpus.tokenizer.encode(typed, special=False).ids
    assert [id for id in learned if id in marks] == [id for id in read if id in marks] != []


def test_letters_that_the_tokenizer_of_the_data_lacks_are_counted_and_named(tmp_path: Path) -> None:
    lines = "the cat sat here\n" * 40
    (tmp_path / "lines.txt").write_bytes((lines + "tā ēst ņes\n" * 40).encode("cp1257"))
    data = Data(Text(str(tmp_path / "lines.txt"), held_out=0.5), tokenizer=TokenizerRecipe("char"))
    told = data.table.make_documents(0)
    corpus = open_corpus(told, data, 0, tmp_path)
    read, share = corpus.notes
    assert read.startswith("lines.txt was read as Windows-1252 (a guess: the “â” in line 41 is “ā” in Windows-1257; if")
    assert corpus.held_out.ids.tolist().count(corpus.tokenizer.unknown_id) == 120
    assert "% of the tokens of the data, 120 of " in share
    assert "(of 120 letters looked at 'â' 40, 'ç' 40, 'ò' 40)" in share
    assert open_corpus(told, data, 0, tmp_path).notes == (read, share)  # of the tokens that are kept
    assert describe_unknown(replace(corpus, held_out=corpus.train), told) == ""


def test_a_mark_of_ones_own_is_read_as_one_where_it_is_typed(tmp_path: Path) -> None:
    (tmp_path / "typed.txt").write_text("<name> met <name> .\n" * 100)
    data = Data(Text(str(tmp_path / "typed.txt")), tokenizer=TokenizerRecipe("char", special_tokens=("<name>",)))
    corpus = open_corpus(data.table.make_documents(0), data, 0, tmp_path)
    mark = corpus.tokenizer.special_tokens["<name>"]
    assert corpus.train.ids.tolist().count(mark) + corpus.held_out.ids.tolist().count(mark) == 200


def test_a_text_too_short_for_the_context_or_absent_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("too short\n")
    short = replace(recipe, data=Data(Text(str(tmp_path / "short.txt")), tokenizer=TokenizerRecipe("char")))
    with pytest.raises(ValueError, match="at least batch.context . 1 = 9 tokens, got"):
        Windows(short, tmp_path)
    absent = replace(recipe, data=Data(Text(str(tmp_path / "absent.txt"))))
    with pytest.raises(ValueError, match="data.text.path must be a file, and there is no absent.txt where"):
        Windows(absent, tmp_path)


def test_repeats_ask_only_for_what_the_earlier_tokens_determine(tmp_path: Path) -> None:
    source = open_source(parse_recipe(REPEATS), tmp_path)
    examples = source.batch(1)
    windows = torch.cat([examples.ids, examples.targets[:, -1:]], dim=1)
    lengths = set()
    for row, targets in zip(windows.tolist(), examples.targets.tolist(), strict=True):
        length = next(i for i, target in enumerate(targets) if target != UNASKED)
        lengths.add(length)
        assert row[length:] == row[:-length]  # it does repeat after `length`
        assert targets[length:] == row[length + 1 :]
    assert lengths == {3, 4, 5, 6, 7}


def test_data_that_has_changed_is_noticed_when_a_run_goes_on(recipe: Recipe, tmp_path: Path) -> None:
    corpus = Path(recipe.data.table.path)
    before = corpus.read_bytes()
    steps = train(recipe, tmp_path / "run")
    assert next(step for step in steps if step.step == 6)
    steps.close()
    begun = open_source(recipe, tmp_path / "not begun")
    corpus.write_bytes(before.replace(b"cat", b"cow"))
    with pytest.raises(ValueError, match=r"data\.text\.path must be what .* and corpus\.txt has changed since; bring"):
        list(train(recipe, tmp_path / "run"))
    other = open_source(recipe, tmp_path / "not begun")  # nothing was learned, so that it begins with what there is
    assert begun.tokenizer is not None and other.tokenizer is not None
    assert [one.decode(one.ids("cow")) == "cow" for one in (begun.tokenizer, other.tokenizer)] == [False, True]
    corpus.write_bytes(before)
    for file in (tmp_path / "run" / "data").glob("tokens-*"):
        file.unlink()  # the ids are made again, by the tokenizer that the weights know
    assert [step.step for step in train(recipe, tmp_path / "run")][-1] == recipe.schedule.steps


def test_a_tokenizer_learns_from_rows_of_the_whole_file() -> None:
    rows = [Document((str(n),)) for n in range(60)]
    own = Data(Rows(path="rows.csv", text="text"), tokenizer=TokenizerRecipe("word", sample=20))
    told, some = choose_sample(iter(rows), own, 0)
    assert [*told] == rows and len({one.texts for one in some}) == 20 and list(some) == sorted(some, key=rows.index)
    assert all(any(one in rows[part : part + 20] for one in some) for part in (0, 20, 40))
    assert choose_sample(iter(rows), replace(own, tokenizer=TokenizerRecipe("char", sample=20)), 0)[1] == rows
