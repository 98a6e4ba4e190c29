// What can go wrong with a request: the server said no, or nobody heard it.

/** The server answered with an error. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{message?: string, code?: string | null, type?: string, param?: string | null}} body
   * @param {Headers} [headers]
   */
  constructor(status, body, headers = new Headers()) {
    super(body.message || `The server answered with ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = body.code ?? body.type ?? "";
    this.param = body.param ?? null;
    this.headers = headers;
    const after = Number(headers.get("retry-after-ms"));
    /** @type {number | null} how long to wait before the next try, in ms */
    this.retryAfterMs = after > 0 ? after : null;
    /** @type {number | null} when that is over, as `Date.now()` counts */
    this.retryAt = after > 0 ? Date.now() + after : null;
    /** Whether the server says that nothing was done, so that it may be sent again. */
    this.mayRetry = headers.get("x-should-retry") === "true";
  }

  /** @param {Response} response */
  static async from(response) {
    let body = {};
    try {
      body = (await response.json()).error ?? {};
    } catch {
      // Not JSON: something between here and the server has answered.
    }
    return new ApiError(response.status, body, response.headers);
  }
}

/** Nobody answered, or the answer broke off. */
export class Unreachable extends Error {
  /** @param {string} [why] */
  constructor(why = "The server can't be reached.") {
    super(why);
    this.name = "Unreachable";
  }
}
