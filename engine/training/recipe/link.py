"""A recipe as a few hundred letters for a link, and back. What comes back is from anybody, and is checked as such."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import fields

from engine.data.published import PREFIX
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import parse_recipe, write_recipe

LONGEST, LARGEST = 8_192, 65_536  # letters of a link, bytes of a recipe
FILES = ("path", "held_out_path", "paths", "file", "files", "folder", "hub", "url")  # what only lies on one machine
WORDS = b"""about = ""
seed = 0
[data.addition]
[data.brackets]
[data.dates]
[data.digits]
[data.infill]
[data.modular]
[data.repeats]
[data.rewriting]
rule = "reverse"
[data.sentence_pairs]
[data.stories]
documents = 60000
held_out = 1000
[data.translation]
[data.tokenizer]
kind = "char"
kind = "word"
kind = "bpe"
vocab_size = 1024
sample = 5000
[model]
context = 128
d_model = 128
layers = 2
residual = true
tied = true
dropout = 0.0
sublayers = "sequential"
[model.attention]
heads = 4
bias = true
mask = "causal"
[model.mlp]
d_mlp = 512
activation = "gelu_tanh"
gated = false
[model.norm]
kind = "layer"
place = "before"
eps = 1e-05
final = true
[model.positions]
kind = "learned"
kind = "rotary"
[model.embedding]
[model.encoder]
[model.head]
kind = "language"
kind = "sequence"
[objective]
kind = "next"
kind = "completion"
kind = "classification"
kind = "sequence_to_sequence"
smoothing = 0.0
[optimiser]
kind = "adamw"
lr = 0.001
betas = [0.9, 0.95]
eps = 1e-08
weight_decay = 0.1
clip = 1.0
[schedule]
steps = 2000
warmup = 100
floor = 0.1
shape = "cosine"
[batch]
size = 32
context = 64
accumulate = 1
[log]
every = 10
held_out_every = 250
held_out_batches = 8
snapshots = 40
latest_every = 250
[machine]
device = "auto"
precision = "auto"
compile = "auto"
threads = 0
"""  # what recipes are made of, so that a link need not say it
LATER = b"""[data.rows]
text = ""
label = ""
source = ""
target = ""
tokens = ""
tags = ""
pair = ""
question = ""
context = ""
answer = ""
start = ""
messages = ""
held_out = 0.05
joined = 0.25
held_out_path = ""
header = false
special_tokens = []
base = ""
residual_scale = 1.0
out_bias = true
mask = "full"
sinks = false
slope = 1.0
shift = 0.0
theta = 10000.0
buckets = 32
farthest = 128
axes = 1
counted = "all"
padding = 0
learned = "all"
scale = 1.0
segments = 0
norm = false
mapped = "all"
classes = 0
read = "first"
activation = "gelu"
dense = false
pooler = false
pooler_activation = "tanh"
next_sentence = false
averaged = false
narrow = false
language = false
start = 0
[model.encoder.attention]
[model.encoder.mlp]
[model.mlp.experts]
long_gaps = 0.4
hidden = 0.3
language_weight = 0.0
load_weight = 0.01
z_weight = 0.0
prompts = false
kind = "muon"
momentum = 0.95
nesterov = true
share = 1.0
shard = false
"""
# By the letter that a link begins with; never changed, another one is added.
WORDS_OF = {"1": WORDS, "2": LATER + WORDS}
VERSION = "2"


def pack_recipe(recipe: Recipe) -> str:
    """Letters, digits, - and _. Raises ValueError for a recipe that learns from a file, which no link can carry."""
    without_files(recipe)
    text = "\n".join(line for line in write_recipe(recipe).split("\n") if line)
    made = zlib.compressobj(9, wbits=-15, zdict=WORDS_OF[VERSION])
    found = VERSION + urlsafe_b64encode(made.compress(text.encode()) + made.flush()).decode().rstrip("=")
    if len(found) > LONGEST or len(text.encode()) > LARGEST:
        raise ValueError(f"a recipe in a link must be at most {LONGEST:,} letters, got {len(found):,}; shorten it.")
    return found


def unpack_recipe(link: str) -> Recipe:
    """Reads what `pack_recipe` made. Raises ValueError for all else: what is cut off, far too large, or no recipe."""
    if link[:1] not in WORDS_OF or len(link) > LONGEST or not link.isascii():
        raise ValueError(
            f"a recipe in a link must begin with {' or '.join(WORDS_OF)} and have at most {LONGEST:,} letters, got "
            f"{link[:20]!r} of {len(link):,}; copy the whole link again."
        )
    letters, reader = link[1:], zlib.decompressobj(wbits=-15, zdict=WORDS_OF[link[0]])
    try:
        data = urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
        text = reader.decompress(data, LARGEST).decode()
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the recipe in this link does not unpack ({error}); copy the whole link again.") from None
    if not reader.eof:
        raise ValueError(f"the recipe in this link must be whole, and at most {LARGEST:,} bytes; copy it again.")
    try:
        recipe = parse_recipe(text, "the recipe in this link")
    except RecursionError:
        raise ValueError("the recipe in this link is nested too deeply to be one; copy the whole link again.") from None
    without_files(recipe)
    return recipe


def is_place(file: object) -> bool:
    """Tells whether an option names a file of one machine: one of published texts is the same on each."""
    return bool(file) and not str(file).startswith(PREFIX)


def without_files(recipe: Recipe) -> None:
    """A link is for others, whose files are other ones, and may come from others, who are not to read ours."""
    data = recipe.data.table
    named = [one.name for one in fields(data) if one.name in FILES and is_place(getattr(data, one.name))]
    if named:
        raise ValueError(
            f"data.{recipe.data.kind}.{named[0]} is a place on one machine, which a link cannot carry; send the recipe "
            "and the data as files."
        )
