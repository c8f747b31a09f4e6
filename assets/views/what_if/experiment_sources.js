// Where an edit takes its values from: the fields that choose another text, or another picture.
import { select } from "./experiment_places.js";

const NUMBERED = /^picture (\d+)$/; // as views/edit_sources.py names a shipped one

/** What a form begins with for another run. */
export const blankSource = (data) => (data.others === "texts" ? { text: "" } : { picture: Math.min(1, data.pictures - 1) });

/** A picture that has a number is chosen by it; any other stays what it is. */
export function sourceRead(source) {
  const number = source?.name?.match(NUMBERED)?.[1];
  return number === undefined ? source : { picture: Number(number) };
}

/** The fields of one source; `set(source)` puts another in its place, `called` is the name of its text field. */
export function sourceFields(source, set, data, called, hint) {
  if (data.others === "texts") return [{ type: "text", label: called, value: source.text, set: (text) => set({ text }), hint }];
  const numbered = Number.isInteger(source.picture);
  const now = numbered ? "number" : "picture" in source ? "shown" : "kept";
  const ways = [["number", "a picture by its number"], ["shown", `the one shown now: ${data.shown}`]];
  if (now === "kept") ways.push(["kept", source.name || "a picture that the link brought"]);
  const made = { number: () => blankSource(data), shown: () => ({ picture: null, name: data.shown }), kept: () => source };
  return [
    select(called, ways, now, (to) => set(made[to]())),
    numbered && { type: "number", label: `number, 0 to ${data.pictures - 1}`, name: `${called} number`, value: source.picture, min: 0, max: data.pictures - 1, step: 1, set: (picture) => set({ picture }) },
    now === "shown" && { type: "note", text: "It stays in the edit when another picture is chosen above." },
  ];
}
