"""The rules of the house, read from the source. Each rule is shown a bad line, to know that it can fail."""

import ast
import fnmatch
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Set
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.markdown_rule import TRUSTED, find_unsafe
from tests.plural_rule import ALLOWED, find_uncounted
from tests.sources import forget, nodes, parse

ROOT = Path(__file__).resolve().parent.parent

# Who may import whom: the first prefix that matches a file names what it may import of this repository.
BELOW = [f"server.{room}" for room in ("settings", "library", "classes", "lti")]  # the server's floor below the pages
LAYERS = [
    ("app.py", ["server", "pages", "views", "engine"]),
    ("asgi.py", ["server.http", "server.settings", "engine.places"]),
    # The server's rooms below the pages,
    ("server/settings.py", ["engine.budget"]),
    ("server/library/", ["server.library", "engine.runtime"]),
    ("server/classes/", ["server.classes", "engine"]),
    ("server/lti/", ["server.lti", "server.classes", "server.settings", "engine.json_text"]),
    ("server/backup.py", ["server.settings", "engine.budget", "engine.training.launch.queue"]),
    # and what is above them.
    ("server/http/warming.py", ["server", "engine.attention_variants", "engine.runtime", "engine.training"]),
    ("server/http/first_load.py", ["server.http", "pages.controls.menu", "views.core"]),
    (
        "server/http/metrics.py",
        ["server", "engine.budget", "engine.runtime", "engine.model.pass_queue", "engine.training"],
    ),
    ("server/http/logs.py", ["server", "engine.runtime"]),
    ("server/http/starting.py", ["server", "engine.training"]),
    ("server/http/page_names.py", ["pages.controls.menu"]),
    ("server/http/lti.py", ["server", "pages.controls.menu"]),
    ("server/http/uploads.py", ["server", "engine.checkpoints.memory", "engine.training.run"]),
    ("server/http/errors.py", ["server", "engine.work_limit", "views.core.markdown"]),
    ("server/http/streamlit_patches/limited_runs.py", ["server.settings", "engine"]),
    ("server/http/api/", ["server", "pages.controls", "engine"]),
    ("server/http/", ["server", "pages.controls.state.history"]),
    ("pages/", [*BELOW, "pages.controls", "views", "engine"]),
    ("views/core/", ["views.core", "engine"]),
    ("views/charts/", ["views.charts", "views.core", "engine"]),
    ("views/classes/", ["views", "server.classes", "engine"]),
    ("views/", ["views", "engine"]),
    ("engine/budget.py", ["engine.places"]),
    ("engine/settings.py", ["server.settings.fill_budget"]),  # for its programs alone
    ("engine/model/hooks.py", []),
    ("engine/model/from_dict.py", []),
    ("engine/model/layers/", ["engine.model.layers", "engine.model.hooks", "engine.model.config"]),
    ("engine/model/", ["engine.model", "engine.plurals", "engine.work_limit"]),
    ("engine/tokenizers/", ["engine.tokenizers", "engine.collect", "engine.json_text", "engine.plurals"]),
    ("engine/", ["engine"]),
    ("loupe/", ["engine", "views.notebook"]),
    ("bench/load.py", ["server.http.workers", "tests.browser.harness"]),
    ("bench/", ["bench", "engine", "views", "server.classes", "server.library", "tests.browser.harness"]),
]
# Rooms of the engine from below to above, and before their own room the files that stand lower than it. Each imports
# from its own row and those before it; the longest name that fits a module is its place. engine/__init__.py
# and __main__.py have none: they import everything, and nothing here imports them.
ENGINE = [
    [
        "engine.ages",
        "engine.budget",
        "engine.characters",
        "engine.json_text",
        "engine.collect",
        "engine.places",
        "engine.plurals",
        "engine.pulse",
        "engine.runtime.lru_cache",
        "engine.runtime.memory",
        "engine.work_limit",
        "engine.settings",
    ],
    ["engine.model"],
    ["engine.tokenizers"],
    ["engine.scoring"],
    [
        "engine.inputs.pictures",
        "engine.inputs.processors",
        "engine.inputs.settings_file",
        "engine.inputs.sound",
    ],
    ["engine.edits"],
    ["engine.runtime.batch", "engine.runtime.recording", "engine.runtime.run", "engine.runtime.trace"],
    ["engine.checkpoints"],
    ["engine.compiled"],
    ["engine.runtime"],
    ["engine.data"],
    ["engine.conversations"],
    ["engine.generation"],
    ["engine.inputs"],
    ["engine.analysis", "engine.attention_variants"],
    ["engine.course"],
    ["engine.training"],
    ["engine.cli"],
]
# Rooms of pages/controls from below to above, read as ENGINE is.
ROOMS = [
    ["pages.controls.state"],
    [
        "pages.controls.figures",
        "pages.controls.menu",
        "pages.controls.bar",
        "pages.controls.visitor",
        "pages.controls.notice",
        "pages.controls.words",
        "pages.controls.sign_in",
        "pages.controls.program_field",
    ],
    ["pages.controls.prediction"],
    ["pages.controls.model_input"],
    ["pages.controls.what_if"],
    ["pages.controls.share"],
    ["pages.controls.compare"],
    ["pages.controls.generate", "pages.controls.long_sequences", "pages.controls.checkpoint", "pages.controls.train"],
    ["pages.controls.learn"],
    ["pages.controls.classes"],
    ["pages.controls.places"],
    ["pages.controls.run_page"],
]
CLIMBS = {
    ("engine/edits/sources.py", "engine.runtime.trace.Trace"): "a type alone: a run hands its traces down to its edits",
    ("engine/training/cluster/ray_driver.py", "engine.cli.main"): "a process of Ray becomes the command it is told",
}
OWN = ("app", "asgi", "server", "pages", "views", "engine", "bench", "tests")
SHOWS_STREAMLIT = (
    "app.py", "asgi.py", "server/http/", "pages/", "views/core/component.py", "views/charts/show.py", "bench/load.py"
)  # fmt: skip
SECRET_PLACES = re.compile(r"/work\b|/home/\w|/Users/\w|/\.library\b|\.\./shared")
# Namespaces are names, not places that anything is fetched from.
OTHER_HOSTS = re.compile(r"""["'`(](?:https?:)?//(?!www\.w3\.org/)[\w.-]+\.\w+""")


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """They take 200 MB, which no other test needs."""
    yield
    forget()
    read.cache_clear()


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def sources(*suffixes: str) -> list[Path]:
    """Everything a person wrote here, tests aside."""
    folders = ("server", "pages", "views", "engine", "loupe", "assets", "corpora", "bench", "scripts")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return sorted(found + [path for path in ROOT.iterdir() if path.suffix in suffixes])


