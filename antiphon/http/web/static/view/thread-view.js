// A conversation on the screen: its turns in order, scrolled to where its reader wants to be.

import { h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { TurnView } from "./turn-view.js";

/** @typedef {import("../chat/thread.js").Thread} Thread */
/** @typedef {import("../chat/turns.js").Turn} Turn */
/** @typedef {import("./turn-view.js").Desk} Desk */

/** How far from the end counts as being there. */
const NEAR_PX = 80;

export class ThreadView {
  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = { ...desk, drawn: () => this.#drawn() };
    /** @type {Map<Turn, TurnView>} */
    this.views = new Map();
    this.list = h("div", { class: "turns" });
    this.empty = h(
      "div",
      { class: "empty" },
      h("p", { class: "greeting" }, "What can I help with?"),
      h(
        "p",
        { class: "hint" },
        "Enter sends, Shift and Enter begins a new line. Press ? for all keys.",
      ),
    );
    this.element = h("div", { class: "thread", tabIndex: -1, id: "thread" }, this.empty, this.list);
    this.toEnd = iconButton("To the newest message", icon("down"), () => this.scrollToEnd(), {
      class: "icon-button to-end",
      hidden: true,
    });
    this.isPinned = true;
    /** @type {Thread | null} */
    this.thread = null;
    this.stopListening = () => {};
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // Growing by a picture of the window, too: a keyboard that comes up must not hide the end.
    new ResizeObserver(() => this.#drawn()).observe(this.element);
  }

  /** @param {Thread} thread */
  show(thread) {
    this.stopListening();
    this.thread = thread;
    this.views.clear();
    this.list.replaceChildren();
    this.isPinned = true;
    this.stopListening = thread.changed.on((change) => {
      if (change.kind === "turns") this.#sync();
      else if (change.kind === "turn") this.views.get(change.turn)?.update();
      else if (change.kind === "text") this.views.get(change.turn)?.grow();
    });
    this.#sync();
  }

  /**
   * Which versions there are of each turn.
   *
   * @param {(turn: Turn) => import("./turn-view.js").Versions} of
   */
  showVersions(of) {
    for (const [turn, view] of this.views) view.showVersions(of(turn));
  }

  scrollToEnd() {
    this.isPinned = true;
    this.element.scrollTop = this.element.scrollHeight;
    this.#scrolled();
  }

  /** @param {number} index */
  scrollToTurn(index) {
    const turn = this.thread?.turns[index];
    const view = turn && this.views.get(turn);
    if (!view) return;
    this.isPinned = false;
    view.element.scrollIntoView({ block: "start" });
  }

  /**
   * To the turn that a message is in, as soon as it is there: the turns before the last hundred come
   * a little later.
   *
   * @param {string} id
   */
  scrollToItem(id) {
    const { thread } = this;
    if (!thread) return;
    const index = thread.turns.findIndex(({ user, items }) =>
      [user, ...items].some((each) => each?.id === id),
    );
    if (index >= 0) return this.scrollToTurn(index);
    this.scrollToEnd();
    if (thread.isWhole) return;
    const stop = thread.changed.on((change) => {
      if (change.kind !== "turns") return;
      stop();
      if (thread === this.thread) this.scrollToItem(id);
    });
  }

  #sync() {
    const turns = this.thread?.turns ?? [];
    for (const [turn, view] of this.views) {
      if (turns.includes(turn)) continue;
      view.element.remove();
      this.views.delete(turn);
    }
    // The newest first: what is seen first is drawn first.
    for (const turn of [...turns].reverse()) {
      if (!this.views.has(turn)) this.views.set(turn, new TurnView(turn, this.desk));
    }
    /** @type {HTMLElement | null} */
    let before = null;
    for (const turn of turns) {
      const element = /** @type {TurnView} */ (this.views.get(turn)).element;
      /** @type {Node | null} */
      const place = before ? before.nextSibling : this.list.firstChild;
      if (place !== element) this.list.insertBefore(element, place);
      before = element;
    }
    this.empty.hidden = turns.length > 0;
    this.#drawn();
  }

  #drawn() {
    if (this.isPinned) this.element.scrollTop = this.element.scrollHeight;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.isPinned = isNear;
    this.toEnd.hidden = isNear;
  }
}
