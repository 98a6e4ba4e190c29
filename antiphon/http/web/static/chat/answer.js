// One answer, from the moment it is asked for to its end. Connections come and go meanwhile: it is
// asked for once, under one key, and read on from the last event that came.

import { ApiError, Unreachable } from "../api/errors.js";
import { limitsOf } from "../api/limits.js";
import { sleep } from "./patience.js";

/** @typedef {import("../api/client.js").Client} Client */
/** @typedef {import("../api/client.js").Json} Json */
/** @typedef {"asking" | "queued" | "writing" | "lost" | "full" | "ended"} Phase */
/**
 * @typedef {object} Asked
 * @property {Client} client
 * @property {Json} body
 * @property {string | null} key
 * @property {string | null} [id] of one that was asked for before
 * @property {() => Promise<Json>} [prepare] what has to be there first; gives fields of the body.
 *   It is called again where it failed, so it must do the same thing again
 */

const BACKOFF_MS = [300, 1000, 2000, 4000, 8000];
/**
 * An event that says that something went wrong may be about the connection, or about the answer.
 */
const MOST_ERRORS = 4;
/** How often a full server is asked again. */
const MOST_REFUSALS = 6;

export class Answer {
  /**
   * @param {Asked} asked
   * @param {(answer: Answer, what: "text" | "state") => void} changed
   */
  constructor({ client, body, key, id = null, prepare }, changed) {
    this.client = client;
    this.body = body;
    this.key = key;
    this.prepare = prepare;
    /** @type {string | null} the response's, as soon as there is one */
    this.id = id;
    /** @type {Phase} */
    this.phase = "asking";
    this.text = "";
    this.refusal = "";
    /** @type {string | null} the item's that it is in the conversation */
    this.item = null;
    /** @type {Json | null} as it ended */
    this.response = null;
    /** @type {Error | null} why there is none, or why it can't be had now */
    this.error = null;
    /** @type {string | null} which model answers, if that is known */
    this.model = null;
    /** @type {string | null} why it isn't the one that was asked for */
    this.moved = null;
    /** @type {number | null} when the first text should come */
    this.expectedMs = null;
    /** @type {import("../api/limits.js").Limit[]} */
    this.limits = [];
    /** @type {number | null} when the next try is due, as `Date.now()` counts */
    this.retryAt = null;
    this.stopping = false;
    this.startedAt = Date.now();
    this.changed = changed;
    this.sequence = -1;
    this.leaving = new AbortController();
    this.impatience = new EventTarget();
  }

  get ended() {
    return this.phase === "ended";
  }

  /** Read it to its end, however often the connection breaks. Never throws. */
  async run() {
    let losses = 0;
    let errors = 0;
    let refusals = 0;
    while (!this.ended && !this.leaving.signal.aborted) {
      const before = this.sequence;
      try {
        await this.#read();
        if (this.ended) return;
        throw new Unreachable(); // the stream was over before the answer was
      } catch (error) {
        if (this.leaving.signal.aborted) return;
        if (this.sequence > before) losses = errors = 0;
        if (error instanceof ApiError && !this.#mayPass(error, ++errors)) {
          this.#end(error);
        } else if (error instanceof ApiError && this.id === null) {
          if (++refusals > MOST_REFUSALS) this.#end(error);
          else await this.#pause("full", error.retryAfterMs ?? 2000, error);
        } else {
          const delay = BACKOFF_MS[Math.min(losses++, BACKOFF_MS.length - 1)];
          await this.#pause("lost", delay, /** @type {Error} */ (error));
        }
      }
    }
  }

  /** End it on the server, so that its place is free; what came of it stays. */
  async stop() {
    this.stopping = true;
    this.changed(this, "state");
    if (this.id === null) {
      // Nothing of it may be known to the server; if it is, its first event will tell.
      if (this.phase === "full") this.#end(null);
      return;
    }
    try {
      await this.client.cancelResponse(this.id);
    } catch (error) {
      if (error instanceof ApiError) this.#note(error);
      // Out of reach: it is tried again with the next connection.
    }
  }

  /** Try again at once, and not when it is due. */
  hurry() {
    this.impatience.dispatchEvent(new Event("now"));
  }

