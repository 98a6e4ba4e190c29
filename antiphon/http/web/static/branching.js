// Asking again: another answer, or another question, from where a turn began. What there is stays.

import { goTo } from "./chat/address.js";
import { versionsAt } from "./chat/versions.js";
import { isUnsent } from "./chat/turns.js";
import { textOfQuestion } from "./view/question.js";

/** @typedef {import("./api/client.js").Json} Json */
/** @typedef {import("./chat/turns.js").Turn} Turn */

export class Branching {
  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Json[]} the versions of the conversation that is open */
    this.family = [];
  }

  /** Answer a turn anew; in its place, where nothing came of it. @param {Turn} turn */
  async again(turn) {
    const { thread, session } = this.app;
    const isLast = thread.turns.at(-1) === turn;
    if (!isLast || turn.items.length > 0) return this.branch(turn, turn.user?.content ?? []);
    if (turn === this.app.givenBack) {
      this.app.composer.takeBack(textOfQuestion(turn.user ?? {}));
    }
    try {
      await thread.again(turn, session.model);
    } catch (error) {
      await this.app.failed(error);
    }
  }

  /** @param {Turn} turn @param {string} text */
  edited(turn, text) {
    /** @type {Json[]} */
    const parts = turn.user?.content ?? [];
    const files = parts.filter(({ type }) => type === "input_file" || type === "input_image");
    const content = [...files, { type: "input_text", text }];
    const { thread, session } = this.app;
    if (isUnsent(turn) && !thread.running) return thread.insteadOf(turn, content, session.model);
    return this.branch(turn, content);
  }

  /** @param {Turn} turn @param {Json[]} content */
  async branch(turn, content) {
    const { app } = this;
    if (app.thread.running) return app.toasts.show("An answer is still being written.");
    const index = app.thread.turns.indexOf(turn);
    try {
      const branch = await app.thread.branchBefore(turn);
      goTo(branch.id);
      await app.open(branch.id, { turn: index - 1 });
      app.thread.send(content, app.session.model);
      app.view.scrollToEnd();
      if (!branch.title) app.naming.callByFirstWords(app.thread);
      await this.load();
    } catch (error) {
      await app.failed(error);
    }
  }

  /** Find the versions of the conversation that is open. */
  async load() {
    const { thread, library } = this.app;
    this.family = [];
    if (!thread.conversation?.metadata.branch_root) return;
    const family = await library.family(thread.conversation).catch(() => []);
    if (thread !== this.app.thread) return;
    this.family = family;
    this.show();
  }

  /** Say of each turn which versions there are. */
  show() {
    const { conversation, turns, isWhole } = this.app.thread;
    if (!conversation || !isWhole || this.family.length < 2) return;
    this.app.view.showVersions((turn) => {
      const index = turns.indexOf(turn);
      const versions = versionsAt(conversation, index, this.family);
      const at = versions.findIndex((each) => each.id === conversation.id);
      const go = (/** @type {number} */ to) => {
        goTo(versions[to].id);
        this.app.open(versions[to].id, { turn: index });
      };
      return { count: versions.length, at, go };
    });
  }
}
