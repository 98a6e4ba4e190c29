// What a person said: their words as they wrote them, and the files that they gave with them.

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { harmless, pieces } from "./text.js";

/** @typedef {import("../api/client.js").Json} Json */

/** What is laid out at once. */
const PIECE = 3_000;
/** Longer ones are folded until somebody wants to see all of it. */
const FOLDED = 1_500;
const FOLDED_LINES = 18;

/**
 * @param {Json} item
 * @param {(file: string) => Promise<string>} nameOf a file's name
 */
export function question(item, nameOf) {
  const text = textOfQuestion(item);
  const files = (item.content ?? []).filter(
    (/** @type {Json} */ part) => part.type === "input_file",
  );
  const bubble = h("div", { class: "bubble" });
  if (files.length) {
    bubble.append(
      h(
        "ul",
        { class: "files" },
        files.map((/** @type {Json} */ f) => chip(f, nameOf)),
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

/** @param {Json} part @param {(file: string) => Promise<string>} nameOf */
function chip(part, nameOf) {
  const name = h("bdi", {}, part.filename ?? "File");
  if (part.file_id && !part.filename)
    nameOf(part.file_id).then((found) => (name.textContent = found));
  return h("li", { class: "file-chip" }, icon("file"), name);
}
