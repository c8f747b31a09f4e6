// Tokens drawn as tokens, with their ids: the label of every row.

/**
 * data = {pieces, ids?, pitch, special?, drawn?, painted?}; `drawn(i)` is a picture of row i, or null, and `painted(i)` how strongly
 * its token is marked as what the head says, in 0..1. Emits "hover" {row} | null and "pick" {row}.
 * `mark({query, key})` lights the token whose row is read and the one it reads from.
 */
export function mount(root, data, emit) {
  let rows = [];
  root.classList.add("tokens");
  const rowOf = (event) => rows.indexOf(event.target.closest(".token"));
  root.addEventListener(
    "pointermove",
    (event) => event.pointerType !== "touch" && rowOf(event) >= 0 && emit("hover", { row: rowOf(event) }),
  );
  root.addEventListener("pointerleave", () => emit("hover", null));
  root.addEventListener("click", (event) => rowOf(event) >= 0 && emit("pick", { row: rowOf(event) }));

  const view = {
    update({ pieces, ids, pitch, special = [], drawn, painted }) {
      rows = pieces.map((piece, i) => {
        const row = document.createElement("div");
        row.className = "token";
        row.style.height = `${pitch}px`;
        const name = document.createElement("bdi");
        name.textContent = piece;
        name.title = piece;
        name.classList.toggle("special", Boolean(special[i]));
        if (painted?.(i)) {
          name.classList.add("said");
          name.style.setProperty("--said", `${Math.round(60 * painted(i))}%`);
        }
        const seen = drawn?.(i);
        if (seen) row.append(seen);
        row.append(name);
        if (ids) {
          const id = document.createElement("span");
          id.className = "id";
          id.textContent = ids[i];
          row.append(id);
        }
        return row;
      });
      root.replaceChildren(...rows);
    },
    mark({ query = null, key = null }) {
      rows.forEach((row, i) => {
        row.classList.toggle("as-query", i === query);
        row.classList.toggle("as-key", i === key && key !== query);
      });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}
