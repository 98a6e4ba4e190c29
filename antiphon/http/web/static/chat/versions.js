// A message that is edited, or an answer that is asked for anew, begins a branch: a conversation of
// its own that shares what came before. To people they are versions of one conversation. Which
// branches belong together stands in their metadata: `branch_root`, `branch_parent`, and
// `branch_turn`, the first turn that isn't the parent's. Pure.

/** @typedef {import("../api/client.js").Json} Json */

/** @param {Json} conversation the family's name */
export function rootOf(conversation) {
  return conversation.metadata?.branch_root ?? conversation.id;
}

/**
 * What a new branch of a conversation says of itself.
 *
 * @param {Json} conversation
 * @param {number} turn
 */
export function branchMetadata(conversation, turn) {
  return {
    ...conversation.metadata,
    branch_root: rootOf(conversation),
    branch_parent: conversation.id,
    branch_turn: String(turn),
  };
}

/**
 * One conversation of each family, the one that changed last, in the order of the list.
 *
 * @param {Json[]} conversations the newest first
 */
export function newestOfEach(conversations) {
  /** @type {Map<string, Json>} */
  const found = new Map();
  for (const each of conversations) {
    if (!found.has(rootOf(each))) found.set(rootOf(each), each);
  }
  return [...found.values()];
}

/**
 * The versions of a turn that `current` is one of: a conversation for each, the oldest first.
 *
 * @param {Json} current
 * @param {number} turn
 * @param {Json[]} family all of it, `current` too
 */
export function versionsAt(current, turn, family) {
  const byId = new Map(family.map((each) => [each.id, each]));
  /** @type {Json[]} */
  const versions = [];
  const others = family.filter((each) => forkOf(current, each, byId) === turn);
  // Those that part later than here from one another are one version: its newest is shown.
  const newestFirst = [...others].sort((one, other) => other.updated_at - one.updated_at);
  for (const each of newestFirst) {
    if (versions.every((known) => forkOf(known, each, byId) <= turn)) versions.push(each);
  }
  versions.push(current);
  return versions.sort((one, other) => bornAt(one, turn, byId) - bornAt(other, turn, byId));
}

/**
 * The first turn in which two conversations of a family differ; infinite for one and itself.
 *
 * @param {Json} one
 * @param {Json} other
 * @param {Map<string, Json>} byId
 */
function forkOf(one, other, byId) {
  const ours = lineOf(one, byId);
  const theirs = lineOf(other, byId);
  let shared = 0;
  while (shared < ours.length && shared < theirs.length && ours[shared].id === theirs[shared].id) {
    shared += 1;
  }
  if (shared === 0) return 0; // what they have in common is gone
  const turns = [ours[shared], theirs[shared]].filter(Boolean).map(turnOf);
  return turns.length ? Math.min(...turns) : Infinity;
}

/**
 * A conversation with what it is a branch of, the root first.
 *
 * @param {Json} conversation
 * @param {Map<string, Json>} byId
 */
function lineOf(conversation, byId) {
  /** @type {Json[]} */
  const line = [];
  /** @type {Json | undefined} */
  let each = conversation;
  while (each && !line.includes(each)) {
    line.unshift(each);
    each = byId.get(each.metadata?.branch_parent);
  }
  return line;
}

/**
 * When the version that a conversation shows of a turn was made.
 *
 * @param {Json} conversation
 * @param {number} turn
 * @param {Map<string, Json>} byId
 */
function bornAt(conversation, turn, byId) {
  // The last branching at or before the turn made it; the whole's own version is the oldest.
  const made = lineOf(conversation, byId).filter((each) => turnOf(each) <= turn);
  const last = made.at(-1);
  return last && last.metadata?.branch_turn !== undefined ? last.created_at : 0;
}

/** @param {Json} conversation */
function turnOf(conversation) {
  const text = conversation.metadata?.branch_turn;
  return text === undefined ? 0 : Number(text);
}
