// A client of Antiphon's API in plain JavaScript: everything that the chat page says to the server
// goes through here. It is an example, too: it needs nothing but `fetch`, and knows no page.
//
//     const client = new Client({ key: () => "sk-…" });
//     for await (const event of client.answer({ model, input: "Hello!", stream: true })) …

import { ApiError, Unreachable } from "./errors.js";
import { serverEvents } from "./sse.js";
import { upload } from "./upload.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {{data: Json[], has_more: boolean, last_id: string}} List */

/** A stream without as much as a comment for so long is dead: the server sends one every 5 s. */
const SILENCE_MS = 20_000;

export class Client {
  /** @param {{base?: string, key?: () => string | null, fetch?: typeof fetch}} [options] */
  constructor({ base = "", key = () => null, fetch: own } = {}) {
    this.base = base;
    this.key = key;
    this.fetch = own ?? fetch.bind(globalThis);
  }

  // Models, usage, memory

  models() {
    return this.#json("GET", "/v1/models");
  }

  /** @param {number} since Unix seconds */
  usage(since) {
    return this.#json("GET", `/v1/usage?start_time=${since}`);
  }

  memories(after = "") {
    return this.#json("GET", `/v1/memory${query({ limit: 100, after })}`);
  }

  /** @param {string} text */
  remember(text) {
    return this.#json("POST", "/v1/memory", { body: { text } });
  }

  /** @param {string} [id] without one, everything */
  forget(id) {
    return this.#json("DELETE", id ? `/v1/memory/${id}` : "/v1/memory");
  }

  // Conversations

  /**
   * @param {{archived?: boolean, after?: string, limit?: number}} options
   * @returns {Promise<List>}
   */
  conversations({ archived = false, after = "", limit = 50 } = {}) {
    const only = archived ? "true" : "";
    return this.#json("GET", `/v1/conversations${query({ limit, archived: only, after })}`);
  }

  /**
   * Conversations that have all the words in their title, or else in a `message`.
   *
   * @param {string} words
   * @param {{after?: string, limit?: number, signal?: AbortSignal}} options
   * @returns {Promise<List>} `has_more` where not all were looked at, whether any was found or not
   */
  searchConversations(words, { after = "", limit = 30, signal } = {}) {
    const path = `/v1/conversations/search${query({ query: words, limit, after })}`;
    return this.#json("GET", path, { signal });
  }

  /** @param {string} id */
  conversation(id) {
    return this.#json("GET", `/v1/conversations/${id}`);
  }

  /**
   * @param {Json} fields
   * @param {string} key the same key makes the same conversation
   */
  createConversation(fields, key) {
    return this.#json("POST", "/v1/conversations", { body: fields, headers: idempotent(key) });
  }

  /**
   * @param {string} id
   * @param {Json} fields `title`, `archived`, `memory`, `metadata`
   */
  updateConversation(id, fields) {
    return this.#json("POST", `/v1/conversations/${id}`, { body: fields });
  }

  /** @param {string} id @param {{keepalive?: boolean}} [options] */
  deleteConversation(id, { keepalive = false } = {}) {
    return this.#json("DELETE", `/v1/conversations/${id}`, { keepalive });
  }

  /**
   * A copy up to an item.
   *
   * @param {string} id
   * @param {Json} fields `after_item`, `title`, `metadata`
   * @param {string} key
   */
  branchConversation(id, fields, key) {
    const headers = idempotent(key);
    return this.#json("POST", `/v1/conversations/${id}/branch`, { body: fields, headers });
  }

  /**
   * @param {string} id
   * @param {{after?: string, limit?: number}} options newest first
   * @returns {Promise<List>}
   */
  items(id, { after = "", limit = 100 } = {}) {
    return this.#json("GET", `/v1/conversations/${id}/items${query({ limit, after })}`);
  }

  // Responses

  /**
   * @param {string} conversation
   * @param {{after?: string, limit?: number}} options newest first
   * @returns {Promise<List>}
   */
  responses(conversation, { after = "", limit = 100 } = {}) {
    return this.#json("GET", `/v1/responses${query({ limit, conversation, after })}`);
  }

  /** @param {string} id */
  response(id) {
    return this.#json("GET", `/v1/responses/${id}`);
  }

  /** @param {string} id @returns {Promise<List>} */
  inputItems(id) {
    return this.#json("GET", `/v1/responses/${id}/input_items?order=asc&limit=100`);
  }

