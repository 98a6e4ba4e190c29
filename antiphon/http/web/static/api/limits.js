// Where the caller stands with their limits, as the headers of an answer say it.

/**
 * @typedef {object} Limit
 * @property {"requests" | "tokens"} name
 * @property {number} limit
 * @property {number} remaining
 * @property {number} backAt when all of it is there again, as `Date.now()` counts
 */

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * @param {Headers} headers
 * @returns {Limit[]} none where nothing is limited
 */
export function limitsOf(headers) {
  /** @type {Limit[]} */
  const found = [];
  for (const name of /** @type {const} */ (["requests", "tokens"])) {
    const limit = headers.get(`x-ratelimit-limit-${name}`);
    if (limit === null) continue;
    found.push({
      name,
      limit: Number(limit),
      remaining: Number(headers.get(`x-ratelimit-remaining-${name}`)),
      backAt: Date.now() + durationMs(headers.get(`x-ratelimit-reset-${name}`) ?? ""),
    });
  }
  return found;
}

/** @param {string} text as `12ms`, `1.5s`, `6m0s`, `23h59m0s` */
export function durationMs(text) {
  let ms = 0;
  for (const [, number, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g)) {
    ms += Number(number) * UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  }
  return ms;
}
