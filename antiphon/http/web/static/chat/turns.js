// What a conversation looks like to people: turns, each a question and what came of it. Made from
// the items and the responses that the API lists. Pure.

/** @typedef {import("../api/client.js").Json} Json */
/**
 * @typedef {object} Turn
 * @property {Json | null} user the item; one that has only been sent has no id
 * @property {Json[]} items what was answered
 * @property {Json | null} response
 * @property {import("./answer.js").Answer | null} live while it is being answered
 */

/**
 * @param {Json[]} items the oldest first
 * @param {Json[]} responses the oldest first
 * @returns {Turn[]}
 */
export function turnsOf(items, responses) {
  /** @type {Turn[]} */
  const turns = [];
  for (const item of items) {
    if (item.role === "system" || item.role === "developer") continue;
    if (item.role === "user" || turns.length === 0) turns.push(newTurn(null));
    const turn = turns[turns.length - 1];
    if (item.role === "user") turn.user = item;
    else turn.items.push(item);
  }
  place(turns, responses);
  return turns;
}

/** @param {Json | null} user @returns {Turn} */
export function newTurn(user) {
  return { user, items: [], response: null, live: null };
}

/** @param {Turn} turn whether nothing more comes of it */
export function isOver(turn) {
  return turn.live === null || turn.live.ended;
}

/**
 * Whether it came to nothing: what was sent was refused, or stopped on its way, and the server has
 * none of it.
 *
 * @param {Turn} turn
 */
export function isUnsent(turn) {
  return turn.live !== null && turn.live.ended && turn.live.id === null;
}

/**
 * Whether a turn that is shown is what the server says now, but for how it was rated.
 *
 * @param {Turn} shown
 * @param {Turn} now
 */
export function isSame(shown, now) {
  const ids = (/** @type {Turn} */ turn) => turn.items.map((item) => item.id).join();
  return (
    isOver(shown) &&
    (shown.user?.id ?? now.user?.id) === now.user?.id &&
    shown.response?.id === now.response?.id &&
    shown.response?.status === now.response?.status &&
    ids(shown) === ids(now)
  );
}

/**
 * Find each response's turn: by what it said, else by what it was asked. One that failed before it
 * had a place tells neither; it is about the next question that has none.
 *
 * @param {Turn[]} turns
 * @param {Json[]} responses
 */
function place(turns, responses) {
  const byItem = new Map();
  for (const turn of turns) {
    for (const item of [turn.user, ...turn.items]) if (item) byItem.set(item.id, turn);
  }
  let next = 0;
  for (const response of responses) {
    const said = response.output.map((/** @type {Json} */ item) => item.id);
    const asked = (response.context?.runs ?? [])
      .filter((/** @type {Json} */ run) => run.kind === "input")
      .map((/** @type {Json} */ run) => run.last);
    const known = [...said, ...asked].map((id) => byItem.get(id)).find(Boolean);
    const turn = known ?? turns.slice(next).find((each) => !each.response && !each.items.length);
    if (!turn) continue;
    turn.response = response;
    next = turns.indexOf(turn) + 1;
  }
}
