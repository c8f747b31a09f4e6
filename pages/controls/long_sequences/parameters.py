"""What a link can hold of the page Long context."""

from __future__ import annotations

from dataclasses import replace

from engine.attention_variants import shared
from pages.controls.model_input.parameters import MODEL
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Hideable, Text, choice

AUTOMATIC = 1024  # positions up to which is measured without being asked
MORE = (  # the choices that a first look does not need
    choice("window", 32, (8, 16, 32, 64, 128, 256), label="window w", hidden_as="window",
           help="A query sees keys fewer than w positions away."),
    choice("block", 4, (2, 4, 8, 16), label="block b", hidden_as="block",
           help="Pixels of a side of a query block; its memory block has half as many more on every side."),
    choice("subspaces", 32, (8, 16, 32, 64), label="sub-spaces", hidden_as="sub-spaces",
           help="m', the bytes that are kept of a state."),
    choice("codes", 64, (4, 16, 64, 256), label="codes", hidden_as="codes",
           help="k*, codewords of a sub-space, at least 4 states for each."),
    choice("lists", 64, (8, 16, 32, 64, 128, 256), label="lists", hidden_as="lists",
           help="k', lists of states, at least 8 states for each."),
    choice("probes", 8, (1, 2, 4, 8, 16, 32), label="probes", hidden_as="probes",
           help="w', lists that a query visits."),
    choice("rerank", 4, (0, 1, 2, 4, 8), label="re-ranked", hidden_as="re-ranked",
           help="r: the best r·k by the codes are compared again exactly; 0 for none."),
)  # fmt: skip

LONG_CONTEXT = PageState(
    "long_sequences", replace(MODEL, default=shared.FIRST, carried=False),
    Text("long_text", "", READABLE, label="a text of your own", hidden_as="text",
         goes_with=("example of long_text",)),
    Hideable("measuring", hidden_as="measuring"),
    choice("length", AUTOMATIC, shared.LENGTHS, label="length", hidden_as="length",
           help="The longest text to measure. Slow measurements start with a button."),
    choice("k", 16, (4, 8, 16, 32, 64), label="k", hidden_as="k", help="States each query of each head attends to."),
    *MORE,
)  # fmt: skip
