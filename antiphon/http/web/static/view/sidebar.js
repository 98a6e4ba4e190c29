// The list of conversations: to find one, and to do something with it.

import { addressOf, wantsAnother } from "../chat/address.js";
import { rootOf } from "../chat/versions.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/** @typedef {import("../api/client.js").Json} Json */

const PAUSE_MS = 200;
const DAY_S = 86_400;

export class Sidebar {
  /**
   * @param {import("../chat/library.js").Library} library
   * @param {object} desk
   * @param {() => void} desk.begin
   * @param {(id: string) => void} desk.open
   * @param {() => void} desk.changed
   * @param {(entry: Json) => void} desk.removed
   * @param {() => void} desk.settings
   * @param {(error: Error) => void} desk.failed
   */
  constructor(library, desk) {
    this.library = library;
    this.desk = desk;
    /** @type {string | null} the family that is open */
    this.open = null;
    this.timer = 0;
    this.menu = new Menu();
    this.search = h("input", {
      type: "search",
      class: "field",
      placeholder: "Search titles",
      "aria-label": "Search conversations",
      autocomplete: "off",
      maxLength: 200,
      oninput: () => this.#searched(),
    });
    this.archive = h("button", {
      type: "button",
      class: "link",
      onclick: () => this.#toggleArchive(),
    });
    this.list = h("div", { class: "list" });
    const begin = h(
      "button",
      { type: "button", class: "begin", onclick: desk.begin, title: "New chat (Ctrl+Shift+O)" },
      icon("plus"),
      h("span", {}, "New chat"),
    );
    const home = (/** @type {MouseEvent} */ event) => {
      if (wantsAnother(event)) return;
      event.preventDefault();
      desk.begin();
    };
    const settings = iconButton("Settings", icon("settings"), desk.settings);
    this.element = h(
      "nav",
      { class: "sidebar", id: "sidebar", "aria-label": "Conversations" },
      h(
        "a",
        { class: "brand", href: "/", onclick: home },
        h("span", { class: "mark" }),
        "Antiphon",
      ),
      begin,
      h("label", { class: "search" }, icon("search"), this.search),
      this.list,
      h("div", { class: "foot" }, this.archive, settings),
      this.menu.element,
    );
    library.changed.on(() => this.draw());
    this.draw();
  }

  /** @param {string | null} root */
  mark(root) {
    this.open = root;
    for (const link of this.list.querySelectorAll("a")) {
      if (link.dataset.root === root) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  draw() {
    const { entries, isLoaded, error, search, archived, hasMore } = this.library;
    this.archive.textContent = archived ? "Back to chats" : "Archive";
    const focused = this.#focused();
    /** @type {Node[]} */
    const shown = [];
    let group = "";
    let items = h("ul", {});
    for (const entry of entries) {
      const name = groupOf(entry);
      if (name !== group) {
        group = name;
        items = h("ul", {});
        shown.push(h("section", {}, h("h2", {}, name), items));
      }
      items.append(this.#entry(entry));
    }
    const none = search ? "Nothing found." : archived ? "The archive is empty." : "No chats yet.";
    if (error && !entries.length) shown.push(h("p", { class: "hint" }, error.message));
    else if (isLoaded && !entries.length) shown.push(h("p", { class: "hint" }, none));
    if (hasMore) {
      const more = () => this.library.more();
      shown.push(h("button", { type: "button", class: "link more", onclick: more }, "Show more"));
    }
    fill(this.list, ...shown);
    if (focused) this.#refocus(focused);
  }

  /** @param {Json} entry */
  #entry(entry) {
    const title = this.library.titleOf(entry);
    const root = rootOf(entry);
    const onclick = (/** @type {MouseEvent} */ event) => {
      if (wantsAnother(event)) return;
      event.preventDefault();
      this.desk.open(entry.id);
    };
    const link = h("a", { href: addressOf(entry.id), dir: "auto", title, onclick }, title);
    link.dataset.root = root;
    if (root === this.open) link.setAttribute("aria-current", "page");
    const button = iconButton(
      `More about ${title}`,
      icon("more"),
      () => this.#menu(entry, button, link),
      {
        class: "icon-button more",
        "aria-haspopup": "menu",
      },
    );
    return h("li", {}, link, button);
  }

  /** @param {Json} entry @param {HTMLElement} button @param {HTMLElement} link */
  #menu(entry, button, link) {
    const archived = entry.archived;
    this.menu.open(button, [
      { label: "Rename", face: icon("edit"), act: () => this.#rename(entry, link) },
      {
        label: archived ? "Bring back" : "Archive",
        face: icon("archive"),
        act: () => this.#try(this.library.archive(entry, !archived)),
      },
      {
        label: entry.memory ? "Stop using memory" : "Use memory",
        face: icon("memory"),
        act: () => this.#try(this.library.useMemory(entry, !entry.memory)),
      },
      { label: "Delete", face: icon("trash"), act: () => this.desk.removed(entry) },
    ]);
  }

  /** @param {Json} entry @param {HTMLElement} link */
  #rename(entry, link) {
    const field = h("input", {
      type: "text",
      class: "field",
      value: entry.title ?? "",
      maxLength: 200,
      dir: "auto",
      "aria-label": "New title",
    });
    let isOver = false;
    const end = (/** @type {boolean} */ isWanted) => {
      if (isOver) return;
      isOver = true;
      field.replaceWith(link);
      if (isWanted) this.#try(this.library.rename(entry, field.value.trim()));
      link.focus();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) end(true);
      else if (event.key === "Escape") end(false);
      else return;
      event.stopPropagation();
      event.preventDefault();
    });
    field.addEventListener("blur", () => end(true));
    link.replaceWith(field);
    field.focus();
    field.select();
  }

  #searched() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.library.search = this.search.value.trim();
      this.library.refresh();
    }, PAUSE_MS);
  }

  #toggleArchive() {
    this.library.archived = !this.library.archived;
    this.library.refresh();
  }

  /** @param {Promise<void>} work */
  #try(work) {
    work.then(this.desk.changed, (error) => this.desk.failed(error));
  }

  /** The list is drawn anew; whoever was in it stays there. */
  #focused() {
    const element = /** @type {HTMLElement | null} */ (document.activeElement);
    if (!element || !this.list.contains(element)) return null;
    if (element instanceof HTMLInputElement) return null;
    const link = element.closest("li")?.querySelector("a");
    return { root: link?.dataset.root, isLink: element === link };
  }

  /** @param {{root: string | undefined, isLink: boolean}} focused */
  #refocus({ root, isLink }) {
    const link = [...this.list.querySelectorAll("a")].find((each) => each.dataset.root === root);
    const target = isLink ? link : link?.parentElement?.querySelector("button");
    target?.focus();
  }
}

/** @param {Json} entry */
function groupOf(entry) {
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  const days = Math.ceil((midnight - entry.updated_at) / DAY_S);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Last 7 days";
  return days <= 30 ? "Last 30 days" : "Older";
}