def imports(path: str, tree: ast.Module) -> Iterator[str]:
    """Everything that is imported, wherever in the file, as a dotted name from the root."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = path.split("/")[: -node.level] if node.level else []
            module = ".".join([*here, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def dotted(node: ast.expr) -> str:
    """A name with its dots, such as `pickle.load`; of what is no name at its left what is behind that, with a dot."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
    return ""


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def check_layers(path: str, tree: ast.Module) -> Iterator[str]:
    allowed = next((may for prefix, may in LAYERS if path.startswith(prefix)), OWN)
    for name in imports(path, tree):
        if name.split(".")[0] in OWN and not any(within(name, one) for one in allowed):
            yield f"{path} imports {name}, and may import only {allowed}"


def row_of(name: str, order: list[list[str]]) -> int:
    """Place of a module in an order; the highest where it has none."""
    fitting = [(len(one), row) for row, names in enumerate(order) for one in names if within(name, one)]
    return max(fitting, default=(0, len(order)))[1]


def check_engine(path: str, tree: ast.Module) -> Iterator[str]:
    if not path.startswith("engine/"):
        return
    own = row_of(path.removesuffix(".py").replace("/", "."), ENGINE)
    for name in imports(path, tree):
        let_be = any(path == file and within(name, climb) for file, climb in CLIMBS)
        if within(name, "engine") and row_of(name, ENGINE) > own and not let_be:
            yield f"{path} imports {name}, which stands above it"


def check_rooms(path: str, tree: ast.Module) -> Iterator[str]:
    """A room of pages/controls imports from its own row and those before it."""
    if not path.startswith("pages/controls/"):
        return
    own = row_of(path.removesuffix(".py").replace("/", "."), ROOMS)
    for name in imports(path, tree):
        if within(name, "pages.controls") and row_of(name, ROOMS) > own:
            yield f"{path} imports {name}, which stands above it"


def check_streamlit(path: str, tree: ast.Module) -> Iterator[str]:
    if not path.startswith(SHOWS_STREAMLIT) and any(within(name, "streamlit") for name in imports(path, tree)):
        yield f"{path} imports streamlit, which only {SHOWS_STREAMLIT} may"


DOCUMENTED = ("streamlit.components", "streamlit.delta_generator")


def check_private_parts(path: str, tree: ast.Module) -> Iterator[str]:
    """What counts on parts of Streamlit that it does not document has their hashes, for test_streamlit_patches.py."""
    if not path.startswith(RUNS):
        return
    used = {name for name in imports(path, tree) if within(name, "streamlit") and name != "streamlit"}
    used = {name for name in used if not any(within(name, one) for one in DOCUMENTED)}
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and str(node.value).startswith("streamlit.runtime"):
            used.add(str(node.value))  # a logger's
        if isinstance(node, ast.Attribute) and re.match(r"(st|streamlit)\.(.*\.)?(_(?!_)|runtime\b)", dotted(node)):
            used.add(dotted(node))
    tables = (node.value for node in tree.body if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "READ")
    if used and not any(isinstance(table, ast.Dict) and table.keys for table in tables):
        yield f"{path} uses {sorted(used)}: name in READ what it counts on there, with the hashes"


def check_rows(path: str, tree: ast.Module) -> Iterator[str]:
    """A chart that is as high as its rows and axes are reckoned to be squeezes the rows where labels are long."""
    for node in ast.walk(tree) if path.startswith("views/") else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Chart":
            heights = [one.value for one in node.keywords if one.arg == "height"]
            if any(isinstance(one, ast.BinOp) and "ROW" in ast.dump(one) for one in heights):
                yield f"{path} reckons how high a chart is; say alt.Step(ROW), the height of a row"


