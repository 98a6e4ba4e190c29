// The page as a whole: which conversation is open, and who is told of what.

import { addressed, goTo, settleAt } from "./chat/address.js";
import { NEW, Thread } from "./chat/thread.js";
import { Library, UNDO_MS } from "./chat/library.js";
import { ApiError, Unreachable } from "./api/errors.js";
import { isOver } from "./chat/turns.js";
import { rootOf, versionsAt } from "./chat/versions.js";
import { Announcer } from "./view/announcer.js";
import { Banner } from "./view/banner.js";
import { Composer } from "./view/composer.js";
import { askForKey } from "./view/dialogs.js";
import { h } from "./view/dom.js";
import { textOfQuestion } from "./view/question.js";
import { showSettings } from "./view/settings.js";
import { Sidebar } from "./view/sidebar.js";
import { ThreadView } from "./view/thread-view.js";
import { Toasts } from "./view/toast.js";

/** @typedef {import("./api/client.js").Json} Json */
/** @typedef {import("./chat/turns.js").Turn} Turn */

/** Until there is a title, a conversation is called by its first words. */
const CALL_NAME = 48;
/** A title is made after the first answer, by a worker that nobody waits for. */
const TITLE_LOOKS_MS = [1500, 4000, 10_000, 30_000];

export class App {
  /** @param {import("./chat/session.js").Session} session @param {import("./chat/tabs.js").Tabs} tabs */
  constructor(session, tabs) {
    this.session = session;
    this.tabs = tabs;
    this.client = session.client;
    this.library = new Library(this.client);
    this.announcer = new Announcer();
    this.heading = h("h1", { dir: "auto" }, "Antiphon");
    this.toasts = new Toasts();
    this.banner = new Banner(() => session.enter());
    this.composer = new Composer({
      client: this.client,
      send: (content) => this.send(content),
      stop: () => this.stop(),
      drafted: (conversation) => tabs.tell({ kind: "draft", conversation }),
    });
    this.view = new ThreadView({
      client: this.client,
      act: (turn, action) => this.#act(turn, action),
      edited: (turn, text) => this.#edited(turn, text),
      nameOf: (id) => this.#nameOf(id),
      drawn: () => {},
    });
    this.sidebar = new Sidebar(this.library, {
      begin: () => this.begin(),
      open: (id) => this.visit(id),
      removed: (entry) => this.#remove(entry),
      settings: () => this.settings(),
      failed: (error) => this.failed(error),
    });
    this.thread = new Thread(this.client, null);
    /** @type {Json[]} the versions of the conversation that is open */
    this.family = [];
    /** @type {Map<string, Promise<string>>} */
    this.names = new Map();
    this.library.tidy();
    addEventListener("popstate", () => this.#follow());
    tabs.heard.on((news) => this.#heard(news));
  }

  /** Everything anew: at the start, and when the server, or the key, is another. */
  async start() {
    await Promise.all([this.library.refresh(), this.#follow()]);
  }

  begin() {
    goTo(null);
    if (this.thread.turns.length || this.thread.conversation) this.open(null);
    this.composer.focus();
  }

  /** @param {string} id */
  visit(id) {
    goTo(id);
    this.#follow();
  }

  /** @param {Json[]} content */
  send(content) {
    if (this.thread.running) return;
    this.thread.send(content, this.session.model);
    this.view.scrollToEnd();
    this.announcer.say("Sent.");
  }

  stop() {
    return this.thread.stop();
  }

  settings() {
    showSettings(this.session, {
      looked: () => this.tabs.tell({ kind: "look" }),
      changeKey: () => this.#askForKey(),
    });
  }

  /** @returns {string} */
  get lastAnswer() {
    const turn = this.thread.turns.at(-1);
    return (turn && this.view.views.get(turn)?.reply.text) ?? "";
  }

  /** @param {unknown} error */
  async failed(error) {
    if (error instanceof ApiError && error.status === 401) return this.#askForKey();
    if (!(error instanceof Unreachable)) {
      return this.toasts.show(/** @type {Error} */ (error).message);
    }
    if (await this.banner.await(error)) await this.start();
  }

  /** Open the conversation that the address names. */
  async #follow() {
    const id = addressed();
    if (id !== null && id === this.thread.conversation?.id) return;
    await this.open(id);
  }

  /** @param {string | null} id @param {{turn?: number}} [at] */
  async open(id, { turn } = {}) {
    this.thread.close();
    const thread = new Thread(this.client, null);
    thread.isWhole = id === null;
    this.thread = thread;
    this.family = [];
    this.view.show(thread);
    this.composer.open(id ?? NEW);
    this.#listen(thread);
    document.body.dataset.list = "closed";
    try {
      if (id !== null) thread.conversation = await this.client.conversation(id);
      if (thread.closed) return;
      await thread.load();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) return this.failed(error);
      this.toasts.show("This conversation isn't there any more.");
      return this.begin();
    }
    this.#named();
    if (turn === undefined) this.view.scrollToEnd();
    else this.view.scrollToTurn(turn);
    await this.#loadFamily();
  }

  /** @param {Thread} thread */
  #listen(thread) {
    /** @type {Set<Turn>} */
    const running = new Set();
    this.composer.setRunning(false);
    thread.changed.on((change) => {
      if (change.kind === "text" || thread.closed) return;
      if (change.kind === "conversation") this.#changedConversation(thread);
      this.composer.setRunning(thread.running !== null);
      for (const turn of thread.turns) {
        if (!isOver(turn) && !running.has(turn)) this.#began(turn, running);
        if (isOver(turn) && running.delete(turn)) this.#ended(thread, turn);
      }
      if (change.kind === "turns") this.#showVersions();
      if (thread.conversation && change.kind === "turn" && change.turn.live?.id && !change.turn.live.ended) {
        this.tabs.tell({ kind: "thread", conversation: thread.conversation.id });
      }
    });
  }

  /** @param {Turn} turn @param {Set<Turn>} running */
  #began(turn, running) {
    running.add(turn);
  }