  /** Read it no longer. It goes on without us. */
  leave() {
    this.leaving.abort();
  }

  async #read() {
    const options = { signal: this.leaving.signal, opened: this.#opened };
    if (this.id === null && this.prepare) {
      this.body = { ...this.body, ...(await this.prepare()) };
      this.prepare = undefined;
    }
    const events =
      this.id === null
        ? this.client.answer(this.body, { ...options, key: this.key ?? undefined })
        : this.client.resume(this.id, this.sequence, options);
    for await (const event of events) {
      this.#take(event);
      if (this.ended) return;
    }
    if (this.id !== null) await this.#look(this.id);
  }

  /**
   * The stream is over without an end. A server that was killed has forgotten the last moment: then
   * what we have heard goes beyond all that it knows, and its end has a number that we are past.
   *
   * @param {string} id
   */
  async #look(id) {
    const response = await this.client.response(id);
    if (response.status !== "queued" && response.status !== "in_progress") this.#finish(response);
  }

  /** @param {Headers} headers */
  #opened = (headers) => {
    this.moved = headers.get("x-antiphon-model-moved") ?? this.moved;
    const expected = headers.get("x-antiphon-expected-ms");
    if (expected !== null) this.expectedMs = Number(expected);
    const limits = limitsOf(headers);
    if (limits.length) this.limits = limits;
    this.error = this.retryAt = null;
    if (this.id !== null) this.#goOn(this.text || this.refusal ? "writing" : "queued");
    if (this.stopping && this.id !== null) this.stop();
  };

  /** @param {Json} event */
  #take(event) {
    if (event.type !== "error") this.sequence = event.sequence_number;
    switch (event.type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        this.#exists(event.response);
        break;
      case "response.output_item.added":
        this.item = event.item.id;
        break;
      case "response.output_text.delta":
        this.text += event.delta;
        this.#goOn("writing");
        this.changed(this, "text");
        break;
      case "response.refusal.delta":
        this.refusal += event.delta;
        this.#goOn("writing");
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.id = event.response.id;
        this.#finish(event.response);
        break;
      case "error":
        throw new ApiError(500, event);
    }
  }

  /** @param {Json} response */
  #exists(response) {
    const isNew = this.id === null;
    this.id = response.id;
    this.model = response.model;
    this.#goOn(response.status === "queued" ? "queued" : "asking");
    if (isNew) this.changed(this, "state");
    if (isNew && this.stopping) this.stop();
  }

  /** @param {Json} response */
  #finish(response) {
    this.response = response;
    this.model = response.model;
    const item = response.output.find((/** @type {Json} */ each) => each.type === "message");
    const text = item ? textOf(item) : "";
    if (text !== this.text) {
      this.text = text;
      this.changed(this, "text");
    }
    this.item = item?.id ?? null;
    this.phase = "ended";
    this.changed(this, "state");
  }

  /** @param {Error | null} error */
  #end(error) {
    this.error = error;
    this.retryAt = null;
    this.phase = "ended";
    this.changed(this, "state");
  }

  /**
   * Whether a try later may do better: no if it was refused for good.
   *
   * @param {ApiError} error
   * @param {number} errors how many there were in a row
   */
  #mayPass(error, errors) {
    if (this.id !== null) return error.status >= 500 && errors <= MOST_ERRORS;
    return error.status === 503 && error.mayRetry;
  }

  /** @param {Error} error */
  #note(error) {
    this.error = error;
    this.changed(this, "state");
  }

  /** @param {Phase} phase */
  #goOn(phase) {
    if (this.phase === phase) return;
    this.phase = phase;
    this.changed(this, "state");
  }

  /** @param {"lost" | "full"} phase @param {number} delayMs @param {Error} error */
  async #pause(phase, delayMs, error) {
    this.error = error;
    this.retryAt = Date.now() + delayMs;
    this.phase = phase;
    this.changed(this, "state");
    await sleep(delayMs, this.leaving.signal, this.impatience);
  }
}

/** @param {Json} item */
export function textOf(item) {
  return (item.content ?? []).map((/** @type {Json} */ part) => part.text ?? "").join("");
}

/** @param {Json} item */
export function refusalOf(item) {
  return (item.content ?? []).map((/** @type {Json} */ part) => part.refusal ?? "").join("");
}