def check_pickle(path: str, tree: ast.Module) -> Iterator[str]:
    for name in imports(path, tree):
        if name.split(".")[0] in {"dill", "cloudpickle", "joblib", "shelve"}:
            yield f"{path} imports {name}: never unpickle"
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "pickle":
            yield f"{path}:{node.lineno} imports from pickle: never unpickle"
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        if called in {"pickle.load", "pickle.loads", "pickle.Unpickler"}:
            yield f"{path}:{node.lineno} calls {called}: never unpickle"
        given = {keyword.arg: keyword.value for keyword in node.keywords} if called == "torch.load" else {}
        if called == "torch.load" and ("weights_only" not in given or ast.unparse(given["weights_only"]) != "True"):
            yield f"{path}:{node.lineno} calls torch.load without weights_only=True"


def check_json(path: str, tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree) if path.startswith(RUNS) and path != "engine/json_text.py" else ():
        if isinstance(node, ast.Call) and dotted(node.func) in {"json.load", "json.loads"}:
            yield f"{path}:{node.lineno} reads JSON, which may nest too deeply: say parse_json (engine/json_text.py)"


def check_broad_except(path: str, tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = "" if node.type is None else ast.unparse(node.type)
            if re.search(r"^$|\b(Base)?Exception\b", caught) and not isinstance(node.body[-1], ast.Raise):
                yield f"{path}:{node.lineno} swallows everything: name what is expected, or raise it again"


RUNS = ("engine/", "views/", "pages/", "server/", "app.py", "asgi.py")  # what `make run` needs
KEPT_PLACES = {"assets", "corpora", "models", "pages", "runs"}


def check_places(path: str, tree: ast.Module) -> Iterator[str]:
    """One file knows where Loupe and what is made with it lie."""
    if not path.startswith(RUNS) or path == "engine/places.py":
        return
    for node in nodes(tree):
        counted = isinstance(node, ast.Subscript) and dotted(node.value).endswith(".parents")
        own = isinstance(node, ast.Attribute) and node.attr in {"parent", "parents"} and holds_own_file(node.value)
        named = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant)
        if counted or own or named and str(node.right.value).split("/")[0] in KEPT_PLACES:
            yield f"{path}:{node.lineno} builds a path of Loupe's: engine/places.py does"


def holds_own_file(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "__file__" for one in ast.walk(node))


READS_NAMES = {"partition", "rpartition", "split", "rsplit", "removeprefix"}


def check_run_names(path: str, tree: ast.Module) -> Iterator[str]:
    """One module reads and writes "run:NAME@STEP"."""
    if path == "engine/checkpoints/run_steps.py":
        return
    for node in nodes(tree):
        reads = isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in READS_NAMES
        code = ast.unparse(node) if reads or isinstance(node, ast.JoinedStr) else ""
        if re.match(r"f'(run:|\{(library|run_steps)\.RUN\})", code):
            yield f"{path}:{node.lineno} writes the name of a run's step: run_steps.name_step does"
        if re.search(r"\.r?(partition|split)\('@'|removeprefix\(('run:'|(library|run_steps)\.RUN)\)", code):
            if path not in ("engine/checkpoints/hub.py", "engine/checkpoints/hub_transfer.py"):  # a revision, a host
                yield f"{path}:{node.lineno} reads the name of a run's step: run_steps.split_name does"


def check_page_state(path: str, tree: ast.Module) -> Iterator[str]:
    """What a link can hold is drawn through the page's declaration."""
    if path == "pages/controls/state/page_state.py":
        return
    for node in nodes(tree):
        if isinstance(node, ast.keyword) and node.arg == "bind" and ast.unparse(node.value) == "'query-params'":
            yield f"{path}:{node.value.lineno} binds a widget: declare a Parameter and draw it through PageState"


# May ask for Streamlit's session. No more may come, and who no longer asks is taken out.
ASKS_SESSION = {
    f"pages/controls/{name}.py"
    for name in (
        "state/session",
        "state/page_state",
        "state/history",
        "places",
        "model_input/model_input",
        "model_input/text_field",
    )
}


def asks_session(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "session_state" for node in nodes(tree))


def check_session(path: str, tree: ast.Module) -> Iterator[str]:
    """What a session remembers is declared: no page asks by a key of its own."""
    if path.startswith("pages/") and asks_session(tree) != (path in ASKS_SESSION):
        yield f"{path} {'asks' if asks_session(tree) else 'no longer asks'} for Streamlit's session; see session.py"


# Servers, senders and work that are slow on purpose, and kills at times that are drawn.
SLOW = {
    "tests/browser/apps/turning/app.py",
    "tests/browser/apps/plumbing/app.py",
    "tests/engine/training/test_live.py",
    "tests/engine/training/test_kills.py",
    "tests/server/http/test_workers.py",
    "tests/views/test_generate_beam.py",
    "tests/views/test_generate_surprise.py",
}


