// What people are told of an answer besides its text: what it waits for, what was done differently
// from what was asked, and how it ended. Pure: from how a turn stands to sentences.

import { ApiError } from "../api/errors.js";
import { spanOf } from "./units.js";

/** @typedef {import("../api/client.js").Json} Json */
/** @typedef {import("./turns.js").Turn} Turn */
/** @typedef {"hurry" | "again" | "regenerate" | "key" | "edit"} Action */
/**
 * @typedef {object} Notice
 * @property {"quiet" | "note" | "warning" | "error"} tone
 * @property {string} text
 * @property {string} [detail]
 * @property {Action} [action]
 * @property {number} [until] when it changes by itself, as `Date.now()` counts
 */

/** Less than this share of a limit is worth a word. */
const LITTLE = 0.2;
/** The server's own, of which the page has a newer one every second. */
const ADVICE = / Please try again in .*\.$/;

/** @param {Turn} turn @returns {Notice[]} */
export function noticesOf(turn) {
  const { live, response } = turn;
  if (live && !live.ended) return [...waiting(live, turn), ...moved(live.moved, live.model)];
  const notices = [
    ...moved(live?.moved ?? null, live?.model ?? null),
    ...filesOf(response),
    ...picturesOf(response),
    ...contextOf(response),
  ];
  if (response) notices.push(...ending(response, turn));
  else if (live?.error) notices.push(refused(live.error));
  else if (live)
    notices.push({ tone: "note", text: "Stopped before it was sent.", action: "again" });
  if (live) notices.push(...leftOf(live));
  return notices;
}

/** @param {import("./answer.js").Answer} live @param {Turn} turn @returns {Notice[]} */
function waiting(live, turn) {
  const until = live.retryAt ?? undefined;
  if (live.stopping && live.phase !== "lost") return [{ tone: "quiet", text: "Stopping…" }];
  switch (live.phase) {
    case "asking":
      return [{ tone: "quiet", text: hasFiles(turn) ? "Reading the files…" : "Thinking…" }];
    case "queued":
      return [{ tone: "quiet", text: queued(live) }];
    case "full":
      return [
        {
          tone: "note",
          text: `The server is busy: ${sentence(live.error)} Asking again${inTime(until)}.`,
          action: "hurry",
          until,
        },
      ];
    case "lost":
      return [
        {
          tone: "warning",
          text: navigator.onLine
            ? `The connection is lost. The answer goes on where it was; trying again${inTime(until)}.`
            : "You are offline. The answer goes on where it was as soon as you are back.",
          action: "hurry",
          until,
        },
      ];
    default:
      return [];
  }
}

/** @param {import("./answer.js").Answer} live */
function queued(live) {
  const why = "Waiting: all places are taken by other answers";
  const expected = live.expectedMs;
  if (expected === null) return `${why}.`;
  const rest = live.startedAt + expected - Date.now();
  return rest > 1000
    ? `${why}. Yours should begin in about ${spanOf(rest)}.`
    : `${why}. Yours is next.`;
}

/** @param {string | null} why @param {string | null} model @returns {Notice[]} */
function moved(why, model) {
  const name = model ?? "another model";
  switch (why) {
    case "overload":
      return [{ tone: "note", text: `High demand, using a faster model: ${name}.` }];
    case "fallback":
      return [{ tone: "note", text: `The model you chose can't answer now; ${name} does.` }];
    default:
      return []; // whoever tries a new model on people doesn't tell them which
  }
}

/** @param {Json | null} response @returns {Notice[]} */
function contextOf(response) {
  const runs = /** @type {Json[]} */ (response?.context?.runs ?? []);
  const past = runs.filter((run) => run.kind === "history" || run.kind === "input");
  const count = (/** @type {string} */ fate) =>
    past.filter((run) => run.fate === fate).reduce((sum, run) => sum + run.items, 0);
  const [dropped, summarised, trimmed] = ["dropped", "summarised", "trimmed"].map(count);
  const parts = [
    summarised && `${messages(summarised)} shown to the model as a summary`,
    dropped && `${messages(dropped)} not shown to the model at all`,
    trimmed && `the middle of ${messages(trimmed)} left out`,
  ].filter(Boolean);
  if (!parts.length) return [];
  const detail = `Everything is kept here, but the model reads ${response?.context.window} tokens at most.`;
  return [{ tone: "note", text: `This conversation is long: ${parts.join(", ")}.`, detail }];
}

/** @param {Turn} turn */
function hasFiles(turn) {
  return (turn.user?.content ?? []).some((/** @type {Json} */ part) => part.type === "input_file");
}

