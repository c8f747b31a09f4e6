// What of a run can be taken away from the table.

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