def check_waits(path: str, tree: ast.Module) -> Iterator[str]:
    """A test waits for a state that is named, never for time: it may pause where it looks again and again."""
    polls = {id(node) for loop in nodes(tree) if isinstance(loop, ast.While) for node in ast.walk(loop)}
    for node in nodes(tree):
        called = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        in_page = str(node.value) if isinstance(node, ast.Constant) else ""
        timer = re.search(r"setTimeout\(.*, *\d{3,}\)", in_page)
        if timer or called in {"sleep", "wait_for_timeout"} and id(node) not in polls and path not in SLOW:
            yield f"{path}:{node.lineno} waits for time: wait for the state that is meant"


def check_loops(path: str, tree: ast.Module) -> Iterator[str]:
    """Tests in a browser leave an event loop in their thread, so that no other may begin one there."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "asyncio.run":
            yield f"{path}:{node.lineno} begins an event loop: tests/coroutines.py does, beside the others"


def check_script(path: str, text: str) -> Iterator[str]:
    """What a view or the plumbing may not do in the browser."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "Math.random",
            "eval(",
        ):
            if word in line:
                yield f"{path}:{number} uses {word}: text is textContent, numbers are tensors'"
        if OTHER_HOSTS.search(line):
            yield f"{path}:{number} names another host: Loupe works without a network"


def check_text(path: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield f"{path}:{number} leaves work for later"
        if SECRET_PLACES.search(line):
            yield f"{path}:{number} names a place of one machine"


MASK = "engine/model/layers/mask.py"
SHARE = "pages/controls/share"
TREE_RULES = [
    check_layers, check_engine, check_rooms, check_streamlit, check_pickle, check_broad_except, check_run_names,
    check_page_state, check_places, check_session, check_rows, check_private_parts, check_json,
]  # fmt: skip


@pytest.mark.parametrize("rule", TREE_RULES, ids=lambda rule: rule.__name__)
def test_python_keeps_the_rule(rule) -> None:
    broken = [complaint for path in sources(".py") for complaint in rule(name_of(path), parse(read(path)))]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "path", "bad", "good"),
    [
        (check_layers, MASK, "import engine.model.transformer", "from engine.model.hooks import HookPoint"),
        (
            check_layers,
            "engine/model/transformer.py",
            "from engine.checkpoints import load",
            "import engine.model.layers.block",
        ),
        (check_layers, "engine/model/hooks.py", "from engine.runtime.trace import Trace", "import torch"),
        (check_engine, "engine/runtime/trace.py", "import engine.analysis.heads", "import engine.model.hooks"),
        (
            check_engine,
            "engine/runtime/library.py",
            "def f():\n    from engine.training import x",
            "from engine.checkpoints import load",
        ),
        (check_engine, "engine/edits/edit.py", "from engine.runtime import run", "from engine.budget import budget"),
        (check_engine, "engine/analysis/x.py", "from engine import run", "from engine.runtime.run import run"),
        (check_layers, "engine/runtime/run.py", "from views import theme", "from engine.model.stack import Stack"),
        (check_layers, "views/core/x.py", "import views.compare", "import views.core.lanes"),
        (check_layers, "views/bars.py", "import pages.explore", "from engine.runtime.trace import Trace"),
        (check_layers, "pages/explore/x.py", "import app", "import views.core.theme"),
        (check_layers, "pages/explore/x.py", "import server.http.logs", "import server.classes.steps"),
        (check_layers, "server/classes/x.py", "import pages.controls.menu", "import engine.analysis.heads"),
        (check_layers, MASK, "from ..transformer import x", "from ..hooks import x"),
        (check_layers, MASK, "from .. import stack", "from . import block"),
        (check_layers, "engine/x.py", "def f():\n    import views", "def f():\n    import torch"),
        (check_streamlit, "engine/run.py", "import streamlit as st", "import torch"),
        (check_streamlit, "views/bars.py", "from streamlit.runtime import x", "import altair"),
        (
            check_pickle,
            "engine/x.py",
            "import pickle\npickle.load(f)",
            "try: f()\nexcept pickle.PickleError: pass",
        ),
        (check_pickle, "engine/x.py", "from pickle import loads", "import json"),
        (check_pickle, "engine/x.py", "torch.load(path)", "torch.load(path, weights_only=True)"),
        (check_pickle, "engine/x.py", "torch.load(p, weights_only=False)", "load_file(p)"),
        (
            check_broad_except,
            "engine/x.py",
            "try: f()\nexcept Exception: pass",
            "try: f()\nexcept OSError: pass",
        ),
        (check_run_names, "pages/x.py", "name = f'run:{run}'", "name = name_step(run)"),
        (check_run_names, "pages/x.py", "name = f'{library.RUN}{run}@{step}'", "name = name_step(run, step)"),
        (check_run_names, "engine/x.py", "name.partition('@')", "split_name(name)"),
        (check_rooms, f"{SHARE}/links.py", "import pages.controls.compare.run", "import pages.controls.state.history"),
        (check_page_state, "pages/x.py", "st.slider(x, bind='query-params')", "here.slider('x')"),
        (check_places, "views/x.py", "X = Path(__file__).resolve().parent", "X = Path(plotly.__file__).parent"),
        (check_places, "engine/x.py", "X = folder.parents[2]", "X = folder.parent"),
        (check_places, "pages/x.py", "X = ROOT / 'assets/texts'", "X = ASSETS / 'texts'"),
        (check_json, "engine/x.py", "json.loads(text)", "parse_json(text)"),
        (check_rows, "views/x.py", "alt.Chart(t, height=ROW * 3 + 9)", "alt.Chart(t, height=alt.Step(ROW))"),
        (check_private_parts, "pages/x.py", "st.session_state._state", "READ = {'a:b': 'c'}\nst.session_state._state"),
        (check_private_parts, "server/http/x.py", "import streamlit.logger\nREAD = {}", "import streamlit as st"),
        (check_private_parts, "views/x.py", "getLogger('streamlit.runtime.x')", "from streamlit.components import v1"),
        (check_session, "pages/x.py", "st.session_state['said'] = x", "SAID.set(x)"),
        (check_session, "pages/controls/state/session.py", "SAID.set(x)", "st.session_state['said'] = x"),
        (check_run_names, "engine/x.py", "name.removeprefix(library.RUN)", "name.startswith(library.RUN)"),
        (check_waits, "tests/x.py", "page.wait_for_timeout(300)", "expect(shown).to_be_visible()"),
        (check_waits, "tests/x.py", "e.evaluate('setTimeout(done, 6' '00)')", "e.evaluate('setTimeout(done)')"),
        (check_waits, "tests/x.py", "for x in y: time.sleep(1)", "while not found(): sleep(0.01)"),
        (
            check_broad_except,
            "engine/x.py",
            "try: f()\nexcept: pass",
            "try: f()\nexcept (OSError, ValueError): pass",
        ),
    ],
)
def test_a_python_rule_can_fail(rule, path: str, bad: str, good: str) -> None:
    assert list(rule(path, ast.parse(bad)))
    assert not list(rule(path, ast.parse(good)))


