"""The one script that a browser gets is every module of assets/views, each with its own exports."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pages.controls.menu import entries
from server.http.first_load import COMMON, PARTS, STATIC, FirstLoad, chunks
from tests.browser.harness import ROOT
from views.core import component
from views.core.bundle import SCRIPT, bundle, wrap

# Modules that look for the page as they begin find as much of one as they touch.
COMPARED = """
const nothing = new Proxy(function () {}, { get: (_, key) => key === Symbol.toPrimitive ? () => "{}" : nothing,
  apply: () => nothing, construct: () => nothing });
for (const name of ["addEventListener", "history", "location", "document", "matchMedia", "HTMLElement",
  "customElements", "window", "navigation"]) globalThis[name] = nothing;
const [script, folder, ...names] = process.argv.slice(1);
const { use } = await import(script);
const found = {};
for (const name of names) {
  if (name === "share/standalone") continue; // begins a page of its own
  const alone = await import(`${folder}/${name}.js`);
  found[name] = [Object.keys(alone).sort(), Object.keys(use(name)).sort()];
}
console.log(JSON.stringify(found));
process.exit(0);
"""


def test_the_script_has_each_module_with_the_exports_that_it_has_alone(tmp_path: Path) -> None:
    place = tmp_path / "views.mjs"
    place.write_text(bundle(component.MODULES)[SCRIPT], encoding="utf-8")
    names = [path.relative_to(component.MODULES).with_suffix("").as_posix() for path in component.MODULES.rglob("*.js")]
    command = [str(ROOT / ".venv/bin/node"), "--input-type=module", "-e", COMPARED, str(place), str(component.MODULES)]
    child = subprocess.run([*command, *names], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    assert set(found) == set(names) - {"share/standalone"}
    assert {name: one for name, (one, _) in found.items()} == {name: other for name, (_, other) in found.items()}
    assert found["components/cells"][1].count("extent") == 1  # which it exports from elsewhere


def test_modules_stay_line_for_line_and_the_map_names_each(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import {\n  b as c,\n} from "./b.js";\nexport const a = c;\n')
    (tmp_path / "b.js").write_text("export function b() {}\n")
    made = bundle(tmp_path)
    script, known = made[SCRIPT].split("\n"), json.loads(made[f"{SCRIPT}.map"])
    assert known["sources"] == ["a.js", "b.js"]
    lines = known["mappings"].split(";")
    first = lines.index("AAAA")
    begun = script[first : first + 5]
    assert begun == ['"a"() {const {', "  b: c,", '} = use("b");', "const a = c;", "return { a };},"]
    assert lines[first + 1 : first + 6] == ["AACA"] * 4 + ["ACJA"]  # the next file, and four lines back
    assert script[first + 5] == '"b"() {function b() {}'


@pytest.mark.parametrize("line", ["export default 3;", "export let a = 1;", 'import "./b.js";', "import.meta.url;"])
def test_a_form_that_is_not_read_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(line))):
        wrap(line + "\n", "a")


@pytest.fixture
def client() -> TestClient:
    async def streamlit(scope, receive, send):
        kind = b"text/html; charset=utf-8" if not scope["path"].startswith("/component") else b"text/plain"
        headers = [(b"content-type", kind), (b"etag", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<html><head></head>", "more_body": True})
        await send({"type": "http.response.body", "body": b"</html>"})

    return TestClient(FirstLoad(streamlit))


def test_the_page_names_the_script_which_is_immutable_and_whole(client: TestClient) -> None:
    for entry in entries():
        page = client.get(f"/{entry.address}", headers={"accept": "text/html"})
        wanted = re.findall(r'<link rel="modulepreload" crossorigin href="([^"]+)">', page.text)
        address, text = component.script()
        assert wanted[0] == address and len(wanted) == 1 + len(chunks(entry.address)) > 10
        assert page.text.endswith("</head></html>") and "etag" not in page.headers
        for place in wanted:
            answer = client.get(place)
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["content-type"].startswith("text/javascript")
    assert client.get(address).text == text


@pytest.mark.parametrize("part", sorted({*COMMON, *(part for parts in PARTS.values() for part in parts)}))
def test_streamlit_has_each_part_that_a_page_names_in_advance(part: str) -> None:
    assert list((STATIC / "js").glob(f"{part}.*.js")), f"no script of Streamlit begins with {part} any more"


def test_what_is_no_page_passes_as_it_is(client: TestClient) -> None:
    assert client.get("/attention", headers={"accept": "*/*"}).text == "<html><head></head></html>"
