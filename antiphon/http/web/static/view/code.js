// A block of code: its language, a button to copy it, its text. It can grow while it is written.

import { h } from "./dom.js";
import { highlight } from "./highlight.js";
import { icon } from "./icons.js";
import { copyButton } from "./copying.js";

/** Lines that are laid out together. Text that grows lays out no more than the last of these. */
const LINES = 60;

export class CodeBlock {
  /** @param {string} language as it was written */
  constructor(language) {
    this.language = language.split(/\s/)[0].slice(0, 40);
    this.text = "";
    this.code = h("code", {});
    this.pre = h("pre", { tabIndex: 0 }, this.code);
    this.pre.setAttribute("aria-label", this.language ? `Code, ${this.language}` : "Code");
    this.pre.setAttribute("role", "group");
    const copy = copyButton("Copy code", () => this.text, icon("copy"));
    const head = h("div", { class: "code-head" }, h("span", {}, this.language || "text"), copy);
    this.element = h("div", { class: "code", dir: "ltr" }, head, this.pre);
  }

  /** @param {string} text all of it, which begins with what it was */
  grow(text) {
    const added = text.slice(this.text.length);
    this.text = text;
    const lines = added.split("\n");
    lines.forEach((line, index) => {
      if (index > 0) this.#newLine();
      this.#last().append(line);
    });
  }

  /** It is whole. */
  settle() {
    if (this.language) highlight(this.code, this.language);
  }

  #newLine() {
    const last = this.#last();
    const count = Number(last.dataset.lines ?? "1");
    if (count >= LINES) {
      this.code.append(h("span", { class: "code-lines" }));
      // The line end between two pieces is the one that their layout makes; it is text, too.
      last.append("\n");
    } else {
      last.dataset.lines = String(count + 1);
      last.append("\n");
    }
  }

  #last() {
    const last = /** @type {HTMLElement | null} */ (this.code.lastElementChild);
    return last ?? this.code.appendChild(h("span", { class: "code-lines" }));
  }
}

/** @param {string} text @param {string} language */
export function codeBlock(text, language) {
  const block = new CodeBlock(language);
  block.grow(text);
  block.settle();
  return block.element;
}
