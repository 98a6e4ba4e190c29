// The page as a whole: which conversation is open, and who is told of what.

import { Branching } from "./branching.js";
import { addressed, goTo, settleAt } from "./chat/address.js";
import { noticesOf } from "./chat/notices.js";
import { isUnread } from "./chat/reading.js";
import { NEW, Thread } from "./chat/thread.js";
import { Library, UNDO_MS } from "./chat/library.js";
import { ApiError, Unreachable } from "./api/errors.js";
import { isOver, isUnsent } from "./chat/turns.js";
import { rootOf } from "./chat/versions.js";
import { Naming } from "./naming.js";
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

/** Phases of an answer that are told aloud: whoever can't see would wait and not know for what. */
const SPOKEN = new Set(["full", "lost"]);

export class App {
  /**
   * @param {import("./chat/session.js").Session} session
   * @param {import("./chat/tabs.js").Tabs} tabs
   */
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
      blindness: () => session.blindness,
    });
    this.view = new ThreadView({
      client: this.client,
      act: (turn, action) => this.#acted(turn, action),
      edited: (turn, text) => this.branching.edited(turn, text),
      fileOf: (id) => this.#fileOf(id),
      drawn: () => {},
    });
    this.sidebar = new Sidebar(this.library, {
      begin: () => this.begin(),
      open: (id, item) => this.visit(id, item),
      changed: () => {
        this.naming.adopt();
        tabs.tell({ kind: "list" });
      },
      removed: (entry) => this.#remove(entry),
      settings: () => this.settings(),
      failed: (error) => this.failed(error),
    });
    this.thread = new Thread(this.client, null);
    /** @type {Turn | null} one that came to nothing, whose message is the draft again */
    this.givenBack = null;
    this.branching = new Branching(this);
    this.naming = new Naming(this);
    /** @type {Map<string, Promise<Json | null>>} those of which nothing more is to come */
    this.files = new Map();
    this.library.tidy();
    addEventListener("popstate", () => this.#follow());
    tabs.heard.on((news) => this.#heard(news));
    session.changed.on(() => this.composer.attachments.look());
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

  /** @param {string} id @param {string} [item] the message to be seen */
  visit(id, item) {
    goTo(id);
    this.#follow(item);
  }

  /** @param {Json[]} content */
  send(content) {
    const { thread, givenBack } = this;
    if (thread.running) return;
    if (givenBack && givenBack === thread.turns.at(-1)) {
      thread.insteadOf(givenBack, content, this.session.model);
    } else thread.send(content, this.session.model);
    this.givenBack = null;
    this.view.scrollToEnd();
    this.announcer.say("Sent.");
  }

  stop() {
    return this.thread.stop();
  }

  settings() {
    showSettings(this.session, {
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

  /** Open the conversation that the address names. @param {string} [item] */
  async #follow(item) {
    const id = addressed();
    if (id === null || id !== this.thread.conversation?.id) return this.open(id, { item });
    if (item === undefined) return;
    document.body.dataset.list = "closed";
    this.view.scrollToItem(item);
  }

  /** @param {string | null} id @param {{turn?: number, item?: string}} [at] */
  async open(id, { turn, item } = {}) {
    this.thread.close();
    const thread = new Thread(this.client, null);
    thread.isWhole = id === null;
    this.thread = thread;
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
    this.naming.show();
    if (item !== undefined) this.view.scrollToItem(item);
    else if (turn === undefined) this.view.scrollToEnd();
    else this.view.scrollToTurn(turn);
    await this.branching.load();
  }

  /** @param {Thread} thread */
  #listen(thread) {
    /** @type {Set<Turn>} */
    const running = new Set();
    /** @type {WeakMap<Turn, string | undefined>} */
    const phases = new WeakMap();
    this.composer.setRunning(false);
    thread.changed.on((change) => {
      if (change.kind === "text" || thread.closed) return;
      if (change.kind === "conversation") this.#changedConversation(thread);
      this.composer.setRunning(thread.running !== null);
      for (const turn of thread.turns) {
        if (!isOver(turn)) running.add(turn);
        if (isOver(turn) && running.delete(turn)) this.#ended(thread, turn);
        const phase = turn.live?.phase;
        if (phase && phase !== phases.get(turn) && SPOKEN.has(phase)) {
          this.announcer.say(noticesOf(turn)[0].text);
        }
        phases.set(turn, phase);
      }
      if (change.kind === "turns") this.branching.show();
      if (
        thread.conversation &&
        change.kind === "turn" &&
        change.turn.live?.id &&
        !change.turn.live.ended
      ) {
        this.tabs.tell({ kind: "thread", conversation: thread.conversation.id });
      }
    });
  }

  /** @param {Thread} thread @param {Turn} turn */
  #ended(thread, turn) {
    const { live } = turn;
    const told = noticesOf(turn).filter((notice) => notice.tone !== "quiet");
    this.announcer.answered(
      live?.refusal || live?.text || "",
      told.map((notice) => notice.text),
    );
    if (isUnsent(turn) && thread === this.thread) {
      const text = textOfQuestion(turn.user ?? {});
      if (this.composer.giveBack(text, turn.user?.content ?? [])) this.givenBack = turn;
    }
    if (live?.error instanceof ApiError && live.error.status === 401) this.#askForKey();
    if (thread.conversation)
      this.tabs.tell({ kind: "thread", conversation: thread.conversation.id });
    this.library.refresh();
    this.naming.lookForTitle(thread);
  }

  /** @param {Thread} thread it has come to be, or is another by now */
  #changedConversation(thread) {
    const id = thread.conversation?.id;
    if (!id || thread !== this.thread) return;
    if (addressed() !== id) {
      settleAt(id);
      this.naming.callByFirstWords(thread);
      this.composer.rename(id);
      this.library.refresh();
      this.tabs.tell({ kind: "list" });
    }
    this.naming.show();
  }

  /** @param {Turn} turn @param {import("./chat/notices.js").Action} action */
  async #acted(turn, action) {
    const hasKeyboard = document.activeElement?.matches(":focus-visible");
    await this.#act(turn, action);
    // What they were on is gone: they go on in the message, and not at the page's beginning.
    if (hasKeyboard && document.activeElement === document.body) this.composer.focus();
  }

  /** @param {Turn} turn @param {import("./chat/notices.js").Action} action */
  #act(turn, action) {
    switch (action) {
      case "hurry":
        return turn.live?.hurry();
      case "key":
        return this.#askForKey();
      case "edit":
        if (turn === this.givenBack) return this.composer.focus();
        return this.view.views.get(turn)?.edit();
      case "again":
        return this.branching.again(turn);
      default:
        return this.branching.branch(turn, turn.user?.content ?? []);
    }
  }

  /** @param {Json} entry */
  #remove(entry) {
    this.library.remove(entry);
    const isOpen = this.thread.conversation && rootOf(this.thread.conversation) === rootOf(entry);
    if (isOpen) this.begin();
    const act = () => {
      this.library.restore(entry);
      if (isOpen) this.visit(entry.id);
    };
    this.toasts.show(`Deleted “${this.library.titleOf(entry)}”.`, {
      label: "Undo",
      act,
      ms: UNDO_MS,
    });
  }

  async #askForKey() {
    if (document.querySelector("dialog[open]")) return;
    await askForKey(this.session);
    this.thread.close();
    this.thread = new Thread(this.client, null);
    await this.start();
  }

  /** @param {string} id @returns {Promise<Json | null>} null where it is gone */
  #fileOf(id) {
    const known = this.files.get(id);
    if (known) return known;
    const file = this.client.file(id).catch(() => null);
    this.files.set(id, file);
    file.then((found) => isUnread(found) && this.files.delete(id));
    return file;
  }

  /** @param {import("./chat/tabs.js").News} news */
  #heard(news) {
    switch (news.kind) {
      case "list":
        return this.library.refresh().then(() => this.naming.adopt());
      case "thread":
        this.library.refresh();
        if (news.conversation !== this.thread.conversation?.id) return;
        return this.thread.refresh().catch((error) => this.failed(error));
      case "draft":
        if (news.conversation === this.composer.conversation) this.composer.reload();
        return;
      case "key":
        return this.session.enter().then(
          () => this.start(),
          () => {},
        );
    }
  }
}
