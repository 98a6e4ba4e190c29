// How far the server has come with reading a file, and what it says of that. Pure.

/** @typedef {import("../api/client.js").Json} Json */

const UNDER_WAY = new Set(["pending", "reading"]);

/** @param {Json | null} file whether more of it is to come */
export function isUnread(file) {
  return UNDER_WAY.has(file?.reading?.status);
}

/**
 * What people should know of a file that was read: that nothing could be made of it, or what was
 * left out.
 *
 * @param {Json | null} file
 * @returns {string[]}
 */
export function toldOf(file) {
  const { error, notices = [] } = file?.reading ?? {};
  return error ? [`It can't be read. ${error.message}`] : notices;
}
