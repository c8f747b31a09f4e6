// What the model writes greedily, without the edits and with them.
import { make } from "../core/dom.js";
import { pictures } from "./effects_picture.js";
import { request } from "../core/store.js";

export function continuation(page) {
  const element = make("section", "continuation");
  const { data } = page;
  const query = { effects: "continuation", trace: data.trace };
  const body = make("div", "written");
  const drawn = data.lanes.at(-1).grid?.predicts;
  const what = drawn ? "How the picture is completed, the likeliest colour each time" : "How it goes on, the likeliest token each time";
  element.append(make("h4", "", what), body);
  const write = () => {
    body.replaceChildren(make("p", "told", "…"));
    request(query).then(
      (found) => page.data.trace === data.trace && body.replaceChildren(...(drawn ? [pictures(page.root, found)] : lines(found))),
      (error) => body.replaceChildren(make("p", "told", error.message)),
    );
  };
  if (data.writes === "at once" || page.wrote === data.trace) write();
  else {
    const go = make("button", "chip", drawn ? "complete it" : "write on");
    go.type = "button";
    go.addEventListener("click", () => {
      page.wrote = data.trace;
      write();
    });
    body.append(go);
  }
  return element;
}

function lines({ before, after }) {
  const apart = before.findIndex((piece, i) => piece !== after[i]);
  const from = apart < 0 ? (before.length === after.length ? before.length : Math.min(before.length, after.length)) : apart;
  return [["before", before], ["after", after]].map(([name, pieces]) => {
    const line = make("p", `line ${name}`);
    line.append(make("span", "run", name));
    pieces.forEach((piece, i) => line.append(make("bdi", i >= from && name === "after" ? "token other" : "token", piece)));
    if (!pieces.length) line.append(make("span", "soft", "nothing: the text ends here, or fills the context"));
    else if (name === "after" && from === pieces.length && before.length === after.length) line.append(make("span", "soft", "the same"));
    return line;
  });
}
