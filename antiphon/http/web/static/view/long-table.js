// A table that is long, or still being written: its rows are put behind those that are there, and
// nothing that has been laid out is laid out again.

import { h } from "./dom.js";
import { tableFrame } from "./made.js";
import { blocksOf, elementsOf } from "./markdown.js";
import { directionOf } from "./text.js";

/** @typedef {import("./markdown.js").Token} Token */

/** Beyond so many rows columns keep the widths that they have, and the table goes on as another. */
const PART = 60;
const NARROWEST_PX = 56;

export class LongTable {
  /** @param {Token} token */
  constructor(token) {
    const lines = token.raw.split("\n");
    this.head = `${lines[0]}\n${lines[1]}\n`;
    this.element = tableFrame();
    this.element.dir = directionOf(token.raw);
    const table = elementsOf([{ ...token, rows: [] }]).querySelector("table");
    this.table = this.element.appendChild(table ?? h("table", {}));
    this.body = this.table.appendChild(h("tbody", {}));
    this.window = 1_200;
    /** @type {number[] | null} */
    this.widths = null;
  }

  /** @param {string} window @param {boolean} isWhole */
  take(window, isWhole) {
    const tokens = blocksOf(this.head + window);
    const table = tokens[0];
    if (table?.type !== "table") return { used: 0, isOver: true };
    const follows = tokens.slice(1).some((token) => token.type !== "space");
    const own = table.raw.length - this.head.length;
    if (follows || isWhole) {
      this.#add(table, table.rows);
      return { used: Math.max(0, Math.min(own, window.length)), isOver: true };
    }
    // The last line isn't whole, or what follows may be one more.
    const used = window.lastIndexOf("\n") + 1;
    const lines = window.slice(0, used).split("\n").length - 1;
    this.#add(table, table.rows.slice(0, lines));
    return { used, isOver: /\n\s*\n$/.test(window.slice(0, used)) };
  }

  /** @param {Token} token @param {any[]} rows */
  #add(token, rows) {
    for (let at = 0; at < rows.length;) {
      const room = PART - this.body.childElementCount;
      if (room <= 0) {
        this.#begin();
        continue;
      }
      const some = rows.slice(at, at + room);
      this.body.append(...elementsOf([{ ...token, rows: some }]).querySelectorAll("tbody > tr"));
      at += some.length;
    }
  }

  /** Go on in a table of its own, as wide as the first one. */
  #begin() {
    this.widths ??= this.#measured();
    const columns = this.widths.map((width) => {
      const column = h("col", {});
      column.style.width = `${width}px`;
      return column;
    });
    this.body = h("tbody", {});
    const table = h("table", { class: "fixed" }, h("colgroup", {}, columns), this.body);
    const part = h("div", { class: "table-part" }, table);
    part.style.width = `${this.widths.reduce((sum, width) => sum + width, 0)}px`;
    this.element.append(part);
  }

  #measured() {
    const cells = [...this.table.querySelectorAll("thead th")];
    const widths = cells.map((cell) =>
      Math.max(NARROWEST_PX, Math.ceil(cell.getBoundingClientRect().width)),
    );
    cells.forEach((cell, index) => {
      /** @type {HTMLElement} */ (cell).style.width = `${widths[index]}px`;
    });
    this.table.classList.add("fixed");
    return widths;
  }
}
