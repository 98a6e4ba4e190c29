// A question with its answer, and what can be done with the question.

import { isUnsent } from "../chat/turns.js";
import { copyButton } from "./copying.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { question, textOfQuestion } from "./question.js";
import { Reply } from "./reply.js";

/** @typedef {import("../chat/turns.js").Turn} Turn */
/** @typedef {{count: number, at: number, go: (to: number) => void} | null} Versions */
/**
 * @typedef {object} Desk what a turn needs of its surroundings
 * @property {import("../api/client.js").Client} client
 * @property {(turn: Turn, action: import("../chat/notices.js").Action) => void} act
 * @property {(turn: Turn, text: string) => void} edited
 * @property {import("./question.js").FileOf} fileOf
 * @property {() => void} drawn
 */

const BRANCHES = "The new version begins a branch. This one is kept.";
const REPLACES = "The new version takes the place of this one.";

export class TurnView {
  /** @param {Turn} turn @param {Desk} desk */
  constructor(turn, desk) {
    this.turn = turn;
    this.desk = desk;
    this.reply = new Reply(turn, desk);
    this.question = h("div", { class: "asked" });
    this.versions = h("span", { class: "versions", hidden: true });
    this.element = h("article", { class: "turn" }, this.question, this.reply.element);
    this.#drawQuestion();
    this.reply.update();
  }

  update() {
    this.reply.update();
  }

  grow() {
    this.reply.grow();
  }

  /** @param {Versions} versions */
  showVersions(versions) {
    this.versions.hidden = versions === null || versions.count < 2;
    if (versions === null || versions.count < 2) return;
    const { count, at, go } = versions;
    fill(
      this.versions,
      iconButton("Previous version", icon("left"), () => go(at - 1), { disabled: at === 0 }),
      h("span", { "aria-label": `Version ${at + 1} of ${count}` }, `${at + 1}/${count}`),
      iconButton("Next version", icon("right"), () => go(at + 1), { disabled: at === count - 1 }),
    );
  }

  /** Let the question be written anew. */
  edit() {
    const text = textOfQuestion(this.turn.user ?? {});
    const area = h("textarea", {
      class: "field",
      value: text,
      rows: 3,
      "aria-label": "Edit your message",
    });
    const save = () => {
      const edited = area.value.trim();
      this.#drawQuestion();
      if (edited && edited !== text) this.desk.edited(this.turn, edited);
    };
    const cancel = () => {
      this.#drawQuestion();
      /** @type {HTMLElement | null} */ (this.question.querySelector(".edit"))?.focus();
    };
    const keys = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") cancel();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    area.addEventListener("keydown", keys);
    fill(
      this.question,
      h(
        "div",
        { class: "editing" },
        area,
        h("p", { class: "hint" }, isUnsent(this.turn) ? REPLACES : BRANCHES),
        h("button", { type: "button", class: "button quiet", onclick: cancel }, "Cancel"),
        h("button", { type: "button", class: "button", onclick: save }, "Send"),
      ),
    );
    area.focus();
    area.setSelectionRange(text.length, text.length);
  }

  #drawQuestion() {
    const { user } = this.turn;
    if (!user) return fill(this.question);
    const actions = h(
      "div",
      { class: "actions" },
      this.versions,
      copyButton("Copy message", () => textOfQuestion(user), icon("copy")),
      iconButton("Edit message", icon("edit"), () => this.desk.act(this.turn, "edit"), {
        class: "icon-button edit",
      }),
    );
    fill(this.question, question(user, this.desk.fileOf), actions);
  }
}
