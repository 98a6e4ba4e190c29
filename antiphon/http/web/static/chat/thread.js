// One conversation as it goes on: its turns, what is being answered, and what people do with it.

import { Answer } from "./answer.js";
import * as outbox from "./outbox.js";
import { Signal } from "./signal.js";
import { isOver, isSame, newTurn, turnsOf } from "./turns.js";
import { branchMetadata, rootOf } from "./versions.js";

/** @typedef {import("../api/client.js").Client} Client */
/** @typedef {import("../api/client.js").Json} Json */
/** @typedef {import("./turns.js").Turn} Turn */
/**
 * @typedef {{kind: "turns"} | {kind: "conversation"} | {kind: "turn" | "text", turn: Turn}} Change
 */

const PAGE = 100;
/** Of a sent message that has no conversation yet. */
export const NEW = "new";

export class Thread {
  /** @param {Client} client @param {Json | null} conversation */
  constructor(client, conversation) {
    this.client = client;
    this.conversation = conversation;
    /** @type {Turn[]} */
    this.turns = [];
    /** Whether the first turn here is the conversation's first. */
    this.isWhole = conversation === null;
    /** @type {Signal<[Change]>} */
    this.changed = new Signal();
    this.closed = false;
  }

  /** @returns {Turn | null} the one that is being answered */
  get running() {
    return this.turns.find((turn) => !isOver(turn)) ?? null;
  }

  /** Everything that the server has of it, and what it may not have yet. */
  async load() {
    const id = this.conversation?.id;
    if (id) {
      const [items, responses] = await Promise.all([
        this.client.items(id, { limit: PAGE }),
        this.client.responses(id, { limit: PAGE }),
      ]);
      this.isWhole = !items.has_more;
      const shown = this.turns;
      this.turns = turnsOf(items.data.reverse(), responses.data.reverse()).map((turn) => {
        // What is shown already isn't drawn anew, which would be seen.
        const known = shown.find((each) => isSame(each, turn));
        return known ? Object.assign(known, { user: turn.user, response: turn.response }) : turn;
      });
      this.#attach();
    }
    for (const sent of outbox.pending(id ?? NEW)) this.#resend(sent);
    this.changed.emit({ kind: "turns" });
    // It may have been rated elsewhere.
    for (const turn of this.turns.filter(isOver)) this.changed.emit({ kind: "turn", turn });
    if (!this.isWhole) this.#loadRest();
  }

  /** Something may have happened elsewhere. */
  async refresh() {
    if (this.conversation && !this.running && !this.closed) await this.load();
  }

  /**
   * @param {Json[]} content parts of a message
   * @param {string} model
   */
  send(content, model) {
    const sent = {
      key: outbox.newKey(),
      conversation: this.conversation?.id ?? NEW,
      body: {
        model,
        input: [{ role: "user", content }],
        stream: true,
        background: true, // it goes on when the connection, or the page, is gone
        store: true,
      },
      at: Date.now(),
    };
    outbox.note(sent);
    return this.#resend(sent);
  }

  /**
   * Answer a turn anew in its place: nothing came of it.
   *
   * @param {Turn} turn
   * @param {string} model
   */
  async again(turn, model) {
    const id = turn.response?.id ?? turn.live?.id;
    if (id) await this.client.deleteResponse(id);
    return this.insteadOf(turn, turn.user?.content ?? [], model);
  }

  /**
   * Send something in the place of what the server has none of.
   *
   * @param {Turn} turn
   * @param {Json[]} content
   * @param {string} model
   */
  insteadOf(turn, content, model) {
    this.turns = this.turns.filter((each) => each !== turn);
    return this.send(content, model);
  }

  /**
   * A branch that leaves this conversation before a turn, for another question or another answer.
   *
   * @param {Turn} turn
   * @returns {Promise<Json>} the new conversation
   */
  async branchBefore(turn) {
    if (!this.conversation || !this.isWhole) throw new Error("not loaded");
    const index = this.turns.indexOf(turn);
    const before = this.turns[index - 1];
    const last = before?.items.at(-1) ?? before?.user;
    const whole = this.conversation;
    if (rootOf(whole) === whole.id && !whole.metadata.branch_root) {
      const metadata = { ...whole.metadata, branch_root: whole.id };
      this.conversation = await this.client.updateConversation(whole.id, { metadata });
    }
    const metadata = branchMetadata(whole, index);
    const key = outbox.newKey();
    if (last) {
      return this.client.branchConversation(whole.id, { metadata, after_item: last.id }, key);
    }
    // Nothing is in common but what a person has called it; else it gets a title of its own.
    const title = whole.title_made ? null : whole.title;
    return this.client.createConversation({ title, metadata, memory: whole.memory }, key);
  }

