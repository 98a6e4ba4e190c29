// What a screen reader says by itself: that an answer has begun, and what it was once it is whole.
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

  /** @param {string} text of an answer that is whole */
  answered(text) {
    if (text.length <= READ_OUT) return this.say(`Answer: ${text}`);
    const words = text.split(/\s+/).length;
    const beginning = text.slice(0, READ_OUT / 2).replace(/\s+\S*$/, "");
    this.say(`Answer of ${words} words: ${beginning}…`);
  }
}
