"""The lines of Python that reproduce what a tab of the page about attention shows in place of a head's pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.analysis.points import vectors
from views.attention.answers import FEWEST, LONGEST, PROMOTED, TEXTS, Looked, Query, check, distinct, where
from views.attention.tables import attention_table, drawn, known_circuits, lanes_of, shared, shift, stages, stem
from views.core.codegen import Fields, Imports, import_lines, quoted, running
from views.core.matrix_files import Matrix


@dataclass(frozen=True)
class At:
    """The run, what the view asks of it (whose numbers are checked), and the cell that is looked at."""

    looked: Looked
    query: Query
    row: int
    col: int

    @property
    def where(self) -> str:
        """The last arguments of the engine's functions; none where they are the usual ones."""
        crosses, side = where(self.query)
        return "" if not side and not crosses else f", {quoted(side)}, {crosses}"

    @property
    def head(self) -> str:
        return f"{self.query['layer']}, {self.query['head']}"


def attention_lines(looked: Looked, name: str, given: Fields, query: Query, row: int, col: int) -> str:
    """They bind `values` to the numbers of `attention_table` and print the one that is looked at, where there is one.

    Raises ValueError as that does.
    """
    found = attention_table(looked, name, query)  # as it may be refused
    check(looked, {**query, "pos": row, "key": col}, ("side", "pos", "key"))
    imports, opening = running(name, looked.checkpoint, given, looked.trace)
    lines = list(LINES[query["ask"]](At(looked, query, row, col), imports))
    if isinstance(found, Matrix) and found.values.ndim == 2 and row < len(found.values) and col < found.values.shape[1]:
        lines.append(f"print(values[{row}, {col}].item())")
    elif isinstance(found, Matrix) and found.values.ndim == 1:
        lines.append(f"print(values[{col}].item())")
    return "\n".join([*import_lines(imports), "", *opening, "", *lines]) + "\n"


def needed(imports: Imports, module: str, *names: str) -> None:
    imports.setdefault(module, set()).update(names)


def average(at: At, imports: Imports) -> Iterator[str]:
    crosses, side = where(at.query)
    over = at.query.get("over")
    if over == "sentences":
        needed(imports, "engine.analysis.averages", "over_texts")
        needed(imports, "engine.inputs.samples", "samples")
        yield "traces = ("
        yield f'    run(checkpoint.model, one.read, ["*{"cross_attn" if crosses else "attn"}.pattern"], trace.edits,'
        yield f"        target=one.target) for one in samples(checkpoint, {TEXTS}, {LONGEST})"
        yield ")"
        yield f"values = over_texts(traces, {FEWEST}{at.where}).pattern[{at.head}]  # query key"
        return
    needed(imports, "engine.analysis.averages", "over_heads")
    layers = [at.query["layer"]] if over == "heads" else None
    heads = [at.query["head"]] if over == "layers" and at.query.get("alone") else None
    yield f"values = over_heads(trace, {layers}, {heads}{at.where})  # query key"


def rollout(at: At, imports: Imports) -> Iterator[str]:
    crosses, side = where(at.query)
    first, end, head = at.query["first"], at.query["last"] + 1, at.query.get("head")
    heads = None if head is None else {layer: [head] for layer in range(first, end)}
    needed(imports, "engine.analysis.rollout", "crossed" if crosses else "rollout")
    if crosses:
        yield f"values = crossed(trace, {first}, {end}, {heads}, {heads}).source[-1]  # query key"
    else:
        yield f"values = rollout(trace, {quoted(side)}, {first}, {end}, {heads})[-1]  # query key"


def flow(at: At, imports: Imports) -> Iterator[str]:
    crosses, side = where(at.query)
    network = "crossed_network(trace)" if crosses else f"network(trace, {quoted(side)})"
    module = "engine.analysis.flow"
    needed(imports, module, network.partition("(")[0])
    if "pos" in at.query:
        needed(imports, module, "flow")
        yield f"values = flow({network}, {at.query['pos']})  # key"
    else:
        needed(imports, module, "flows")
        yield f'values = flows({network}, float("inf"))  # query key, however long it takes'


