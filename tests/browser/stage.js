// Mounts the views of a page as Streamlit does, and takes to its script what they say (stage.py).
const place = document.querySelector("[data-testid=stMainBlockContainer]");
const app = document.querySelector("[data-testid=stApp]");
const slots = new Map(); // id of a part -> what stands there; of a component {element, root, module, data, fragment, leave}
const modules = new Map(); // the script of a component -> what it exports
let number = 0; // of the session
let said = []; // what has not been sent
let running = Promise.resolve();
let open = 0; // runs that are not drawn yet

/** Runs the script of session `of` for the first time. */
export function begin(of) {
  number = of;
  send([]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    slots.forEach((slot) => slot.module && call(slot)),
  ); // as for a new theme
}

function say(id, event, value) {
  if (!said.length) setTimeout(speak);
  said.push({ id, event, value });
}

/** What is said in one tick is one message for each fragment. */
function speak() {
  const groups = Map.groupBy(said, ({ id }) => slots.get(id)?.fragment ?? "");
  said = [];
  for (const group of groups.values()) send(group);
}

function send(group) {
  open++;
  app.dataset.testScriptState = "running";
  running = running.then(async () => {
    try {
      const answer = await fetch(`/run/${number}`, { method: "POST", body: JSON.stringify(group) });
      if (!answer.ok) throw new Error(`the script failed: ${await answer.text()}`);
      await draw(await answer.arrayBuffer());
    } catch (error) {
      console.error(error);
    }
    if (!--open) app.dataset.testScriptState = "notRunning";
  });
  return running;
}

async function draw(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const { parts, fragment, query } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (new URLSearchParams(query).toString() !== new URLSearchParams(location.search).toString())
    history.pushState({}, "", `${location.pathname}${query && `?${query}`}`); // as Streamlit does, without the #
  let at = 4 + length;
  const ids = new Set(parts.map(({ id }) => id));
  for (const [id, slot] of slots) if (!ids.has(id) && (!fragment || slot.fragment === fragment)) remove(id, slot);
  for (const part of parts) {
    const slot = slots.get(part.id) ?? (part.js ? mount(part) : control(part));
    slots.set(part.id, slot);
    slot.element.className = `st-key-${String(part.key).replace(/[^\w-]/g, "-")}`; // as Streamlit has it
    slot.fragment = part.fragment;
    if (!fragment || !slot.element.isConnected) place.append(slot.element);
    if (!part.js) {
      slot.show(part);
      continue;
    }
    slot.data = new Uint8Array(buffer, at, part.size);
    at += part.size;
    await call(slot);
  }
}

function mount({ id, key, name, js, css }) {
  const element = document.createElement("div");
  element.dataset.testid = "stElementContainer";
  const root = element.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  root.append(Object.assign(document.createElement("style"), { textContent: css }));
  if (!modules.has(js)) modules.set(js, import(URL.createObjectURL(new Blob([js], { type: "text/javascript" }))));
  return { element, root, name, key, module: modules.get(js), say: (event, value) => say(id, event, value) };
}

/** A text, a field of text, or a button. */
function control({ id, kind, label, live, default: standard }) {
  const element = document.createElement("div");
  if (kind === "markdown") return { element, show: (part) => (element.textContent = part.label) };
  if (kind === "button") {
    const button = element.appendChild(document.createElement("button"));
    button.onclick = () => say(id, "", true);
    return { element, show: (part) => Object.assign(button, { textContent: part.label, disabled: part.disabled }) };
  }
  const input = element.appendChild(document.createElement("input"));
  Object.assign(input, { ariaLabel: label, value: standard });
  input[live ? "oninput" : "onchange"] = () => say(id, "", input.value);
  const show = ({ disabled, value }) => {
    input.disabled = disabled;
    if (value !== null) input.value = value; // the script has set it
  };
  return { element, show };
}

/** Streamlit cleans a call up once newer data has overtaken it. */
async function call(slot) {
  const { default: present } = await slot.module;
  const before = slot.leave;
  slot.leave = await present({
    name: slot.name,
    key: slot.key,
    data: slot.data,
    parentElement: slot.root,
    setTriggerValue: slot.say,
  });
  before?.();
}

function remove(id, slot) {
  slots.delete(id);
  slot.element.remove();
  slot.leave?.();
}