def test_tests_wait_for_states_and_share_their_thread() -> None:
    broken = [
        complaint
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if re.search(r"sleep|wait_for_timeout|setTimeout|asyncio", read(path))
        for rule in (check_waits, check_loops)
        for complaint in rule(name_of(path), parse(read(path)))
    ]
    assert not broken, "\n".join(broken)
    for path in SLOW:
        assert list(check_waits("", parse(read(ROOT / path)))), f"take {path} out of SLOW"
    assert list(check_loops("", ast.parse("asyncio.run(play())")))


def test_a_count_and_its_noun_agree() -> None:
    allowed = {entry.strip() for entries in ALLOWED.values() for entry in entries.strip().split("\n")}
    paths = [name_of(path) for path in sources(".py", ".js")]
    found = [
        complaint
        for path in paths
        if path.startswith(("app.py", "pages/", "views/", "engine/", "assets/views/"))
        for complaint in find_uncounted(path, read(ROOT / path))
    ]
    broken = [complaint for complaint, entry in found if entry not in allowed]
    assert not broken, "\n".join([*broken, "count by `count_words` or `counted`, or say why not in ALLOWED"])
    assert not allowed - {entry for _complaint, entry in found}, "take what is gone out of ALLOWED"


@pytest.mark.parametrize(
    ("path", "bad", "good"),
    [
        ("a.py", "f'{n:,} tokens'", "f'{count_words(n, \"token\")}'"),
        ("a.py", "f'{len(a)} special tokens'", "f'{n} of tokens, {MOST} tokens'"),
        ("a.py", "_('{count} heads').format(count=n)", "_n('{count} head', '{count} heads', n)"),
        ("a.js", "`${a.map((b) => `${b}`).length} rows`", "`${counted(n, 'row')}`; ({ n }) rows"),
    ],
)
def test_the_rule_of_counts_can_fail(path: str, bad: str, good: str) -> None:
    assert list(find_uncounted(path, bad))
    assert not list(find_uncounted(path, good))


CUT = 1.15  # lines of letters, with what hangs below: less is cut where a box hides what leaves it


def find_cut_letters(css: str) -> Iterator[str]:
    """Rules whose line is lower than its letters; 0 is for what has none."""
    for rule in re.findall(r"[^{}]*\{[^{}]*\}", css):
        line = re.search(r"line-height: ([\d.]+)(px)?[;\s}]", rule)
        size = re.search(r"font-size: ([\d.]+)px", rule)
        if line and float(line[1]) and (size or not line[2]):
            high = float(line[1]) / float(size[1]) if line[2] and size else float(line[1])
            if high < CUT:
                yield rule.strip()


def test_no_line_is_lower_than_its_letters() -> None:
    assert list(find_cut_letters("a { font-size: 13px; line-height: 12px; } b { line-height: 1; }")) and not list(
        find_cut_letters("a { font-size: 13px; line-height: 15px; } b { line-height: 0; }")
    )
    broken = [f"{name_of(path)}: {rule}" for path in sources(".css") for rule in find_cut_letters(read(path))]
    assert not broken, "\n".join(broken)


