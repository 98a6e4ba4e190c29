// One line across the page: the server is away, since when, and when it is asked again.

import { Unreachable } from "../api/errors.js";
import { sleep } from "../chat/patience.js";
import { fill, h } from "./dom.js";

const LONGEST_MS = 15_000;

export class Banner {
  /** @param {() => Promise<any>} probe throws Unreachable while nobody answers */
  constructor(probe) {
    this.probe = probe;
    this.isAway = false;
    this.impatience = new EventTarget();
    this.element = h("div", { class: "banner", role: "status", hidden: true });
  }

  /**
   * Say that the server is away until it is back.
   *
   * @param {unknown} error of what was tried; only one that says so counts
   * @returns {Promise<boolean>} whether it was away, and is back
   */
  async await(error) {
    if (!(error instanceof Unreachable) || this.isAway) return false;
    this.isAway = true;
    for (let delay = 1000; ; delay = Math.min(delay * 2, LONGEST_MS)) {
      this.#draw();
      await sleep(delay, new AbortController().signal, this.impatience);
      try {
        await this.probe();
      } catch (again) {
        if (again instanceof Unreachable) continue;
      }
      this.isAway = false;
      this.element.hidden = true;
      return true;
    }
  }

  #draw() {
    const now = () => this.impatience.dispatchEvent(new Event("now"));
    fill(
      this.element,
      navigator.onLine ? "The server can't be reached." : "You are offline.",
      " What you write is kept. ",
      h("button", { type: "button", class: "link", onclick: now }, "Try now"),
    );
    this.element.hidden = false;
  }
}
