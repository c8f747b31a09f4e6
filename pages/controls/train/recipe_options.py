"""What the options of a recipe are called on the page about training, what they mean, and when there is one at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.training import Recipe
from engine.training.launch.machine import Abilities, plan
from engine.training.objectives import find_objective
from engine.training.recipe.data_recipe import OWN, PAIRS
from engine.training.recipe.recipe import Machine
from server.settings import GIVEN
from views.core.markdown import Markdown, escape_markdown

MIXED = (  # tables of data that files of published texts may be mixed with, which a recipe's file names
    "everyday", "sentence_pairs", "infill", "spans", "text_to_text", "bilingual", "instructions",
)  # fmt: skip
DECIDED = {  # by the data and the task, or said elsewhere on the page
    "model.vocab_size", "model.context", "model.infill", "model.encoder.start", "model.head.kind", "model.head.classes",
    "model.head.next_sentence", "model.head.averaged", "model.head.narrow", "model.head.outputs", "model.head.language",
    "model.embedding.patches.image", "model.embedding.patches.channels", "preference.beta", "preference.reward",
    "preference.watch", "preference.answers", "preference.answer_tokens",
    *(f"data.{name}.{option}" for name in MIXED for option in ("tales", "sentences", "times")),
    "machine.shard",  # the page starts one process
    *(() if GIVEN.ray_address else ("machine.share",)),
}  # fmt: skip
BROUGHT = ("text", "rows", "hub", "preferences")  # tables of data of which the page asks in its own way,
BUT = ("held_out", "ended")  # but for these

NAMES = {
    "d_model": "d_model", "d_head": "d_head", "d_mlp": "d_mlp", "lr": "learning rate", "tied": "tied embeddings",
    "kv_heads": "key-value heads", "out_bias": "output bias", "qk_norm": "norm of q and k", "mlp": "MLP",
    "warmup": "warm-up", "vocab_size": "vocabulary size", "eps": "epsilon", "theta": "theta", "kind": "kind",
    "cross": "cross-attention of its own kind", "latest_every": "saved every", "accumulate": "in parts",
}  # fmt: skip
SAID = {  # options as they are called in the recipe
    "sequence_to_sequence": "sequence to sequence", "span": "answers in a text", "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU", "gelu": "GELU", "relu": "ReLU", "silu": "SiLU", "alibi": "ALiBi", "adamw": "AdamW",
    "sgd": "SGD", "muon": "Muon", "rms": "RMS", "char": "characters", "word": "words", "byte": "bytes",
    "bpe": "BPE on bytes", "bpe-characters": "BPE on characters", "wordpiece": "WordPiece", "unigram": "Unigram",
    "yarn": "YaRN", "longrope": "LongRoPE", "llama3": "Llama 3", "parallel_one_norm": "parallel, one norm",
    "cuda": "CUDA", "cpu": "CPU",
}  # fmt: skip
THREADS = (
    "On a CPU. 0 gives each of the {most} trainings that may run at a time as many, whether or not others run: "
    "{share} on this machine. More can serve a wide model with a long context, slow down a little one, and make the "
    "pages wait. Weights are the same bit for bit with the same number only."
).format(most=GIVEN.max_trainings, share=plan(Machine("cpu"), Abilities.of_this_machine(), GIVEN.max_trainings).threads)

HELP = {
    "data.documents": "Examples to learn from, drawn from the seed.",
    "data.held_out": "What the model is measured on and never learns from: a number of examples, or a share.",
    "data.ended": "Each answer is complete and followed by the end token.",
    "data.made_up": "The share of names and nouns that are words nobody knows, which the model learns to copy.",
    "data.moved": "The share of pictures that is moved, turned, resized and drawn with another stroke, anew each time.",
    "data.stroke": "How much thicker or thinner strokes become at most; 1 is a pixel to each side.",
    "data.inverted": "The share of pictures that is shown dark on light.",
    "data.tokenizer.kind": "What a token is: a character, a word, a byte, or a learned piece of a word.",
    "data.tokenizer.vocab_size": "Different tokens, the special ones included. Empty: each kind’s own.",
    "data.tokenizer.sample": "The tokenizer learns from that many of the documents.",
    "data.tokenizer.special_tokens": "Tokens of your own beside those that the task needs, with commas between them.",
    "model.d_model": "Components of each token's vector: the width of the residual stream.",
    "model.layers": "Blocks, one after the other.",
    "model.residual": "Off takes out the skip connections: each sublayer replaces the stream instead of adding to it.",
    "model.tied": "The table that embeds the tokens is also the one that predicts them.",
    "model.dropout": "The share of numbers that is set to 0 at random in each training step; 0 leaves all.",
    "model.sublayers": "Attention and MLP one after the other, or both from the same stream, side by side.",
    "model.distinct": "How many different blocks there are; the layers share them. Empty: each layer has its own.",
    "attention.heads": "Attention patterns side by side; each has d_model / heads components, if d_head is empty.",
    "attention.kv_heads": "Fewer than heads: several heads share keys and values (grouped queries).",
    "attention.d_head": "Components of a head’s queries, keys and values. Empty: d_model / heads.",
    "attention.mask": "Causal: a token sees those before it and itself. Full: all. Prefix: all before a gap.",
    "attention.window": "How many keys back a query sees, itself included. Empty: all.",
    "attention.windowed": "Layers, counted from 0, that have the window. Empty: all of them.",
    "attention.nearest": "Only that many of the highest scores of a row are kept. Empty: all.",
    "attention.scale": "What scores are multiplied by. Empty is 1 / sqrt(d_head); 1 leaves them unscaled.",
    "attention.softcap": "Scores become c tanh(score / c), never beyond c. Empty: as they are.",
    "attention.qk_norm": "Normalises queries and keys before they are multiplied, each head by itself or all together.",
    "mlp.d_mlp": "Neurons between the two maps of an MLP; 4 times d_model is usual.",
    "mlp.activation": "What each neuron does to its input.",
    "mlp.gated": "The activation is multiplied with a second map of the input (SwiGLU with SiLU).",
    "positions.kind": "How the model knows a token's position. None: only from the causal mask.",
    "positions.theta": "The slowest pair turns once in about 2 pi theta positions.",
    "positions.turned": "Components of a head that turn. Empty: all.",
    "positions.buckets": "Distances that have a bias of their own, or share one where they are far.",
    "norm.kind": "Layer norm subtracts the mean and divides by the spread; RMS norm only divides. Batch norm has both "
    "of each feature, over the batch: in training a token then sees those after it, and other texts.",
    "norm.place": "Before each sublayer (GPT-2), after it (the first Transformer), or both.",
    "norm.final": "One more norm after the last block. Empty: only in pre-norm models.",
    "embedding.scale": "Token vectors are multiplied by it; the first Transformer takes sqrt(d_model).",
    "embedding.width": "Token vectors narrower or wider than the stream, mapped to it. Empty: d_model.",
    "patches.size": "Pixels of a patch’s side; the context must be a position for each patch, and [CLS].",
    "head.read": "Which position the classes are read from: the first, the last, or the mean of all.",
    "objective.kind": "What the model is asked; only what fits the data is offered.",
    "objective.smoothing": "The share of each target that is spread over all other answers; 0 is none.",
    "objective.prompts": "The loss is that of the prompt’s tokens too, not of the answer’s alone.",
    "objective.long_gaps": "The share of windows with one gap of half the words or more (GLM, section 2.1.1).",
    "objective.hidden": "The share of the words that the short gaps of the other windows hold, about.",
    "preference.temperature": "Of the answers that the policy draws.",
    "preference.updates": "How many times the answers of a step are learned from.",
    "preference.clip": "How far the probability of a token may move within a step and still count.",
    "preference.most_kl": "Nats from the base beyond which a training stops.",
    "preference.gamma": "What a reward counts one token earlier.",
    "preference.lam": "Advantages by the values alone (0) to the rewards alone (1).",
    "preference.value_weight": "What the loss of the values counts.",
    "preference.value_clip": "How far a value may move within a step and still count.",
    "preference.target_kl": "The KL that β goes after; 0 leaves β as it is.",
    "preference.horizon": "Answers over which β goes after its target.",
    "preference.by_deviation": "The rewards of a group are divided by their deviation.",
    "preference.weighted_kl": "The gradient of the KL is that of KL(policy || base).",
    "preference.desirable_weight": "What a good answer counts.",
    "preference.undesirable_weight": "What a bad answer counts.",
    "optimiser.kind": "AdamW adapts each weight’s step, SGD does not; Muon makes matrices’ updates orthogonal.",
    "optimiser.lr": "The highest learning rate, reached at the end of the warm-up. It can be changed while training.",
    "optimiser.betas": "How slowly AdamW forgets gradients, and their squares.",
    "optimiser.weight_decay": "Pulls weights towards 0 in every step.",
    "optimiser.clip": "Bounds the norm of the whole gradient; 0 leaves it as it is.",
    "schedule.steps": "Updates of the weights.",
    "schedule.warmup": "Steps in which the learning rate rises from 0.",
    "schedule.floor": "The last learning rate, as a share of the highest.",
    "batch.size": "Rows in a step.",
    "batch.context": "Tokens in a row at most.",
    "batch.accumulate": "The rows go through the model in so many parts: the same gradient in less memory.",
    "log.every": "Steps between two points of the curves.",
    "log.held_out_every": "Steps between two measurements on held-out data.",
    "log.held_out_batches": "Batches that one measurement reads.",
    "log.snapshots": "Steps whose weights are kept, close together at first, for the time slider.",
    "log.latest_every": "Steps between two savings from which a run that was killed goes on.",
    "machine.precision": "Of the products in the forward and backward pass; weights are always float32.",
    "machine.threads": THREADS,
    "machine.share": "Of a GPU, or on a CPU of a core for each thread, that it asks the cluster for.",
}  # by the end of the dotted key, of which the longest counts

Said = Mapping[str, Any]  # what the controls of the same table say, as far as they are drawn


def cuts_gaps(said: Said, recipe: Recipe) -> bool:
    """Tells whether gaps are cut into a running text; passages that come with gaps have the shares of theirs in the
    data."""
    return said["kind"] == "infill" and recipe.data.infill is None


WHEN: dict[str, Callable[[Said, Recipe], bool]] = {  # by the end of the dotted key: what has no meaning is not offered
    "data.rows.held_out": lambda _, recipe: not recipe.data.table.held_out_path,
    "positions.theta": lambda said, _: said["kind"] == "rotary",
    "positions.turned": lambda said, _: said["kind"] == "rotary",
    "positions.scaling": lambda said, _: said["kind"] == "rotary",
    "positions.pairs": lambda said, _: said["kind"] in ("rotary", "sinusoidal"),
    "positions.buckets": lambda said, _: said["kind"] == "relative",
    "positions.farthest": lambda said, _: said["kind"] == "relative",
    "positions.axes": lambda _, recipe: recipe.model.infill is not None,
    "attention.block": lambda _, recipe: recipe.model.embedding.patches is not None,
    "cross.block": lambda *_: False,
    "attention.windowed": lambda said, _: said["window"] is not None,
    "cross.windowed": lambda said, _: said["window"] is not None,
    "norm.place": lambda said, _: said["kind"] != "none",
    "norm.eps": lambda said, _: said["kind"] != "none",
    "norm.final": lambda said, _: said["kind"] != "none",
    "model.cross": lambda _, recipe: recipe.model.encoder is not None,
    "model.encoder": lambda _, recipe: recipe.model.encoder is not None or recipe.data.kind in (*PAIRS, *OWN),
    "model.distinct": lambda _, recipe: recipe.model.encoder is None,
    "model.sublayers": lambda _, recipe: recipe.model.encoder is None,
    "embedding.segments": lambda _, recipe: recipe.model.embedding.segments > 0,
    "embedding.width": lambda _, recipe: recipe.model.encoder is None and recipe.model.embedding.patches is None,
    "embedding.mapped": lambda said, _: said["width"] is not None,
    "embedding.patches": lambda _, recipe: recipe.model.embedding.patches is not None,
    "patches.distilled": lambda _, recipe: recipe.model.embedding.patches is not None,
    "head.read": lambda _, recipe: recipe.model.head.kind == "sequence",
    "head.softcap": lambda _, recipe: recipe.model.head.kind == "language",
    "head.scale": lambda _, recipe: recipe.model.head.kind == "language",
    "head.dense": lambda _, recipe: recipe.model.head.kind == "token",
    "head.activation": lambda _, recipe: recipe.model.head.kind in ("masked", "token"),
    "head.pooler": lambda _, recipe: recipe.model.head.kind == "sequence",
    "head.pooler_activation": lambda said, _: bool(said["pooler"]),
    "objective.long_gaps": cuts_gaps,
    "objective.hidden": cuts_gaps,
    "objective.language_weight": lambda _, recipe: recipe.model.head.language,
    "objective.prompts": lambda _, recipe: find_objective(recipe.objective.kind).joins,
    "optimiser.betas": lambda said, _: said["kind"] != "sgd",
    "optimiser.eps": lambda said, _: said["kind"] != "sgd",
    "optimiser.momentum": lambda said, _: said["kind"] != "adamw",
    "optimiser.nesterov": lambda said, _: said["kind"] != "adamw",
    "schedule.floor": lambda said, _: said["shape"] != "constant",
}


def title(name: str) -> Markdown:
    return escape_markdown(NAMES.get(name, name.replace("_", " ")))


def format_value(value: Any) -> str:
    """Formats a value of a choice."""
    return "none" if value == "none" else SAID.get(str(value), str(value).replace("_", " "))


def value_at(path: str, of: Mapping[str, Any]) -> Any:
    """Entry of a table of keys' ends for `path`, None where nothing; of the data, also without the task's name."""
    parts = path.split(".")
    ends = [".".join(parts[at:]) for at in range(len(parts) - 1)]
    if parts[0] == "data" and parts[1] != "tokenizer":
        ends.append(f"data.{parts[-1]}")
    return next((of[end] for end in ends if end in of), None)


def is_offered(path: str, said: Said, recipe: Recipe) -> bool:
    """Tells whether there is such a control, given the others of its table."""
    section, name = path.split(".")[:2]
    brought = section == "data" and name in BROUGHT and path.rpartition(".")[2] not in BUT
    if path in DECIDED or brought:
        return False
    if section == "preference":
        return name in find_objective(recipe.objective.kind).settings
    when = value_at(path, WHEN)
    return when is None or bool(when(said, recipe))
