// The list of conversations: to find one, and to do something with it.

import { addressOf, wantsAnother } from "../chat/address.js";
import { rootOf } from "../chat/versions.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { marked } from "./marking.js";
import { Menu } from "./menu.js";
import { harmless } from "./text.js";

/** @typedef {import("../api/client.js").Json} Json */

const PAUSE_MS = 200;
const DAY_S = 86_400;

export class Sidebar {
  /**
   * @param {import("../chat/library.js").Library} library
   * @param {object} desk
   * @param {() => void} desk.begin
   * @param {(id: string, item?: string) => void} desk.open at a message, where one was found
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
    this.isRenaming = false;
    this.menu = new Menu();
    this.search = h("input", {
      type: "search",
      class: "field",
      placeholder: "Search chats",
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
    this.said = h("p", { class: "visually-hidden", role: "status" });
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
      this.said,
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
    if (this.isRenaming) return; // it is drawn when the new name is written
    const { entries, isLoaded, isSearching, error, search, archived, hasMore } = this.library;
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
    const hint = (/** @type {string} */ text) => shown.push(h("p", { class: "hint" }, text));
    if (isSearching) hint("Searching…");
    else if (error && !entries.length) hint(error.message);
    else if (search && !entries.length) hint(nothing(hasMore));
    else if (isLoaded && !entries.length) hint(archived ? "The archive is empty." : "No chats yet.");
    if (hasMore) {
      const more = () => this.library.more();
      const label = search ? "Search older chats" : "Show more";
      shown.push(h("button", { type: "button", class: "link more", onclick: more }, label));
    }
    fill(this.list, ...shown);
    this.said.textContent = search && !isSearching ? counted(entries.length, hasMore) : "";
    if (focused) this.#refocus(focused);
  }

  /** @param {Json} entry */
  #entry(entry) {
    const { search } = this.library;
    const title = this.library.titleOf(entry);
    const root = rootOf(entry);
    const onclick = (/** @type {MouseEvent} */ event) => {
      if (wantsAnother(event)) return;
      event.preventDefault();
      this.desk.open(entry.id, entry.message?.item_id);
    };
    const link = h(
      "a",
      { href: addressOf(entry.id), dir: "auto", title, onclick },
      h("span", { class: "title" }, marked(title, search)),
      search && entry.archived ? h("span", { class: "tag" }, "Archived") : null,
      entry.message ? excerpt(entry.message, search) : null,
    );
    link.dataset.root = root;
    if (root === this.open) link.setAttribute("aria-current", "page");
    const button = iconButton(
      `More about ${title}`,
      icon("more"),
      () => this.#menu(entry, button),
      {
        class: "icon-button more",
        "aria-haspopup": "menu",
      },
    );
    return h("li", {}, link, button);
  }

  /** @param {Json} entry @param {HTMLElement} button */
  #menu(entry, button) {
    const archived = entry.archived;
    this.menu.open(button, [
      { label: "Rename", face: icon("edit"), act: () => this.#rename(entry) },
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

  /** @param {Json} entry */
  #rename(entry) {
    // The list may have been drawn anew while its menu was open.
    const link = this.#linkOf(rootOf(entry));
    if (!link) return;
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
      this.isRenaming = false;
      field.replaceWith(link);
      if (isWanted) this.#try(this.library.rename(entry, field.value.trim()));
      link.focus();
      this.draw();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) end(true);
      else if (event.key === "Escape") end(false);
      else return;
      event.stopPropagation();
      event.preventDefault();
    });
    field.addEventListener("blur", () => end(true));
    this.isRenaming = true;
    link.replaceWith(field);
    field.focus();
    field.select();
  }

  #searched() {
    clearTimeout(this.timer);
    const search = this.search.value.trim();
    this.library.look(search);
    this.timer = window.setTimeout(() => this.library.refresh(), search ? PAUSE_MS : 0);
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
    const link = this.#linkOf(root);
    const target = isLink ? link : link?.parentElement?.querySelector("button");
    target?.focus();
  }

  /** @param {string | undefined} root */
  #linkOf(root) {
    return [...this.list.querySelectorAll("a")].find((each) => each.dataset.root === root);
  }
}

/** @param {Json} message @param {string} search what was said, and by whom */
function excerpt(message, search) {
  const who = message.role === "user" ? "You: " : "Answer: ";
  const text = harmless(message.excerpt);
  return h("small", { class: "excerpt", dir: "auto" }, who, marked(text, search));
}

/** @param {boolean} hasMore */
function nothing(hasMore) {
  return hasMore ? "Nothing found in the newest chats." : "Nothing found.";
}

/** @param {number} count @param {boolean} hasMore for those who hear it */
function counted(count, hasMore) {
  if (count === 0) return nothing(hasMore);
  return count === 1 ? "1 chat found" : `${count} chats found`;
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
