// One block of Markdown as elements of the page.

import { codeBlock } from "./code.js";
import { h } from "./dom.js";
import { elementsOf } from "./markdown.js";
import { directionOf } from "./text.js";

/** @typedef {import("./markdown.js").Token} Token */

/** @param {Token | undefined} token @returns {Element[]} */
export function made(token) {
  if (!token || token.type === "space") return [];
  if (token.type === "code") return [codeBlock(token.text, token.lang ?? "")];
  const fragment = elementsOf([token]);
  for (const code of fragment.querySelectorAll("pre > code")) {
    const language = /** @type {HTMLElement} */ (code).dataset.language ?? "";
    const text = (code.textContent ?? "").replace(/\n$/, "");
    code.parentElement?.replaceWith(codeBlock(text, language));
  }
  // These go the way of their words, but a browser that has to find it out by itself looks through
  // all of it whenever there is more.
  for (const block of fragment.querySelectorAll("ul, ol, table, blockquote")) {
    block.setAttribute("dir", directionOf(block.textContent ?? ""));
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = tableFrame();
    table.replaceWith(frame);
    frame.append(table);
  }
  return [...fragment.children];
}

/** What a wide table is moved in. */
export function tableFrame() {
  return h("div", { class: "table", tabIndex: 0, role: "group", "aria-label": "Table" });
}

/** @param {string} text as it is @returns {Element[]} */
export function plain(text) {
  return [h("p", { class: "plain", dir: "auto" }, text.replace(/\n$/, ""))];
}

/**
 * How much of a long block can be shown by itself: up to a line's end, or else between two words.
 *
 * @param {string} text
 * @param {number} least
 */
export function runOn(text, least) {
  if (text.length <= least) return 0;
  const line = text.indexOf("\n", least);
  const space = text.indexOf(" ", least);
  const ends = [line, space].filter((place) => place >= 0);
  if (ends.length) return Math.min(...ends) + 1;
  // One word: cut it anywhere, but not within a character.
  const code = text.charCodeAt(least - 1);
  return code >= 0xd800 && code < 0xdc00 ? least + 1 : least;
}
