"""The rule that a number and its noun agree: an interpolation that is 1 at times is not followed by a plural.

`count_words` (engine/plurals.py), `counted` (assets/views/core/format.js) and the course's `_n` write the
noun in the number it asks for. A constant of the source, named in capitals, is not 1,
nor is a number of the budget.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.sources import nodes, parse

NOUNS = (
    "answers beams blocks branches candidates cells characters classes columns documents edits epochs examples "
    "experts files heads images keys layers lessons letters lines pairs pictures pieces places points positions "
    "prompts queries questions rows runs samples seconds sentences sequences steps stories tensors texts tokens values "
    "weights windows words"
)
ADJECTIVES = "added different equal given held-out hidden merged more new other possible query special"
PLURAL = re.compile(rf"[ \u00a0](?:(?:{'|'.join(ADJECTIVES.split())}) )?({'|'.join(NOUNS.split())})\b(?!/)")
# What is always more than one, or no count, by the reason: a file, what is counted and the noun.
ALLOWED = {
    "a limit, or what is over one": """
        assets/views/attention/points.js: seconds seconds
        assets/views/share/link.js: written(query.length) characters
        assets/views/share/share.js: read.length.toLocaleString("en") characters
        engine/analysis/averages.py: fewest texts
        engine/analysis/flow.py: took seconds
        engine/analysis/flow.py: weights weights
        engine/analysis/flow.py: keys keys
        engine/analysis/weights/projection.py: fewest rows
        engine/course/batch.py: most_rows rows
        engine/conversations/render.py: most characters
        engine/data/kinds/hub.py: len(found) rows
        engine/inputs/readers.py: limit tokens
        engine/tokenizers/pipeline_limits.py: len(steps) steps
        engine/tokenizers/pipeline_limits.py: len(added) tokens
        engine/tokenizers/pipeline_limits.py: min(longest, 10 ** 15) characters
        engine/tokenizers/pipeline_limits.py: most letters
        engine/tokenizers/spm.py: len(pieces) pieces
        pages/controls/learn/cross_nearest.py: most tokens
        pages/controls/learn/fields.py: most characters
        pages/controls/learn/fields.py: most tokens
        pages/controls/share/class_link.py: most characters
        pages/controls/share/export.py: rows rows
        pages/controls/train/policies.py: most tokens
        pages/controls/train/user_data.py: len(text) characters
        pages/controls/what_if/experiment_link.py: len(value) edits
        pages/learn/lessons/adapting/lesson.py: most tokens
        pages/learn/lessons/batch/lesson.py: most tokens
        pages/learn/lessons/batch/lesson.py: rows rows
        pages/learn/lessons/bits/lesson.py: count weights
        pages/learn/lessons/bits/lesson.py: size weights
        pages/learn/lessons/block/lesson.py: count tokens
        pages/learn/lessons/cause/lesson.py: count texts
        pages/learn/lessons/cause/lesson.py: count tokens
        pages/learn/lessons/cause/lesson.py: most tokens
        pages/learn/lessons/conversation/lesson.py: every tokens
        pages/learn/lessons/encoder_decoder/lesson.py: most tokens
        pages/learn/lessons/family/lesson.py: most answers
        pages/learn/lessons/family/lesson.py: most tokens
        pages/learn/lessons/fill_gap/lesson.py: most characters
        pages/learn/lessons/fill_gap/lesson.py: most words
        pages/learn/lessons/find_circuit/lesson.py: most tokens
        pages/learn/lessons/price/lesson.py: crossing tokens
        pages/learn/lessons/price/lesson.py: layers layers
        pages/learn/lessons/price/lesson.py: length tokens
        pages/learn/lessons/price/lesson.py: n tokens
        pages/learn/lessons/price/lesson.py: tokens tokens
        pages/learn/lessons/how_much/lesson.py: best tokens
        pages/learn/lessons/how_much/lesson.py: many tokens
        pages/learn/lessons/how_much/lesson.py: tokens tokens
        pages/learn/lessons/how_much/lesson.py: weights weights
        pages/learn/lessons/in_prompt/lesson.py: most characters
        pages/learn/lessons/in_prompt/lesson.py: most rows""",
    "the context or the vocabulary of a model, which a sentence of one token would not be about": """
        engine/analysis/sizes/report.py: config.context tokens
        engine/checkpoints/llama2c.py: count tokens
        engine/checkpoints/load.py: tokenizer.vocab_size tokens
        engine/generation/contrastive.py: context tokens
        engine/generation/few_shot.py: checkpoint.config.context tokens
        engine/generation/stopping.py: self.count tokens
        engine/model/config_check.py: config.vocab_size tokens
        engine/tokenizers/fast.py: len(ids) words
        engine/tokenizers/files.py: len(ids) lines
        engine/training/policy/rollouts.py: model.config.context tokens
        engine/training/recipe/recipe.py: self.model.context tokens
        pages/controls/learn/cross_nearest.py: context tokens
        pages/learn/lessons/encoder_decoder/lesson.py: count tokens
        pages/learn/lessons/loss/lesson.py: count words
        pages/learn/lessons/loss/lesson.py: vocabulary tokens
        pages/learn/lessons/price/lesson.py: context tokens
        pages/learn/lessons/tokens/lesson.py: size pieces
        pages/learn/lessons/vector_to_word/lesson.py: count words
        views/checkpoint/checkpoint.py: config.outputs tokens
        views/checkpoint/checkpoint.py: tokenizer.vocab_size tokens
        views/generate/availability.py: config.context tokens
        views/generate/availability.py: scaling.trained tokens""",
    "more than one by the condition before it": """
        assets/views/generate/cache.js: queries heads
        assets/views/walkthrough/flow.js: layers layers
        assets/views/what_if/effects.js: layers blocks
        engine/model/layers/cache.py: end tokens
        assets/views/walkthrough/flow.js: layers / distinct layers
        engine/analysis/sinks.py: column.heads heads
        engine/analysis/sinks.py: column.queries queries
        engine/checkpoints/assemble.py: len(unexpected) tensors
        engine/checkpoints/sizes.py: queries queries
        engine/course/heads.py: heads heads
        engine/model/config_check.py: heads heads
        pages/controls/train/adapt_plan.py: n blocks
        pages/learn/lessons/family/lesson.py: heads heads
        pages/learn/lessons/long_sequences/lesson.py: count keys
        pages/learn/lessons/loss/lesson.py: tokens tokens""",
    "a constant, or a choice of several, of the course": """
        pages/controls/learn/course.py: count lessons
        pages/learn/lessons/adapting/lesson.py: steps steps
        pages/learn/lessons/block/lesson.py: count rows
        pages/learn/lessons/block/lesson.py: total weights
        pages/learn/lessons/experts/lesson.py: count experts
        pages/learn/lessons/experts/lesson.py: experts experts
        pages/learn/lessons/in_prompt/lesson.py: count weights
        pages/learn/lessons/in_prompt/lesson.py: known steps
        pages/learn/lessons/in_prompt/lesson.py: steps steps
        pages/learn/lessons/languages/lesson.py: characters characters
        pages/learn/lessons/languages/lesson.py: others characters
        pages/learn/lessons/languages/lesson.py: tokens tokens
        pages/learn/lessons/long_sequences/lesson.py: count pieces
        pages/learn/lessons/long_sequences/lesson.py: count tokens
        pages/learn/lessons/long_sequences/lesson.py: layers layers
        pages/learn/lessons/long_sequences/lesson.py: long tokens
        pages/learn/lessons/long_sequences/lesson.py: n tokens
        pages/learn/lessons/long_sequences/lesson.py: pieces cells
        pages/learn/lessons/masks_and_heads/lesson.py: heads heads
        pages/learn/lessons/one_step/lesson.py: count weights
        pages/learn/lessons/one_step/lesson.py: steps steps
        pages/learn/lessons/picture/lesson.py: count words
        pages/learn/lessons/policy/lesson.py: steps steps
        pages/learn/lessons/positions/lesson.py: count rows
        pages/learn/lessons/positions/lesson.py: heads heads
        pages/learn/lessons/residual/lesson.py: count blocks
        pages/learn/lessons/residual/lesson.py: layers blocks
        pages/learn/lessons/residual/lesson.py: steps steps
        pages/learn/lessons/scaling/lesson.py: keys keys""",
    "a product, a verb, a name or a key of a file": """
        assets/views/attention/tiles.js: wide weights
        assets/views/generate/step.js: whole branches
        assets/views/train/two_steps.js: cols cells
        engine/attention_variants/material.py: kind positions
        engine/checkpoints/hub_transfer.py: host() answers
        engine/training/sources/windows.py: count tokens
        pages/learn/lessons/long_sequences/lesson.py: short weights""",
}
FIELD = re.compile(r"\{(\w*)(?:[:!][^{}]*)?\}")
COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)


def find_python(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Lines, what is counted and the noun, of f-strings and of texts whose fields are filled in later."""
    plurals = {
        id(part)
        for node in nodes(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"_n", "translate_count"}
        for part in node.args
    }
    fixed = {id(part) for node in nodes(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes(tree):
        if isinstance(node, ast.JoinedStr):
            for one, after in zip(node.values, node.values[1:], strict=False):
                if isinstance(one, ast.FormattedValue) and isinstance(after, ast.Constant):
                    noun = PLURAL.match(str(after.value))
                    if noun and not is_constant(one.value):
                        yield node.lineno, ast.unparse(one.value), noun[1]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (plurals | fixed):
            for one in FIELD.finditer(node.value):
                if noun := PLURAL.match(node.value, one.end()):
                    yield node.lineno, one[1], noun[1]


def is_constant(node: ast.expr) -> bool:
    """Whether a value is a constant, or reckoned of one."""
    names = [one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in ast.walk(node)]
    return any(name.lstrip("_").isupper() or name == "budget" for name in names)


def find_script(text: str) -> Iterator[tuple[int, str, str]]:
    """The same of template literals."""
    text = COMMENT.sub("", text)
    for noun in re.finditer(r"\}(?=" + PLURAL.pattern + ")", text):
        depth, at = 1, noun.start()
        while depth and at:
            at -= 1
            depth += {"}": 1, "{": -1}.get(text[at], 0)
        counted = text[at + 1 : noun.start()]
        if text[at - 1] == "$" and not re.search(r"\b[A-Z][A-Z_]+\b", counted):
            yield text.count("\n", 0, at) + 1, counted, noun[1]


def find_uncounted(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Complaints about a file, each with the entry that would allow it."""
    found = find_script(text) if path.endswith(".js") else find_python(parse(text))
    for line, counted, noun in found:
        yield f"{path}:{line} writes “{counted} {noun}”, which can be 1", f"{path}: {counted} {noun}"