  /** @param {Thread} thread @param {Turn} turn */
  #ended(thread, turn) {
    const { live } = turn;
    if (live?.response?.status === "completed") this.announcer.answered(live.text);
    else this.announcer.say(live?.refusal || "The answer has ended early.");
    if (live?.response === null && live.error) this.composer.giveBack(textOfQuestion(turn.user ?? {}));
    if (live?.error instanceof ApiError && live.error.status === 401) this.#askForKey();
    if (thread.conversation) this.tabs.tell({ kind: "thread", conversation: thread.conversation.id });
    this.library.refresh();
    this.#lookForTitle(thread);
  }

  /** @param {Thread} thread it has come to be, or is another by now */
  #changedConversation(thread) {
    const id = thread.conversation?.id;
    if (!id || thread !== this.thread) return;
    if (addressed() !== id) {
      settleAt(id);
      const asked = textOfQuestion(thread.turns[0]?.user ?? {});
      this.library.callNames.set(rootOf(/** @type {Json} */ (thread.conversation)), asked.slice(0, CALL_NAME));
      this.composer.rename(id);
      this.library.refresh();
      this.tabs.tell({ kind: "list" });
    }
    this.#named();
  }

  #named() {
    const { conversation } = this.thread;
    const name = conversation ? this.library.titleOf(conversation) : "Antiphon";
    document.title = conversation ? `${name} · Antiphon` : name;
    this.heading.textContent = name;
    this.sidebar.mark(conversation && rootOf(conversation));
  }

  /** @param {Thread} thread */
  async #lookForTitle(thread) {
    for (const delay of TITLE_LOOKS_MS) {
      const { conversation } = thread;
      if (!conversation || conversation.title || thread.closed) return;
      await new Promise((resolve) => setTimeout(resolve, delay));
      const found = await this.client.conversation(conversation.id).catch(() => null);
      if (!found?.title || thread.closed) continue;
      thread.conversation = found;
      this.#named();
      this.tabs.tell({ kind: "list" });
      await this.library.refresh();
    }
  }

  /** @param {Turn} turn @param {import("./chat/notices.js").Action} action */
  #act(turn, action) {
    switch (action) {
      case "hurry":
        return turn.live?.hurry();
      case "key":
        return this.#askForKey();
      case "edit":
        return this.view.views.get(turn)?.edit();
      case "again":
        return this.#again(turn);
      default:
        return this.#branch(turn, turn.user?.content ?? []);
    }
  }

  /** @param {Turn} turn */
  async #again(turn) {
    const isLast = this.thread.turns.at(-1) === turn;
    const isEmpty = turn.items.length === 0;
    if (!isLast || !isEmpty) return this.#branch(turn, turn.user?.content ?? []);
    try {
      await this.thread.again(turn, this.session.model);
    } catch (error) {
      await this.failed(error);
    }
  }

  /** @param {Turn} turn @param {string} text */
  #edited(turn, text) {
    const files = (turn.user?.content ?? []).filter((/** @type {Json} */ part) => part.type === "input_file");
    return this.#branch(turn, [...files, { type: "input_text", text }]);
  }

  /** Ask again from where a turn began, and keep what there is. @param {Turn} turn @param {Json[]} content */
  async #branch(turn, content) {
    if (this.thread.running) return this.toasts.show("An answer is still being written.");
    const index = this.thread.turns.indexOf(turn);
    try {
      const branch = await this.thread.branchBefore(turn);
      goTo(branch.id);
      await this.open(branch.id, { turn: index - 1 });
      this.thread.send(content, this.session.model);
      this.view.scrollToEnd();
      await this.#loadFamily();
    } catch (error) {
      await this.failed(error);
    }
  }

  async #loadFamily() {
    const { thread } = this;
    if (!thread.conversation?.metadata.branch_root) return;
    const family = await this.library.family(thread.conversation).catch(() => []);
    if (thread !== this.thread) return;
    this.family = family;
    this.#showVersions();
  }

  #showVersions() {
    const { conversation, turns, isWhole } = this.thread;
    if (!conversation || !isWhole || this.family.length < 2) return;
    this.view.showVersions((turn) => {
      const index = turns.indexOf(turn);
      const versions = versionsAt(conversation, index, this.family);
      const at = versions.findIndex((each) => each.id === conversation.id);
      const go = (/** @type {number} */ to) => {
        goTo(versions[to].id);
        this.open(versions[to].id, { turn: index });
      };
      return { count: versions.length, at, go };
    });
  }

  /** @param {Json} entry */
  #remove(entry) {
    this.library.remove(entry);
    this.tabs.tell({ kind: "list" });
    const isOpen = this.thread.conversation && rootOf(this.thread.conversation) === rootOf(entry);
    if (isOpen) this.begin();
    const act = () => {
      this.library.restore(entry);
      this.tabs.tell({ kind: "list" });
      if (isOpen) this.visit(entry.id);
    };
    this.toasts.show(`Deleted “${this.library.titleOf(entry)}”.`, { label: "Undo", act, ms: UNDO_MS });
  }

  async #askForKey() {
    if (document.querySelector("dialog[open]")) return;
    await askForKey(this.session);
    this.tabs.tell({ kind: "key" });
    this.thread.close();
    this.thread = new Thread(this.client, null);
    await this.start();
  }

  /** @param {string} id */
  #nameOf(id) {
    const known = this.names.get(id);
    if (known) return known;
    const name = this.client.file(id).then(
      (file) => file.filename,
      () => "A file that is gone",
    );
    this.names.set(id, name);
    return name;
  }

  /** @param {import("./chat/tabs.js").News} news */
  #heard(news) {
    switch (news.kind) {
      case "list":
        return this.library.refresh();
      case "thread":
        this.library.refresh();
        if (news.conversation !== this.thread.conversation?.id) return;
        return this.thread.refresh().catch((error) => this.failed(error));
      case "draft":
        if (news.conversation === this.composer.conversation) this.composer.reload();
        return;
      case "key":
        return this.session.enter().then(() => this.start(), () => {});
    }
  }
}
