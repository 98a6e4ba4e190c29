// What a screen reader says by itself: that a message is on its way, and what came of it in the end.
// Not word by word: nobody can listen to a stream of restarts.

import { h } from "./dom.js";

const READ_OUT = 400;

export class Announcer {
  constructor() {
    this.element = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  }

  /** @param {string} text */
  say(text) {
    this.element.textContent = text;
  }

  /**
   * @param {string} text of an answer that has ended; may be empty
   * @param {string[]} told what there is to say of it
   */
  answered(text, told) {
    this.say([...(text ? [readOut(text)] : []), ...told].join(" "));
  }
}

/** @param {string} text */
function readOut(text) {
  if (text.length <= READ_OUT) return `Answer: ${text}`;
  const words = text.split(/\s+/).length;
  const beginning = text.slice(0, READ_OUT / 2).replace(/\s+\S*$/, "");
  return `Answer of ${words} words: ${beginning}…`;
}
