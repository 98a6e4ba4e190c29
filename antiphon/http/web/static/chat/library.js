// The list of conversations, and what is done with one as a whole. What belongs together as
// versions is one entry.

import { ApiError } from "../api/errors.js";
import { Signal } from "./signal.js";
import { kept } from "./storage.js";
import { newestOfEach, rootOf } from "./versions.js";

/** @typedef {import("../api/client.js").Client} Client */
/** @typedef {import("../api/client.js").Json} Json */

const PREFIX = "deleted.";
/** How long a deletion can be taken back. */
export const UNDO_MS = 8000;

export class Library {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    this.search = "";
    this.archived = false;
    this.hasMore = false;
    this.isLoaded = false;
    /** Whether only what is known here was looked at so far. */
    this.isSearching = false;
    /** @type {Error | null} why the list can't be shown as it is now */
    this.error = null;
    /** @type {Signal<[]>} */
    this.changed = new Signal();
    /** @type {Json[]} */
    this.found = [];
    /** @type {Map<string, string>} what to call those that have no title yet, by root */
    this.callNames = new Map();
    /** @type {Map<string, Json>} all that were in the list, by id */
    this.known = new Map();
    this.after = "";
    this.asking = new AbortController();
    /** @type {Set<string>} what was deleted here: other tabs see to their own */
    this.deletedHere = new Set();
    addEventListener("pagehide", () => this.#bury({ keepalive: true }));
  }

  /** @returns {Json[]} */
  get entries() {
    const deleted = new Set(kept.names(PREFIX).map((name) => name.slice(PREFIX.length)));
    return newestOfEach(this.found).filter((each) => !deleted.has(rootOf(each)));
  }

  /** @param {Json} entry @returns {string} */
  titleOf(entry) {
    return entry.title || this.callNames.get(rootOf(entry)) || "New chat";
  }

  /**
   * Look for words: in the titles that are known at once, on the server with the next `refresh`.
   *
   * @param {string} search
   */
  look(search) {
    this.asking.abort();
    this.search = search;
    this.isSearching = search !== "";
    if (!search) return;
    const words = search.toLowerCase().split(/\s+/);
    const titles = [...this.known.values()].filter((each) => {
      const title = this.titleOf(each).toLowerCase();
      return words.every((word) => title.includes(word));
    });
    this.found = titles.sort((one, other) => other.updated_at - one.updated_at);
    this.hasMore = false;
    this.changed.emit();
  }

  /** Ask for the list anew, or for what is looked for. */
  async refresh() {
    await this.#ask("", () => []);
  }

  /** The next page of it. */
  async more() {
    if (!this.hasMore) return;
    this.hasMore = false;
    await this.#ask(this.after, () => this.found);
  }

  /** @param {Json} entry @param {string} title an empty one is none */
  async rename(entry, title) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { title: title || null }));
  }

  /** @param {Json} entry @param {boolean} archived */
  async archive(entry, archived) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { archived }));
  }

  /**
   * Whether the model is told in it what is remembered.
   *
   * @param {Json} entry
   * @param {boolean} memory
   */
  async useMemory(entry, memory) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { memory }));
  }

  /** Hide it, and delete it when nobody takes that back in time. @param {Json} entry */
  remove(entry) {
    const root = rootOf(entry);
    this.deletedHere.add(PREFIX + root);
    const { id, metadata } = entry;
    kept.set(PREFIX + root, { id, metadata, ids: null, due: Date.now() + UNDO_MS });
    this.changed.emit();
    this.family(entry).then(
      (all) => {
        const noted = kept.get(PREFIX + root);
        if (noted) kept.set(PREFIX + root, { ...noted, ids: all.map((each) => each.id) });
      },
      () => {}, // they are looked for once more when it is due
    );
    setTimeout(() => this.#bury(), UNDO_MS + 50);
  }

  /** @param {Json} entry */
  restore(entry) {
    kept.remove(PREFIX + rootOf(entry));
    this.changed.emit();
  }

  /** Delete what a page that is gone had still to delete. */
  tidy() {
    this.#bury();
    setTimeout(() => this.#bury(), UNDO_MS + 50);
  }

  /**
   * All versions of a conversation, itself among them.
   *
   * @param {Json} conversation
   * @returns {Promise<Json[]>}
   */
  async family(conversation) {
    const root = rootOf(conversation);
    if (!conversation.metadata?.branch_root) return [conversation];
    /** @type {Map<string, Json>} */
    const found = new Map([[conversation.id, conversation]]);
    for (const archived of [false, true]) {
      for (let after = "", more = true; more;) {
        const page = await this.client.conversations({ archived, after, limit: 100 });
        for (const each of page.data) if (rootOf(each) === root) found.set(each.id, each);
        after = page.last_id;
        more = page.has_more;
      }
    }
    return [...found.values()];
  }

  /**
   * One page. An answer that comes when something else was asked for is dropped.
   *
   * @param {string} after
   * @param {() => Json[]} before
   */
  async #ask(after, before) {
    this.asking.abort();
    const { signal } = (this.asking = new AbortController());
    const { search, archived } = this;
    try {
      const page = search
        ? await this.client.searchConversations(search, { after, signal })
        : await this.client.conversations({ archived, after });
      if (signal.aborted) return;
      this.#take(page, before());
      this.error = null;
    } catch (error) {
      if (signal.aborted) return;
      this.hasMore = after !== "";
      this.error = /** @type {Error} */ (error);
    }
    this.isSearching = false;
    this.changed.emit();
  }

  /** @param {import("../api/client.js").List} page @param {Json[]} before */
  #take(page, before) {
    const ids = new Set(page.data.map((each) => each.id));
    for (const each of page.data) this.known.set(each.id, each);
    this.found = [...before.filter((each) => !ids.has(each.id)), ...page.data];
    this.hasMore = page.has_more;
    this.after = page.last_id;
    this.isLoaded = true;
  }

  /** @param {Json} entry @param {(id: string) => Promise<any>} work */
  async #each(entry, work) {
    const family = await this.family(entry);
    await Promise.all(family.map((each) => work(each.id)));
    await this.refresh();
  }

  /** @param {Json} noted @returns {Promise<string[] | null>} null where nobody can tell now */
  async #versionsOf(noted) {
    try {
      return (await this.family(noted)).map((each) => each.id);
    } catch {
      return null;
    }
  }

  /** Delete what is due; with `keepalive`, the page goes, and so does what waits. */
  async #bury({ keepalive = false } = {}) {
    for (const name of kept.names(PREFIX)) {
      const noted = kept.get(name);
      const isDue = noted && (noted.due <= Date.now() || (keepalive && this.deletedHere.has(name)));
      if (!isDue) continue;
      const ids = noted.ids ?? (keepalive ? null : await this.#versionsOf(noted));
      // Whoever opens the page next sees to it; or somebody has thought better of it.
      if (!ids || !kept.get(name)) continue;
      const results = ids.map((/** @type {string} */ id) =>
        this.client.deleteConversation(id, { keepalive }).catch((error) => {
          // What is gone already is what was wanted.
          if (!(error instanceof ApiError && error.status === 404)) throw error;
        }),
      );
      const settled = await Promise.allSettled(results);
      // What failed is tried again by the next page that is opened.
      if (settled.every((each) => each.status === "fulfilled")) {
        for (const id of ids) this.known.delete(id);
        this.found = this.found.filter((each) => !ids.includes(each.id));
        kept.remove(name);
      }
    }
  }
}
