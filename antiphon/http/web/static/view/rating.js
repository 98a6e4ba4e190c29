// Thumbs, and the reason for one, if somebody cares to give it.

import { kept } from "../chat/storage.js";
import { h, iconButton } from "./dom.js";
import { icon } from "./icons.js";

const PREFIX = "rating.";

export class Rating {
  /** @param {import("../api/client.js").Client} client @param {() => string | null} responseId */
  constructor(client, responseId) {
    this.client = client;
    this.responseId = responseId;
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
    this.#show(this.rating);
  }

  /** @returns {"up" | "down" | null} the API doesn't tell it again: the browser remembers */
  get rating() {
    return kept.get(PREFIX + this.responseId());
  }

  /** @param {"up" | "down"} rating */
  async #rate(rating) {
    if (!(await this.#send(rating, null))) return;
    kept.set(PREFIX + this.responseId(), rating);
    this.#show(rating);
    this.form.hidden = false;
    this.reason.hidden = false;
    this.said.textContent = "";
    this.reason.focus();
  }

  /** @param {Event} event */
  #explain = async (event) => {
    event.preventDefault();
    const reason = this.reason.value.trim();
    const rating = this.rating;
    if (!reason || !rating) {
      this.form.hidden = true;
    } else if (await this.#send(rating, reason)) {
      this.reason.value = "";
      this.said.textContent = "Thank you.";
    }
  };

  /** @param {"up" | "down"} rating @param {string | null} reason */
  async #send(rating, reason) {
    const id = this.responseId();
    if (id === null) return false;
    try {
      await this.client.rateResponse(id, rating, reason);
      return true;
    } catch (error) {
      this.form.hidden = false;
      this.said.textContent = /** @type {Error} */ (error).message;
      return false;
    }
  }

  /** @param {"up" | "down" | null} rating */
  #show(rating) {
    this.up.setAttribute("aria-pressed", String(rating === "up"));
    this.down.setAttribute("aria-pressed", String(rating === "down"));
  }
}
