// What was answered: the text as it comes, what there is to say of it, and what can be done with
// it.

import { refusalOf, textOf } from "../chat/answer.js";
import { noticesOf } from "../chat/notices.js";
import { isOver } from "../chat/turns.js";
import { Blocks } from "./blocks.js";
import { copyButton } from "./copying.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { Rating } from "./rating.js";
import { sourcesOf } from "./sources.js";

/** @typedef {import("../api/client.js").Json} Json */
/** @typedef {import("../chat/notices.js").Action} Action */
/** @typedef {import("../chat/turns.js").Turn} Turn */

const LABELS = /** @type {const} */ ({
  hurry: "Try now",
  again: "Try again",
  regenerate: "Regenerate",
  key: "Enter a key",
  edit: "Edit message",
});

export class Reply {
  /**
   * @param {Turn} turn
   * @param {object} desk
   * @param {import("../api/client.js").Client} desk.client
   * @param {(turn: Turn, action: Action) => void} desk.act
   * @param {() => void} desk.drawn
   * @param {import("./question.js").FileOf} desk.fileOf
   */
  constructor(turn, desk) {
    this.turn = turn;
    this.desk = desk;
    this.body = h("div", { class: "markdown" });
    this.blocks = new Blocks(this.body, desk.drawn);
    this.refusal = h("p", { class: "refusal", dir: "auto", hidden: true });
    this.sources = h("div", { class: "sources", hidden: true });
    this.notices = h("div", { class: "notices" });
    this.actions = h("div", { class: "actions" });
    this.model = h("span", { class: "model" });
    this.rating = new Rating(desk.client, () => this.turn.response);
    this.timer = 0;
    /** Of the notices that are shown: what each looks like, and what can be done about it. */
    this.kinds = "";
    this.element = h(
      "div",
      { class: "reply" },
      h("h2", { class: "visually-hidden" }, "Answer"),
      this.body,
      this.refusal,
      this.sources,
      this.notices,
      this.actions,
    );
  }

  /** The text has grown. */
  grow() {
    this.blocks.set(this.text, isOver(this.turn));
  }

  /** Something else has changed. */
  update() {
    const over = isOver(this.turn);
    this.element.classList.toggle("streaming", !over && this.turn.live?.phase !== "lost");
    this.element.setAttribute("aria-busy", String(!over));
    this.grow();
    const refusal = this.turn.live?.refusal || this.turn.items.map(refusalOf).join("");
    this.refusal.textContent = refusal;
    this.refusal.hidden = refusal === "";
    const sources = over ? sourcesOf(this.turn.items, this.desk.fileOf) : [];
    fill(this.sources, ...sources);
    this.sources.hidden = sources.length === 0;
    this.#drawNotices();
    this.#drawActions(over);
    this.desk.drawn();
  }

  /** @returns {string} */
  get text() {
    return this.turn.live?.text || this.turn.items.map(textOf).join("\n\n");
  }

  #drawNotices() {
    clearTimeout(this.timer);
    const notices = noticesOf(this.turn);
    // While text comes, the text says enough.
    const shown =
      this.turn.live?.phase === "writing" ? notices.filter((n) => n.tone !== "quiet") : notices;
    const kinds = shown.map(({ tone, action }) => `${tone} ${action}`).join();
    if (kinds === this.kinds) {
      // Only time has passed: whoever is on a button stays there.
      shown.forEach(({ text, detail }, index) => {
        const words = /** @type {HTMLElement} */ (this.notices.children[index].firstElementChild);
        if (words.textContent !== text) words.textContent = text;
        words.title = detail ?? "";
      });
    } else fill(this.notices, ...shown.map((notice) => this.#notice(notice)));
    this.kinds = kinds;
    const due = Math.min(...notices.map((notice) => notice.until ?? Infinity));
    const isCounting = this.turn.live?.phase === "queued" && this.turn.live.expectedMs !== null;
    if ((Number.isFinite(due) && due > Date.now()) || isCounting) {
      this.timer = window.setTimeout(() => this.#drawNotices(), 1000);
    }
  }

  /** @param {import("../chat/notices.js").Notice} notice */
  #notice({ tone, text, detail, action }) {
    const onclick = () => action && this.desk.act(this.turn, action);
    return h(
      "p",
      { class: `notice ${tone}` },
      h("span", { title: detail ?? null }, text),
      action && h("button", { type: "button", class: "link", onclick }, LABELS[action]),
    );
  }

  /** @param {boolean} over */
  #drawActions(over) {
    this.actions.hidden = !over || (!this.text && !this.turn.response);
    this.model.textContent = this.turn.response?.model ?? "";
    this.rating.show();
    if (this.actions.hidden || this.actions.childElementCount) return;
    const regenerate = () => this.desk.act(this.turn, "regenerate");
    fill(
      this.actions,
      copyButton("Copy answer", () => this.text, icon("copy")),
      ...this.rating.buttons,
      iconButton("Regenerate", icon("redo"), regenerate),
      this.model,
      this.rating.form,
    );
  }
}