def test_markdown_gets_no_text_of_others() -> None:
    """Whatever a person, a file or an address says is escaped: else it is a picture of another host, or a link."""
    trees = {name_of(path): parse(read(path)) for path in sources(".py")}
    broken = sorted(set(find_unsafe(trees)))
    assert not broken, "\n".join(
        [*broken, "escape it by `escape_markdown`, or annotate it as tests/markdown_rule.py says"]
    )
    places = {path.removesuffix(".py").replace("/", ".") for path in trees}
    assert not TRUSTED.keys() - places, "take what is gone out of TRUSTED"


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("st.warning(str(error))", "st.warning(escape_markdown(error))"),
        ("st.caption(f'{name} is gone')", "st.caption(f'{escape_markdown(name)} is gone')"),
        ("st.caption(f'{name} {count}')", "st.caption(f'{len(name)} {count:,}')"),
        ("x = name\nst.button(x)", "x = 'a' if name else 'b'\nst.button(x)"),
        ("st.button('a', help=name)", "st.button('a', help=HELP[name], key=name)"),
        ("st.radio('a', names)", "st.selectbox('a', names)"),  # which draws its options as they are
        ("st.radio('a', names, format_func=str)", "st.radio('a', names, format_func=escape_markdown)"),
        ("st.pills('a', names, format_func=lambda x: x)", "st.pills('a', NAMES)"),
        ("st.caption('a {}'.format(name))", "st.caption(_('a {name}').format(name=name))"),  # which escapes
        ("for x in names: st.caption(x)", "for x in ('a', 'b'): st.caption(x)"),
        ("st.caption(' '.join(names))", "st.caption(' '.join(map(escape_markdown, names)))"),
        ("try: f()\nexcept ValueError as error: st.error(error)", "st.error('It failed.')"),
        ("def f(x: str): st.caption(x)", "def f(x: LiteralString): st.caption(x)\nf('a')"),
        ("def f(x: LiteralString): st.caption(x)\nf(name)", "def f(x: Markdown): st.caption(x)\nf(name)"),
        ("def f() -> str: return 'a'\nst.caption(f())", "def f() -> Markdown: return g()\nst.caption(f())"),
        ("class A:\n def strip(self) -> None: pass\nst.text_input(name.strip())", "st.text_input('a'.strip())"),
        ("def f() -> LiteralString: return name", "def f() -> LiteralString: return 'a'"),
        ("Markdown(name)", "Markdown(f'**{escape_markdown(name)}**')"),
    ],
)
def test_the_rule_of_markdown_can_fail(bad: str, good: str) -> None:
    assert list(find_unsafe({"pages/x.py": ast.parse(bad)})), bad
    assert not list(find_unsafe({"pages/x.py": ast.parse(good)})), good


def test_every_climb_that_is_let_be_is_there() -> None:
    for path, name in CLIMBS:
        found = list(imports(path, parse(read(ROOT / path))))
        assert any(within(one, name) for one in found), f"{path} imports {name} no more: take that out of CLIMBS"


def test_scripts_and_texts_keep_the_rules() -> None:
    broken = [
        complaint
        for path in sources(".js", ".py", ".css", ".toml", ".md", ".txt")
        for rule in ([check_script, check_text] if path.suffix in {".js", ".css"} else [check_text])
        for complaint in rule(name_of(path), read(path))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (check_script, "root.innerHTML = text", "root.textContent = text"),
        (check_script, "const x = Math.random()", "const x = Math.round(y)"),
        (check_script, 'import "https://cdn.example.com/d3.js"', 'import "./payload.js"'),
        (check_script, "fetch('//example.com/x')", "createElementNS('http://www.w3.org/2000/svg', 'g')"),
        (check_text, "# TODO later", "# done"),
        (check_text, "open('/work/main/x')", "open(folder / 'x')"),
    ],
)
def test_a_rule_about_text_can_fail(rule, bad: str, good: str) -> None:
    assert list(rule("x", bad))
    assert not list(rule("x", good))


HOUSE = ("engine", "loupe", "views", "server", "pages", "assets", "corpora", "bench", "scripts", "tests", "docs")
PATH = re.compile(r"(?<![\w/.<>*:-])[\w.<>*-]+(?:/[\w.<>*-]+)*")
OURS = re.compile(r".*[\w>*]\.(py|js|css|md|toml)")  # files of other endings are mostly written by a run
FOREIGN = {
    "Node.js": "runs what checks the JavaScript",
    "model.py": "nanoGPT's",
    "mingpt/model.py": "minGPT's",
    "modeling_chatglm.py": "ChatGLM's, beside its weights",
    "loupe.toml": "the settings of a server of one's own",
    "lti.toml": "what a server of one's own says of its platforms",
}


def said(path: str, text: str) -> str:
    """What a file says to its readers: comments and docstrings of a program, all of another text."""
    if path.endswith((".js", ".css")):
        return "\n".join(re.findall(r"/\*.*?\*/|(?<!:)//[^\n]*", text, re.DOTALL))
    if not path.endswith(".py"):
        return text
    found, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found.append(token.string)
        elif token.type != tokenize.NL:
            if token.type == tokenize.STRING and before in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}:
                found.append(token.string.lstrip("r"))
            before = token.type
    return "\n".join(found)


