// What the conversation that is open is called, and where that is said. A title is made after the
// first answer, by a worker that nobody waits for; until then it is called by its first words.

import { rootOf } from "./chat/versions.js";
import { textOfQuestion } from "./view/question.js";

/** @typedef {import("./chat/thread.js").Thread} Thread */

const FIRST_WORDS = 48;
const LOOKS_MS = [1500, 4000, 10_000, 30_000];

export class Naming {
  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
  }

  /** Say what the open conversation is called by now. */
  show() {
    const { conversation } = this.app.thread;
    const name = conversation ? this.app.library.titleOf(conversation) : "Antiphon";
    document.title = conversation ? `${name} · Antiphon` : name;
    this.app.heading.textContent = name;
    this.app.sidebar.mark(conversation && rootOf(conversation));
  }

  /** The list has been read anew: somebody may have called it something else. */
  adopt() {
    const { thread, library } = this.app;
    const known = library.known.get(thread.conversation?.id);
    if (!thread.conversation || !known) return;
    const { title, title_made } = known;
    thread.conversation = { ...thread.conversation, title, title_made };
    this.show();
  }

  /** @param {Thread} thread one that has no title yet */
  callByFirstWords(thread) {
    if (!thread.conversation) return;
    const words = textOfQuestion(thread.turns[0]?.user ?? {}).slice(0, FIRST_WORDS);
    this.app.library.callNames.set(rootOf(thread.conversation), words);
  }

  /** @param {Thread} thread */
  async lookForTitle(thread) {
    for (const delay of LOOKS_MS) {
      const { conversation } = thread;
      if (!conversation || conversation.title || thread.closed) return;
      await new Promise((resolve) => setTimeout(resolve, delay));
      const found = await this.app.client.conversation(conversation.id).catch(() => null);
      if (!found?.title || thread.closed) continue;
      thread.conversation = found;
      this.show();
      this.app.tabs.tell({ kind: "list" });
      await this.app.library.refresh();
    }
  }
}
