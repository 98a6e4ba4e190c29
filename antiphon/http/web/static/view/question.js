// What a person said: their words as they wrote them, and the files that they gave with them.

import { isUnread, toldOf } from "../chat/reading.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { harmless, pieces } from "./text.js";

/** @typedef {import("../api/client.js").Json} Json */
/** @typedef {(file: string) => Promise<Json | null>} FileOf null where it is gone */

export const GONE = "A file that is gone";
/** What is laid out at once. */
const PIECE = 3_000;
/** Longer ones are folded until somebody wants to see all of it. */
const FOLDED = 1_500;
const FOLDED_LINES = 18;

/** How soon to look again at a file that is being read. */
const LOOK_MS = 2_000;

/** @param {Json} item @param {FileOf} fileOf */
export function question(item, fileOf) {
  const text = textOfQuestion(item);
  const files = (item.content ?? []).filter(
    (/** @type {Json} */ part) => part.type === "input_file" || part.type === "input_image",
  );
  const bubble = h("div", { class: "bubble" });
  if (files.length) {
    bubble.append(
      h(
        "ul",
        { class: "files" },
        files.map((/** @type {Json} */ f) => chip(f, fileOf)),
      ),
    );
  }
  if (text) bubble.append(...words(text));
  return h("div", { class: "question" }, h("h2", { class: "visually-hidden" }, "You said"), bubble);
}

/** @param {Json} item */
export function textOfQuestion(item) {
  return (item.content ?? []).map((/** @type {Json} */ part) => part.text ?? "").join("");
}

/** @param {string} text */
function words(text) {
  const clean = harmless(text);
  const body = h("div", { class: "words" });
  const show = (/** @type {string} */ shown) =>
    fill(
      body,
      ...pieces(shown, PIECE).map((piece) => h("p", { class: "plain", dir: "auto" }, piece)),
    );
  const lines = clean.split("\n", FOLDED_LINES + 1);
  if (clean.length <= FOLDED && lines.length <= FOLDED_LINES) {
    show(clean);
    return [body];
  }
  const beginning = lines.slice(0, FOLDED_LINES).join("\n").slice(0, FOLDED);
  const more = h("button", { type: "button", class: "fold", "aria-expanded": "false" });
  let isOpen = false;
  const draw = () => {
    show(isOpen ? clean : `${beginning}…`);
    more.textContent = isOpen
      ? "Show less"
      : `Show all ${clean.length.toLocaleString("en")} characters`;
    more.setAttribute("aria-expanded", String(isOpen));
  };
  more.addEventListener("click", () => {
    isOpen = !isOpen;
    draw();
  });
  draw();
  return [body, more];
}

/** @param {Json} part @param {FileOf} fileOf */
function chip(part, fileOf) {
  const name = h("bdi", {}, part.filename ?? "File");
  const told = h("span", { class: "file-name" }, name);
  const element = h("li", { class: "file-chip" }, icon("file"), told);
  const look = async () => {
    const file = await fileOf(part.file_id);
    if (!part.filename) name.textContent = file?.filename ?? GONE;
    const sentences = isUnread(file) ? ["Being read…"] : toldOf(file);
    fill(told, name, ...sentences.map((each) => h("small", { class: "told" }, each)));
    if (isUnread(file)) setTimeout(() => element.isConnected && look(), LOOK_MS);
  };
  if (part.file_id) look();
  return element;
}