def places(there: Iterable[str]) -> Set[str]:
    """Paths from the root, and after "*/" every end of them."""
    whole = {path: path.split("/") for path in there}
    return set(whole) | {"/".join(["*", *parts[n:]]) for parts in whole.values() for n in range(len(parts))}


def check_paths(path: str, words: str, known: Set[str]) -> Iterator[str]:
    """A name that begins at no folder of the root is the end of a path, such as core/store.js."""
    for word in {re.sub(r"^(\.\.?/)+|\.$", "", found) for found in set(PATH.findall(words))}:
        whole = "/" in word and word.split("/")[0] in HOUSE
        place = ("" if whole else "*/") + re.sub(r"<\w+>", "*", word)
        ours = (whole or OURS.fullmatch(word)) and word not in FOREIGN
        if ours and place not in known and not fnmatch.filter(known, place):
            yield f"{path} names {word}, which is not there"


def test_what_is_named_is_there() -> None:
    files = [path for folder in (*HOUSE, ".streamlit") for path in (ROOT / folder).rglob("*")] + [*ROOT.iterdir()]
    known = places(name_of(path) for path in files)
    texts = {
        name_of(path): read(path)
        for path in files
        if path.suffix in {".py", ".js", ".css", ".toml", ".md"} or path.name in {"Makefile", "requirements.txt"}
    }
    broken = [
        complaint
        for path, text in texts.items()
        if any(check_paths(path, text, known))  # in all of it, which is known sooner than what of it is said
        for complaint in check_paths(path, said(path, text), known)
    ]
    assert not broken, "\n".join(broken)
    unsaid = [name for name in FOREIGN if not any(name in text and name in said(p, text) for p, text in texts.items())]
    assert not unsaid, f"nothing names {unsaid} any more: take them out of FOREIGN"


@pytest.mark.parametrize(
    ("path", "bad", "good"),
    [
        ("engine/x.py", "y = 1  # as engine/gone.py has it", "y = 1  # as engine/here.py has it"),
        ("engine/x.py", 'def f():\n    """DESIGN.md\'s."""', 'y = "DESIGN.md"'),
        ("engine/x.py", '"""In engine/away."""', '"""In engine, or engine/here.py."""'),
        ("assets/views/a/x.js", "// of views/core/store.js", "// of core/store.js"),
        ("assets/views/a/x.js", '/** @type {import("./gone.js").S} */', '/** @type {import("../core/store.js").S} */'),
        ("docs/x.md", "views/<room>/gone_*.js", "assets/views/<room>/<name>.js, said in here.py"),
        ("README.md", "see gone.js", "see https://example.com/gone.js"),
    ],
)
def test_a_name_of_what_is_gone_would_be_found(path: str, bad: str, good: str) -> None:
    known = places(["engine/here.py", "assets/views/core/store.js"])
    assert list(check_paths(path, said(path, bad), known))
    assert not list(check_paths(path, said(path, good), known))


def test_the_lock_file_names_no_registry() -> None:
    """npm takes the packages from the one that is set up: `omit-lockfile-registry-resolved` in .npmrc keeps it so."""
    lock = json.loads(read(ROOT / "package-lock.json"))
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    wanted = json.loads(read(ROOT / "package.json"))["devDependencies"]
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_pages_stand_in_sections() -> None:
    """A bare file in pages/ is a page of Streamlit's old multipage mode, which runs it without app.py."""
    assert not [path.name for path in (ROOT / "pages").glob("*.py")]


def distribution(name: str) -> str:
    """A distribution's name, or a line of requirements.txt, as an index spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", name)[0]).lower()


def check_requirements(listed: Set[str], imported: Set[str]) -> Iterator[str]:
    """Both sides of requirements.txt: distributions, and the top-level modules that are imported."""
    known = {module: {distribution(name) for name in names} for module, names in packages_distributions().items()}
    for module in sorted(imported):
        if not known.get(module, set()) & listed:
            yield f"{module} is imported, and requirements.txt does not list it"
    used = set().union(*(known.get(module, set()) for module in imported))
    for name in sorted(listed - used):
        yield f"requirements.txt lists {name}, which nothing imports"


OPTIONAL = {"ray": "requirements-ray.txt", "botocore": "requirements-store.txt"}  # only who asks for it has it
OPTIONAL |= dict.fromkeys(("anywidget", "traitlets", "soundfile", "h5py"), "requirements-dev.txt")  # extras


def test_requirements_are_what_is_imported() -> None:
    lines = read(ROOT / "requirements.txt").splitlines()
    listed = {distribution(line) for line in lines if line and not line.startswith(("#", "-c "))}
    imported = {
        name.split(".")[0]
        for path in sources(".py")
        if (place := name_of(path)).startswith(RUNS)
        for name in imports(place, parse(read(path)))
    }
    for module, file in OPTIONAL.items():
        assert module in imported and module in {distribution(line) for line in (ROOT / file).read_text().splitlines()}
    broken = list(check_requirements(listed, imported - set(OWN) - set(OPTIONAL) - sys.stdlib_module_names))
    assert not broken, "\n".join(broken)
    assert list(check_requirements({"numpy"}, {"numpy", "torch"})) == [
        "torch is imported, and requirements.txt does not list it"
    ]
    assert list(check_requirements({"numpy", "torch"}, {"numpy"})) == [
        "requirements.txt lists torch, which nothing imports"
    ]


def modules() -> dict[str, Path]:
    """Every module of the house by its dotted name."""
    found = {}
    for path in sources(".py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needed_to_run(body: Iterable[ast.AST]) -> Iterator[str]:
    """Names that are imported, in functions too: imports for type checkers alone are not."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from needed_to_run(one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr))


