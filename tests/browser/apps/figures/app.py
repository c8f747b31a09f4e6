"""One of every picture and question that pages/controls offers, of a run of a shipped model."""

import streamlit as st

from engine import load, run
from engine.analysis.heads import bits
from engine.model.layers.softmax import softmax
from pages.controls.figures import bars, heads, matrix, strip, tokens
from pages.controls.learn.predict import choose, estimate, point, show_code

st.set_page_config(layout="wide")


@st.cache_resource
def computed():
    checkpoint = load("stories")
    encoding = checkpoint.tokenizer.encode("Max gave the red ball to Anna.")
    return checkpoint, encoding, run(checkpoint.model, encoding)


checkpoint, encoding, trace = computed()
pieces = list(encoding.pieces)
patterns = trace.stack("attn.pattern")[:, 0]  # layer head query key
scores = trace["blocks.0.attn.masked_scores"][0]
left, right = st.columns(2)
with left:
    layer, head = heads(patterns, key="heads") or (0, 0)
    st.write(f"block {layer + 1}, head {head + 1}")
    cell = matrix(
        patterns[0, head],
        rows=pieces,
        columns=pieces,
        terms={"score": scores[head]},
        key="place picture",
        label=f"weights of head {head + 1}",
        lines=2,
    )
    st.write(f"cell {cell}")
with right:
    row = tokens(pieces, patterns[0, head, -1], key="tokens")
    st.write(f"token {row}")
    strip(trace["blocks.0.attn.q"][0, :, head], rows=pieces, key="strip", role="query")
    top = trace["logits"][0, -1].softmax(-1).topk(5)
    bars(top.values, [checkpoint.tokenizer.pieces[id] for id in top.indices.tolist()], key="bars")
    show_code(softmax, key="softmax code", scores=scores[head, :2, :2])
answer = int(patterns[0, head, -1].argmax())
if choose("Which token does the last one attend to most?", pieces, answer, key="most"):
    st.write("told")
entropy = float(bits(patterns[0, head])[-1])
if estimate("How many bits is the entropy of that row?", entropy, 0.2, key="bits", unit="bits"):
    st.write("told")
if point("Click the weight of the last token on the first.", (len(pieces),) * 2, [(len(pieces) - 1, 0)], key="place"):
    st.write("told")