/** What the model didn't see of the files that it was given. @param {Json | null} response */
function filesOf(response) {
  /** @type {Notice[]} */
  const found = [];
  for (const { filename, fate, excerpts, reason } of response?.context?.files ?? []) {
    const name = `“${filename}”`;
    const why = sentence({ message: reason });
    if (fate === "failed") {
      found.push({
        tone: "warning",
        text: `${name} could not be read, so the model didn't see it. ${why}`,
      });
    } else if (fate === "not_ready") {
      found.push({
        tone: "warning",
        text: `${name} was still being read, so the model didn't see it.`,
        action: "regenerate",
      });
    } else if (fate === "deleted") {
      found.push({ tone: "warning", text: `${name} was deleted, so the model didn't see it.` });
    } else if (fate === "excerpts") {
      const count = excerpts === 1 ? "1 excerpt" : `${excerpts ?? 0} excerpts`;
      found.push({ tone: "note", text: `${name} is long: the model was shown ${count} of it.` });
    }
  }
  return found;
}

/** How many pictures the model was not shown, and why. @param {Json | null} response */
function picturesOf(response) {
  const images = /** @type {Json[]} */ (response?.context?.images ?? []);
  const count = (/** @type {string} */ fate) => images.filter((each) => each.fate === fate).length;
  /** @type {Notice[]} */
  const found = [];
  const tell = (/** @type {number} */ number, /** @type {string} */ why) => {
    const pictures = number === 1 ? "1 picture" : `${number} pictures`;
    if (number) found.push({ tone: "warning", text: `The model didn't see ${pictures}: ${why}.` });
  };
  tell(count("no_vision"), "it can't see any");
  tell(count("deleted"), "deleted meanwhile");
  tell(count("left_out"), "there are too many to show all of them");
  return found;
}

/** @param {number} items */
function messages(items) {
  return items === 1 ? "1 earlier message" : `${items} earlier messages`;
}

/** @param {Json} response @param {Turn} turn @returns {Notice[]} */
function ending(response, turn) {
  const hasText = turn.items.some((item) => item.content?.some((/** @type {Json} */ c) => c.text));
  switch (response.status) {
    case "cancelled":
      return [{ tone: "note", text: hasText ? "You stopped this answer." : "You stopped it." }];
    case "failed": {
      const why = sentence(response.error) || "The server failed while it answered.";
      const kept = hasText ? " What had come is above." : "";
      return [{ tone: "error", text: `Interrupted. ${why}${kept}`, action: "again" }];
    }
    case "incomplete":
      return [cut(response.incomplete_details?.reason, hasText)];
    default:
      return [];
  }
}

/** @param {string | undefined} reason @param {boolean} hasText @returns {Notice} */
function cut(reason, hasText) {
  if (reason === "content_filter") {
    return hasText
      ? { tone: "warning", text: "The rest of this answer was blocked by the server's rules." }
      : { tone: "warning", text: "Blocked by the server's rules.", action: "edit" };
  }
  return { tone: "note", text: "The answer ends here: it has reached the longest length." };
}

/** @param {Error} error @returns {Notice} */
function refused(error) {
  if (!(error instanceof ApiError)) return { tone: "error", text: error.message, action: "again" };
  if (error.status === 401) {
    return { tone: "error", text: "The server wants a key.", action: "key" };
  }
  if (error.status === 429) {
    const until = error.retryAt;
    // What is more than the limit by itself is so later, too.
    if (until === null) return { tone: "warning", text: sentence(error), action: "edit" };
    const rest = until - Date.now();
    const when = rest > 0 ? `in ${spanOf(rest)}` : "now";
    const text = `${sentence(error).replace(ADVICE, "")} You can send it again ${when}.`;
    return { tone: "warning", text, action: "again", until };
  }
  if (error.status === 404 && error.param === null) {
    return { tone: "error", text: "This answer is gone: it was deleted.", action: "again" };
  }
  if (error.code === "context_length_exceeded") {
    const text = `${sentence(error)} A long text can go along as a file.`;
    return { tone: "error", text, action: "edit" };
  }
  return { tone: "error", text: error.message, action: error.status === 400 ? "edit" : "again" };
}

/**
 * What is left of the caller's limits, where that is little.
 *
 * @param {import("./answer.js").Answer} live
 */
function leftOf(live) {
  /** @type {Notice[]} */
  const found = [];
  for (const { name, limit, remaining, backAt } of live.limits) {
    const rest = backAt - Date.now();
    if (remaining > limit * LITTLE || rest <= 0) continue;
    const left = remaining === 0 ? `No ${name}` : `${remaining} of ${limit} ${name}`;
    const text = `${left} left; all are back in ${spanOf(rest)}.`;
    found.push({ tone: "quiet", text, until: backAt });
  }
  return found;
}

/** @param {number | undefined} until */
function inTime(until) {
  const rest = (until ?? 0) - Date.now();
  return rest > 900 ? ` in ${spanOf(rest)}` : " now";
}

/** @param {{message?: string} | null} error */
function sentence(error) {
  const text = error?.message?.trim() ?? "";
  return !text || /[.!?]$/.test(text) ? text : `${text}.`;
}
