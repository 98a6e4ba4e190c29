// A short list of things to do, beside the button that opened it.

import { fill, h } from "./dom.js";

/** @typedef {{label: string, face: Node, act: () => void}} Choice */

export class Menu {
  constructor() {
    this.element = h("div", { class: "menu", role: "menu", popover: "auto", onkeydown: this.#key });
    /** @type {HTMLElement | null} */
    this.button = null;
  }

  /** @param {HTMLElement} button @param {Choice[]} choices */
  open(button, choices) {
    this.button = button;
    const items = choices.map(({ label, face, act }) => {
      const onclick = () => {
        this.element.hidePopover();
        this.button?.focus();
        act();
      };
      return h("button", { type: "button", role: "menuitem", tabIndex: -1, onclick }, face, label);
    });
    fill(this.element, ...items);
    this.element.showPopover();
    const place = button.getBoundingClientRect();
    const { offsetHeight: height, offsetWidth: width } = this.element;
    const top = place.bottom + height > innerHeight ? place.top - height : place.bottom;
    this.element.style.top = `${Math.max(4, top)}px`;
    this.element.style.left = `${Math.max(4, Math.min(place.left, innerWidth - width - 4))}px`;
    items[0]?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key = (event) => {
    const items = /** @type {HTMLElement[]} */ ([...this.element.children]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) items.at(to % items.length)?.focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      this.element.hidePopover();
      this.button?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
