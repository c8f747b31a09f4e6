"""What of the page Generate can be taken away, tab by tab: tables by their title, and lines of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from views.core.table_files import Table
from views.generate.beam_tables import ahead_of_search, node_table, path_table, search_lines
from views.generate.codegen import written_lines
from views.generate.kv_cache_tables import ahead_of_cache, cache_lines, cost_table, norm_table
from views.generate.session import Query, Writing
from views.generate.surprise import ahead_of_surprise, surprise_lines, surprise_table
from views.generate.write_tables import ahead_of_writing, step_table, token_table

TABLES: Mapping[str, Callable[[Writing, Query], Table]] = {
    "Write: tokens": token_table,
    "Write: one step": step_table,
    "Beam: hypotheses": node_table,
    "Beam: best and greedy": path_table,
    "Cache: keys and values": norm_table,
    "Cache: costs by length": cost_table,
    "Surprise: tokens": surprise_table,
}
LINES: Mapping[str, Callable[[Writing, Query], str]] = {
    "write": written_lines,
    "beam": search_lines,
    "cache": cache_lines,
    "surprise": surprise_lines,
}
AHEAD: Sequence[Callable[[Writing, Query], Iterator[dict[str, Any]]]] = (
    ahead_of_writing,
    ahead_of_search,
    ahead_of_cache,
    ahead_of_surprise,
)
