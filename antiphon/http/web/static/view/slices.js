// Work that is cut into slices: all of it together takes a small part of each frame.

/** What is left of a frame is the browser's, and whoever types. */
const SLICE_MS = 7;
/** Frames that nobody sees don't come. */
const HIDDEN_MS = 50;

/** @typedef {(deadline: number) => boolean} Work does some, and says whether it is done */

/** @type {Set<Work>} */
const waiting = new Set();
let isScheduled = false;

/** @param {Work} work it is done once, however often it is asked for meanwhile */
export function soon(work) {
  waiting.add(work);
  schedule();
}

function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  if (document.hidden) setTimeout(slice, HIDDEN_MS);
  else requestAnimationFrame(slice);
}

function slice() {
  isScheduled = false;
  const deadline = performance.now() + SLICE_MS;
  for (const work of [...waiting]) {
    waiting.delete(work);
    if (!work(deadline)) waiting.add(work);
    if (performance.now() >= deadline) break;
  }
  if (waiting.size) schedule();
}
