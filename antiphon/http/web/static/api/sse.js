// Server-sent events, read from the body of a fetch. Only what the API sends: `event:` is said
// again in the data, and comment lines are signs of life.

/** @typedef {Record<string, any>} ServerEvent */

/**
 * The events of a stream, one after another. `alive` is called for whatever comes, comments too.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} alive
 * @returns {AsyncGenerator<ServerEvent, void, void>}
 */
export async function* serverEvents(body, alive) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (!line.startsWith("data: ")) continue;
        const data = line.slice("data: ".length);
        if (data !== "[DONE]") yield JSON.parse(data);
      }
    }
  } finally {
    // Also when whoever reads has enough: an open body would keep its connection.
    reader.cancel().catch(() => {});
  }
}
