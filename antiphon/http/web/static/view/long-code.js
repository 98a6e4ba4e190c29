// A fenced block of code that is still being written, or is long: what comes is put behind what is
// there, line by line, and nothing of it is parsed.

import { CodeBlock } from "./code.js";

/** @typedef {{head: string, mark: string, language: string}} Fence */

const MAY_END = /^ {0,3}(?:[`~]|$)/;
const OPEN = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

/**
 * @param {import("./markdown.js").Token} token
 * @returns {Fence | null} where its first line is whole
 */
export function openFence(token) {
  const found = token.type === "code" ? OPEN.exec(token.raw) : null;
  return found && { head: found[0], mark: found[1], language: found[2].trim() };
}

export class LongCode {
  /** @param {Fence} fence */
  constructor({ mark, language }) {
    this.window = 6_000;
    this.block = new CodeBlock(language);
    this.element = this.block.element;
    this.end = new RegExp(`^ {0,3}${mark[0]}{${mark.length},} *(?:\\n|$)`, "m");
    this.text = "";
  }

  /** @param {string} window @param {boolean} isWhole */
  take(window, isWhole) {
    // What was taken last may have ended within a line.
    const isMidLine = this.text !== "" && !this.text.endsWith("\n");
    const from = isMidLine ? window.indexOf("\n") + 1 || window.length : 0;
    const end = this.end.exec(window.slice(from));
    if (end !== null && (end[0].endsWith("\n") || isWhole) && (from > 0 || !isMidLine)) {
      this.#grow(window.slice(0, from + end.index));
      this.block.settle();
      return { used: from + end.index + end[0].length, isOver: true };
    }
    const line = Math.max(from, window.lastIndexOf("\n") + 1);
    // A line that isn't whole may become the end.
    const used = isWhole || !MAY_END.test(window.slice(line)) ? window.length : line;
    this.#grow(window.slice(0, used));
    if (isWhole) this.block.settle();
    return { used, isOver: false };
  }

  /** @param {string} added */
  #grow(added) {
    this.text += added;
    // The last line end belongs to the fence, as long as nothing follows.
    this.block.grow(this.text.replace(/\n$/, ""));
  }
}
