// Waiting that ends early where there is reason to: the network is back, somebody looks, or asks.

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @param {EventTarget} impatience its event `now` ends the wait
 * @returns {Promise<void>}
 */
export function sleep(ms, signal, impatience) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      over.abort();
      resolve();
    }
    signal.addEventListener("abort", end, { signal: over.signal });
    impatience.addEventListener("now", end, { signal: over.signal });
    addEventListener("online", end, { signal: over.signal });
    document.addEventListener("visibilitychange", end, { signal: over.signal });
  });
}