def points(at: At, imports: Imports) -> Iterator[str]:
    needed(imports, "engine.analysis.points", "head_points")
    needed(imports, "torch", "cat")
    how = ', how="tsne"' if at.query.get("how") == "tsne" else ""
    yield f"points = head_points(trace, {at.head}{at.where}{how})"
    yield "values = cat([points.queries, points.keys])  # point x,y: of the queries, then of the keys"
    yield f"print(points.queries[{at.row}].tolist(), points.keys[{at.col}].tolist())"


def circuits(at: At, imports: Imports) -> Iterator[str]:
    found = known_circuits(at.looked, at.query)
    needed(imports, "torch", "cat")
    yield f"queries = {distinct(at.looked, at.query)}"
    yield f"keys = {distinct(at.looked, at.query, keys=True)}"
    if "ov" in found:
        needed(imports, "engine.analysis.circuits", "promoted")
        count = min(PROMOTED, at.looked.checkpoint.model.config.outputs)
        yield f"ov = promoted(checkpoint.model, {at.head}, keys, {count}{at.where})  # .tokens, .values: key rank"
        yield "print(ov.tokens.tolist())"
    if "qk" in found:
        needed(imports, "engine.analysis.circuits", "qk")
        yield f"scores = qk(checkpoint.model, {at.head}, queries, keys{at.where})  # query key"
        yield "print(scores.tolist())"
    parts = {"ov": "ov.values.flatten()", "qk": "scores.flatten()"}
    yield f"values = cat([{', '.join(parts[which] for which in found)}])  # as the rows of the file"


def product(at: At, imports: Imports) -> Iterator[str]:
    block, head = stem(at.query), at.query["head"]
    q, k = (vectors(at.looked.trace, block, part)[0] for part in "qk")
    needed(imports, "engine.analysis.points", "vectors")
    yield f'q = vectors(trace, "{block}", "q")[0][{at.query["pos"]}, {head}].float()  # d_head'
    yield f'k = vectors(trace, "{block}", "k")[0][:, {shared(q, k, head)}].float()  # key d_head'
    yield "values = q * k  # key d_head"
    yield f"print(values[{at.query['key']}].sum().item())"


def steps(at: At, imports: Imports) -> Iterator[str]:
    crosses, side = where(at.query)
    block, layer, head = stem(at.query), at.query["layer"], at.query["head"]
    needed(imports, "engine.analysis.averages", "by_norm")
    needed(imports, "engine.analysis.weights.circuit", "attention_of")
    needed(imports, "torch", "stack")
    model = f"checkpoint.model, {layer}, {quoted(side)}, {crosses}"
    yield f'raw = trace["{block}.scores"][0, {head}] / attention_of({model}).scale'
    found = stages(at.looked, at.query).items()
    held = [f'trace["{block}.{part}"][{", ".join(map(str, place))}]' for part, place in found]
    yield f"stages = [{', '.join(held)}]"
    yield f"moved = by_norm(checkpoint.model, trace, {layer}{at.where})[{head}]"
    yield "values = stack([raw, *stages, moved], -1)  # query key stage"
    yield f"print(values[{at.row}, {at.col}].tolist())"


def lines(at: At, imports: Imports) -> Iterator[str]:
    shown = drawn(at.looked, at.query)
    needed(imports, "engine.analysis.edges", "edges")
    one = {"query": shown.pos, "key": shown.key}
    more = "".join(f", {name}={place}" for name, place in one.items() if place is not None)
    yield f"found = edges(trace, {shown.heads}, {shown.least}{at.where}{more})  # of each (layer, head)"
    yield "values = found.weight  # edge; found.layer, .head, .query and .key are its ends"
    yield "print(len(values), values.sum().item())"


def alignment(at: At, imports: Imports) -> Iterator[str]:
    yield f'rows = trace["{stem(at.query)}.pattern"][0, {at.query["head"]}]  # row source'
    late = shift(at.query)
    yield "values = rows[:-1]  # target source: a word stands with the row before it" if late else "values = rows"
    yield "print(values.argmax(-1).tolist())"
    if at.row < len(lanes_of(at.looked, at.query)[0].pieces) - late:
        yield f"print(values[{at.row}, {at.col}].item())"


LINES: dict[str, Callable[[At, Imports], Iterator[str]]] = {
    "average": average,
    "rollout": rollout,
    "flow": flow,
    "points": points,
    "circuits": circuits,
    "product": product,
    "steps": steps,
    "lines": lines,
    "alignment": alignment,
}
