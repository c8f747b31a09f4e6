// Where a run can be opened, and what of it can be taken away.

const PAGES = [["Walkthrough", "walkthrough"], ["Attention", "attention"], ["Checkpoint", "checkpoint"]];

/** Other pages of Loupe on the newest weights of a run. */
export function opened(table, run) {
  const model = modelOf(run);
  const pages = PAGES.map(([label, page]) => ({ label, link: address(page, { model }) }));
  return [...pages.slice(0, 2), compared(table, run), ...pages.slice(2)];
}

function modelOf({ name }) {
  return `run:${name}`;
}

/** Beside the run that is looked at, or where it is that, beside what it was before it learned. The page about comparisons names a run
 * and its step apart; of a step that was not kept it takes the last that was. */
function compared({ runs, data }, run) {
  const looked = runs.find(({ name, parameters }) => name === data.run && parameters !== null);
  const own = !looked || looked === run;
  const [a, b] = own ? [run, run] : [looked, run];
  const sides = { a_model: `run: ${a.name}`, a_step: own ? 0 : a.step, b_model: `run: ${b.name}`, b_step: b.step };
  return { label: "Compare", hint: own ? "first step | last" : `${looked.name} | this`, link: address("compare", sides) };
}

/** Spaces stand as %20, for links that are copied. */
function address(page, query) {
  const written = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return new URL(`./${page}?${written.join("&")}`, location.href).href;
}

/** The entries of a menu: {label, hint, act}. */
export function taken(table, run) {
  const bare = run.parameters === null ? "It has kept no weights yet." : "";
  return [
    { label: "Checkpoint", hint: "zip, for transformers", why: bare, act: () => table.take(run, "folder") },
    { label: "Curves", hint: "CSV", act: () => table.take(run, "csv") },
    { label: "Curves", hint: "TensorBoard", act: () => table.take(run, "tensorboard") },
    { label: "Recipe", hint: "TOML", act: () => table.take(run, "recipe") },
    { label: "Copy the command line", hint: "trains it again", act: () => copied(table, run, "command") },
    { label: "Copy a link to its recipe", hint: "opens it here", act: () => copied(table, run, "link") },
  ];
}

async function copied(table, { name }, what) {
  const answer = await table.request({ ask: "command", run: name });
  if (!answer) return;
  if (what === "command") return table.copy(answer.command, "The command line");
  if (!answer.link) return table.say(answer.no_link);
  const link = new URL(location.href);
  const task = link.searchParams.get("task");
  link.search = new URLSearchParams({ ...(task && { task }), recipe: answer.link }).toString();
  link.hash = "";
  table.copy(link.href, "The link");
}

/** Hands {file, arrays: {file}} to the browser as a download; returns its name. */
export function deliver({ file, arrays }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([arrays.file.data]));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  return file;
}
