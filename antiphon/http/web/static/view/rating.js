// Thumbs, and the reason for one, if somebody cares to give it.

import { h, iconButton } from "./dom.js";
import { icon } from "./icons.js";

/** @typedef {import("../api/client.js").Json} Json */

export class Rating {
  /** @param {import("../api/client.js").Client} client @param {() => Json | null} response */
  constructor(client, response) {
    this.client = client;
    this.response = response;
    this.up = iconButton("Good answer", icon("thumbUp"), () => this.#rate("up"));
    this.down = iconButton("Bad answer", icon("thumbDown"), () => this.#rate("down"));
    this.buttons = [this.up, this.down];
    this.reason = h("input", {
      type: "text",
      class: "field",
      maxLength: 4000,
      "aria-label": "Why? (optional)",
      placeholder: "Why? (optional)",
      autocomplete: "off",
    });
    this.said = h("span", { class: "said", role: "status" });
    const send = h("button", { type: "submit", class: "button small" }, "Send");
    this.form = h(
      "form",
      { class: "rating", hidden: true, onsubmit: this.#explain },
      this.reason,
      send,
    );
    this.form.append(this.said);
    this.show();
  }

  /** What the server has. */
  show() {
    const rating = this.response()?.feedback?.rating;
    this.up.setAttribute("aria-pressed", String(rating === "up"));
    this.down.setAttribute("aria-pressed", String(rating === "down"));
  }

  /** @param {"up" | "down"} rating the same once more lets its reason be seen, and changed */
  async #rate(rating) {
    const known = this.response()?.feedback;
    if (known?.rating !== rating && !(await this.#send(rating, null))) return;
    this.reason.value = this.response()?.feedback?.reason ?? "";
    this.form.hidden = false;
    this.said.textContent = "";
    this.reason.focus();
  }

  /** @param {Event} event */
  #explain = async (event) => {
    event.preventDefault();
    const reason = this.reason.value.trim() || null;
    const known = this.response()?.feedback;
    if (!known || reason === known.reason) {
      this.form.hidden = true;
    } else if (await this.#send(known.rating, reason)) {
      this.said.textContent = "Thank you.";
    }
  };

  /** @param {"up" | "down"} rating @param {string | null} reason */
  async #send(rating, reason) {
    const response = this.response();
    if (response === null) return false;
    try {
      response.feedback = await this.client.rateResponse(response.id, rating, reason);
      this.show();
      return true;
    } catch (error) {
      this.form.hidden = false;
      this.said.textContent = /** @type {Error} */ (error).message;
      return false;
    }
  }
}