def room_of(name: str) -> str:
    return ".".join(name.split(".")[: 3 if within(name, "pages.controls") else 2])


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules of one import cycle in their order; none where there is no cycle."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for one in sorted(graph.get(name, ())):
            if found := visit(one, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, []))), [])


def test_neither_a_module_nor_a_room_imports_itself_through_others() -> None:
    known, graph, rooms = modules(), {}, dict[str, set[str]]()
    for name, path in known.items():
        wanted = set(needed_to_run(parse(read(path)).body))
        graph[name] = {one for one in wanted if one in known and one != name and not within(name, one)}
        if name.startswith(("pages.", "views.")):
            rooms.setdefault(room_of(name), set()).update({room_of(one) for one in graph[name]} - {room_of(name)})
    assert find_cycle(graph) == []
    assert find_cycle(rooms) == []


def test_a_cycle_would_be_found() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]
    assert find_cycle({"a": {"b"}, "b": set()}) == []
    lazy = ast.parse("if TYPE_CHECKING:\n    import a\ndef f():\n    try: import b\n    finally: pass\nimport c")
    assert list(needed_to_run(lazy.body)) == ["b", "c"]
    assert (
        room_of("pages.controls.learn.course") == "pages.controls.learn" and room_of("views.why.charts") == "views.why"
    )


def folders(*roots: str) -> list[Path]:
    found = [path for root in roots for path in (ROOT / root).rglob("*") if path.is_dir()]
    return [one for one in found if any(path.is_file() for path in one.iterdir() if path.suffix != ".pyc")]


def test_every_folder_says_what_lives_there() -> None:
    rooms = [one for one in folders("engine", "server", "views", "pages/controls") if one.name != "__pycache__"]
    texts = {one: read(one / "__init__.py") for one in rooms}
    silent = [one for one, text in texts.items() if not ast.get_docstring(ast.parse(text))]
    listed = read(ROOT / "assets" / "views" / "README.md")
    silent += [one for one in folders("assets/views") if f"| `{one.name}/` |" not in listed]
    assert not silent


# Seconds that a file of the everyday tests may take, by tests/durations.json, which `make durations` writes.
MOST_SECONDS = 25.0
# What still takes longer, and how long at most: no more may come, and what no longer does is taken out.
LONGER: dict[str, float] = {
    "tests/browser/test_access.py": 80,
    "tests/browser/test_adapt.py": 100,
    "tests/browser/test_architectures.py": 30,
    "tests/browser/test_checkpoint.py": 40,
    "tests/browser/test_course.py": 50,
    "tests/browser/test_runs.py": 40,
    "tests/browser/test_shell.py": 60,
    "tests/browser/test_take.py": 30,
    "tests/browser/test_train.py": 70,
    "tests/browser/test_walkthrough.py": 50,
    "tests/pages/test_course.py": 60,
}


BY_ITSELF = {"tests/browsers/test_flows.py"}  # `make browsers` runs it


def has_everyday(text: str) -> bool:
    """Tells whether a file has a test that is not marked `long`, by itself or with the whole file."""
    tree = parse(text)
    if any(isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node) for node in tree.body):
        return not re.search(r"^pytestmark = pytest\.mark\.long$", text, re.MULTILINE)
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return any("pytest.mark.long" not in map(ast.unparse, node.decorator_list) for node in tests)


def find_slow(table: dict[str, float], longer: dict[str, float]) -> list[str]:
    return [path for path, seconds in table.items() if seconds > longer.get(path, MOST_SECONDS)]


def test_no_file_of_tests_takes_long() -> None:
    table = json.loads(read(ROOT / "tests" / "durations.json"))
    files = {name_of(path): path for path in (ROOT / "tests").rglob("test_*.py")}
    everyday = {name for name, path in files.items() if has_everyday(read(path))} - BY_ITSELF
    assert everyday <= table.keys() <= files.keys(), "tests came or went: run `make durations`"
    assert not find_slow(table, LONGER)
    assert all(table.get(path, 0) > MOST_SECONDS for path in LONGER), "take out of LONGER what takes no longer"


def test_a_slow_file_would_be_found() -> None:
    assert find_slow({"a": 25.1, "b": 24.9, "c": 40.0, "d": 61.0}, {"c": 60.0, "d": 60.0}) == ["a", "d"]
    assert not has_everyday("import pytest\npytestmark = pytest.mark.long\n\ndef test_a(): ...")
    assert not has_everyday("@pytest.mark.long\ndef test_a(): ...")
    assert has_everyday("@pytest.mark.long\ndef test_a(): ...\n\ndef test_b(): ...")
