// A word at the edge of the screen that goes by itself, perhaps with something to do about it.

import { h } from "./dom.js";

const SHOWN_MS = 6000;

export class Toasts {
  constructor() {
    this.element = h("div", { class: "toasts", role: "status" });
  }

  /**
   * @param {string} text
   * @param {{label?: string, act?: () => void, ms?: number}} [options]
   */
  show(text, { label, act, ms = SHOWN_MS } = {}) {
    const toast = h("div", { class: "toast" }, h("span", {}, text));
    const go = () => toast.remove();
    if (label && act) {
      const onclick = () => {
        go();
        act();
      };
      toast.append(h("button", { type: "button", class: "link", onclick }, label));
    }
    this.element.append(toast);
    setTimeout(go, ms);
  }
}
