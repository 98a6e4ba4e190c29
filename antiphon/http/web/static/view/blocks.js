// The text of an answer, block by block. While it grows only its last block is made again; what is
// settled stays. Long blocks are settled in parts, so that no length holds up a frame.

import { h } from "./dom.js";
import { LongCode, openFence } from "./long-code.js";
import { LongTable } from "./long-table.js";
import { blocksOf } from "./markdown.js";
import { made, plain, runOn } from "./made.js";
import { soon } from "./slices.js";
import { harmless } from "./text.js";

/** @typedef {import("./markdown.js").Token} Token */
/**
 * @typedef {object} Going a block that goes on
 * @property {number} window how many characters it can take at once
 * @property {(text: string, isWhole: boolean) => {used: number, isOver: boolean}} take some of what
 *   follows; how much of it is settled now, and whether the block is over
 */

/** How much is parsed at once. */
const WINDOW = 6_000;
/** A block that is longer is settled in parts. */
const LONG = 2_000;

export class Blocks {
  /** @param {HTMLElement} element @param {() => void} drawn */
  constructor(element, drawn = () => {}) {
    this.element = element;
    this.drawn = drawn;
    this.given = "";
    this.taken = "";
    /** What was taken, made fit to be shown. */
    this.text = "";
    this.isWhole = false;
    /** How much of the text is in settled blocks. */
    this.settled = 0;
    /** @type {Going | null} */
    this.going = null;
    this.tail = h("div", { class: "tail" });
    element.append(this.tail);
  }

  /** @param {string} text all of it so far @param {boolean} isWhole */
  set(text, isWhole) {
    this.given = text;
    this.isWhole = isWhole;
    this.element.classList.remove("whole");
    soon(this.#draw);
  }

  /** Take what was given since the last time. It comes far more often than it can be seen. */
  #take() {
    const { given, taken } = this;
    if (!given.startsWith(taken)) {
      this.element.replaceChildren(this.tail);
      this.text = harmless(given);
      this.settled = 0;
      this.going = null;
    } else this.text += harmless(given.slice(taken.length));
    this.taken = given;
  }

  /** @param {number} deadline */
  #draw = (deadline) => {
    if (this.given !== this.taken) this.#take();
    let isDone = false;
    while (!isDone) {
      isDone = this.#step();
      if (performance.now() > deadline) break;
    }
    this.drawn();
    return isDone;
  };

  /** @returns {boolean} whether all that is there is shown */
  #step() {
    const size = this.going?.window ?? WINDOW;
    const window = this.text.slice(this.settled, this.settled + size);
    const isLast = this.settled + window.length >= this.text.length;
    const isWhole = isLast && this.isWhole;
    if (this.going) return this.#goOn(this.going, window, isLast, isWhole);
    const tokens = blocksOf(window);
    const open = isWhole ? tokens.length : lastBlock(tokens);
    let used = 0;
    for (const token of tokens.slice(0, open)) {
      // The parser may have put a line end in: then it is asked anew from here.
      if (!window.startsWith(token.raw, used)) return this.#advance(used, window);
      this.#settle(made(token));
      used += token.raw.length;
    }
    if (isWhole) return this.#end();
    this.settled += used;
    const tail = tokens[open];
    const isLong = tail !== undefined && (tail.raw.length > LONG || openFence(tail) !== null);
    if (isLast && !isLong) {
      this.tail.replaceChildren(...made(tail));
      return true;
    }
    if (used === 0 && tail && !this.#begin(tail, window)) return this.#advance(0, window);
    return false;
  }

  /** Nothing follows. */
  #end() {
    this.settled = this.text.length;
    this.going = null;
    this.tail.replaceChildren();
    this.element.classList.add("whole");
    return true;
  }

  /** @param {number} used @param {string} window what can't be used otherwise is text */
  #advance(used, window) {
    if (used === 0) this.#settle(plain(window));
    this.settled += used || window.length;
    return false;
  }

  /**
   * @param {Going} going
   * @param {string} window
   * @param {boolean} isLast
   * @param {boolean} isWhole
   */
  #goOn(going, window, isLast, isWhole) {
    const { used, isOver } = going.take(window, isWhole);
    this.settled += used;
    if (isOver) this.going = null;
    if (isWhole && this.settled >= this.text.length) return this.#end();
    return isLast && !isOver;
  }

  /**
   * Settle what can be of a long block.
   *
   * @param {Token} token
   * @param {string} window
   * @returns {boolean} whether anything was
   */
  #begin(token, window) {
    this.tail.replaceChildren();
    const fence = openFence(token);
    if (fence) {
      const code = new LongCode(fence);
      this.#settle([code.element]);
      this.going = code;
      this.settled += fence.head.length;
      return true;
    }
    if (token.type === "table") {
      const table = new LongTable(/** @type {any} */ (token));
      this.#settle([table.element]);
      this.going = table;
      this.settled += table.head.length;
      return true;
    }
    if (token.type === "list" && token.items.length > 1) {
      const items = token.items.slice(0, -1);
      const raw = items.map((/** @type {Token} */ item) => item.raw).join("");
      if (window.startsWith(raw)) {
        this.#settle(made(/** @type {Token} */ ({ ...token, items, raw })), "goes-on");
        this.settled += raw.length;
        return true;
      }
    }
    const cut = runOn(window.slice(0, token.raw.length), LONG);
    if (cut === 0) return false;
    const part = window.slice(0, cut);
    const isText = token.type === "paragraph" || token.type === "text";
    const elements = isText ? made(blocksOf(part)[0]) : plain(part);
    this.#settle(elements, "goes-on");
    this.settled += cut;
    return true;
  }

  /** @param {Element[]} elements @param {string} [how] */
  #settle(elements, how) {
    if (how) for (const element of elements) element.classList.add(how);
    this.tail.before(...elements);
    this.tail.replaceChildren();
  }
}

/** @param {Token[]} tokens the place of the last one that is more than space */
function lastBlock(tokens) {
  let place = tokens.length - 1;
  while (place > 0 && tokens[place].type === "space") place -= 1;
  return Math.max(place, 0);
}