  /** @param {string} id */
  cancelResponse(id) {
    return this.#json("POST", `/v1/responses/${id}/cancel`);
  }

  /** @param {string} id */
  deleteResponse(id) {
    return this.#json("DELETE", `/v1/responses/${id}`);
  }

  /** @param {string} id @param {"up" | "down"} rating @param {string | null} reason */
  rateResponse(id, rating, reason) {
    return this.#json("POST", `/v1/responses/${id}/feedback`, { body: { rating, reason } });
  }

  /**
   * Ask for an answer, and read its events. With `background: true` it goes on when nobody reads;
   * with a `key` it is asked for once, however often it is sent.
   *
   * @param {Json} body of `POST /v1/responses`
   * @param {{key?: string, signal?: AbortSignal, opened?: (headers: Headers) => void}} options
   */
  answer(body, { key, signal, opened } = {}) {
    const headers = key ? idempotent(key) : {};
    return this.#events("POST", "/v1/responses", { body, headers, signal, opened });
  }

  /**
   * The events of an answer from the one after `after` on, whether it still runs or not.
   *
   * @param {string} id
   * @param {number} after the last event's `sequence_number`; -1 for all of them
   * @param {{signal?: AbortSignal, opened?: (headers: Headers) => void}} options
   */
  resume(id, after, { signal, opened } = {}) {
    const path = `/v1/responses/${id}?stream=true&starting_after=${after}`;
    return this.#events("GET", path, { signal, opened });
  }

  // Files

  /** @param {string} id */
  file(id) {
    return this.#json("GET", `/v1/files/${id}`);
  }

  /** @param {string} id */
  deleteFile(id) {
    return this.#json("DELETE", `/v1/files/${id}`);
  }

  /**
   * Upload a file for answers to read, or with the purpose "vision" a picture for them to see.
   *
   * @param {File} file
   * @param {{purpose?: string, signal?: AbortSignal, progress?: (share: number) => void}} options
   * @returns {Promise<Json>}
   */
  upload(file, options = {}) {
    return upload(`${this.base}/v1/files`, this.#headers(), file, options);
  }

  /** @returns {Record<string, string>} */
  #headers() {
    const key = this.key();
    return key ? { authorization: `Bearer ${key}` } : {};
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {{body?: Json, headers?: Record<string, string>, signal?: AbortSignal,
   *          keepalive?: boolean}} options
   * @returns {Promise<any>}
   */
  async #json(method, path, options = {}) {
    const response = await this.#send(method, path, options);
    try {
      return await response.json();
    } catch {
      throw new Unreachable();
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {{body?: Json, headers?: Record<string, string>, signal?: AbortSignal,
   *          opened?: (headers: Headers) => void}} options
   */
  async *#events(method, path, { signal, opened, ...options }) {
    // What was asked for is kept open by one signal, whoever wants it closed.
    const silence = new AbortController();
    const abort = () => silence.abort();
    signal?.addEventListener("abort", abort);
    // A connection isn't told that its network is gone: it would only hear nothing any more.
    globalThis.addEventListener?.("offline", abort);
    if (signal?.aborted) silence.abort();
    let timer = setTimeout(abort, SILENCE_MS);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
    };
    try {
      const response = await this.#send(method, path, { ...options, signal: silence.signal });
      alive();
      opened?.(response.headers);
      if (response.body === null) throw new Unreachable();
      yield* serverEvents(response.body, alive);
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted) throw error;
      throw new Unreachable();
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      globalThis.removeEventListener?.("offline", abort);
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {{body?: Json, headers?: Record<string, string>, signal?: AbortSignal,
   *          keepalive?: boolean}} options
   */
  async #send(method, path, { body, headers = {}, signal, keepalive = false }) {
    /** @type {Record<string, string>} */
    const content = body === undefined ? {} : { "content-type": "application/json" };
    let response;
    try {
      response = await this.fetch(this.base + path, {
        method,
        headers: { ...this.#headers(), ...content, ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        keepalive,
        credentials: "omit",
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable();
    }
    if (!response.ok) throw await ApiError.from(response);
    return response;
  }
}

/** @param {Record<string, string | number>} fields */
function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([n, v]) => [n, String(v)]))}` : "";
}

/** @param {string} key */
function idempotent(key) {
  return { "idempotency-key": key };
}