  stop() {
    return this.running?.live?.stop();
  }

  /** Nobody looks at it any more. What runs goes on on the server. */
  close() {
    this.closed = true;
    for (const turn of this.turns) turn.live?.leave();
  }

  /** @param {outbox.Sent} sent */
  #resend(sent) {
    const turn = newTurn({ role: "user", content: sent.body.input[0].content });
    const prepare = async () => {
      if (!this.conversation) {
        this.conversation = await this.client.createConversation({}, sent.key);
        outbox.note({ ...sent, conversation: this.conversation?.id ?? NEW });
        this.changed.emit({ kind: "conversation" });
      }
      return { conversation: this.conversation?.id };
    };
    this.#forgetLimits();
    this.turns.push(turn);
    this.#answer(turn, { body: sent.body, key: sent.key, prepare });
    this.changed.emit({ kind: "turns" });
    return turn;
  }

  /** What was left before is news no longer. */
  #forgetLimits() {
    const last = this.turns.at(-1);
    if (!last?.live?.limits.length) return;
    last.live.limits = [];
    this.changed.emit({ kind: "turn", turn: last });
  }

  /** Read on what was running when this page came. */
  #attach() {
    for (const turn of this.turns) {
      const status = turn.response?.status;
      if (status === "queued" || status === "in_progress") {
        this.#answer(turn, { body: {}, key: null, id: turn.response?.id });
      }
    }
  }

  /**
   * @param {Turn} turn
   * @param {{body: Json, key: string | null, id?: string, prepare?: () => Promise<Json>}} asked
   */
  #answer(turn, asked) {
    const live = new Answer({ client: this.client, ...asked }, (answer, what) => {
      if (what === "text") return this.changed.emit({ kind: "text", turn });
      if (answer.ended) {
        turn.response = answer.response;
        turn.items = (answer.response?.output ?? []).filter((/** @type {Json} */ each) => each.id);
      }
      if (answer.id && asked.key) outbox.settle(asked.key);
      this.changed.emit({ kind: "turn", turn });
    });
    turn.live = live;
    turn.items = [];
    live.run().then(() => this.#ended(turn, live, asked.key));
  }

  /** @param {Turn} turn @param {Answer} live @param {string | null} key */
  async #ended(turn, live, key) {
    if (!live.ended) return;
    if (key) outbox.settle(key);
    if (live.response && !turn.user?.id) {
      // What was sent is an item by now, and can be named.
      const asked = await this.client.inputItems(live.response.id).catch(() => null);
      turn.user = asked?.data[0] ?? turn.user;
    }
    this.changed.emit({ kind: "turn", turn });
    this.changed.emit({ kind: "conversation" });
  }

  /** The turns before, page by page: a long conversation is there at once, and whole soon. */
  async #loadRest() {
    const id = this.conversation?.id ?? "";
    const list = async (/** @type {"items" | "responses"} */ what) => {
      const found = [];
      for (let after = ""; ;) {
        const page = await this.client[what](id, { limit: PAGE, after });
        found.push(...page.data);
        if (!page.has_more || this.closed) return found.reverse();
        after = page.last_id;
      }
    };
    const [items, responses] = await Promise.all([list("items"), list("responses")]);
    if (this.closed) return;
    const known = new Map(this.turns.map((turn) => [turn.user?.id, turn]));
    const sent = this.turns.filter((turn) => turn.user && !turn.user.id);
    // What is shown already stays as it is: it may be running.
    const whole = turnsOf(items, responses).map((turn) => known.get(turn.user?.id) ?? turn);
    this.turns = [...whole, ...sent];
    this.isWhole = true;
    this.changed.emit({ kind: "turns" });
  }
}
