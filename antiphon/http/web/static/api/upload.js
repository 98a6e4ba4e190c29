// An upload whose progress can be told: `fetch` says nothing of what has left so far.

import { ApiError, Unreachable } from "./errors.js";

/**
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {File} file
 * @param {{purpose?: string, signal?: AbortSignal, progress?: (share: number) => void}} options
 * @returns {Promise<Record<string, any>>} the file, as the API has it
 */
export function upload(url, headers, file, options = {}) {
  const { purpose = "user_data", signal, progress = () => {} } = options;
  const form = new FormData();
  form.append("purpose", purpose);
  form.append("file", file, file.name);
  const request = new XMLHttpRequest();
  return new Promise((resolve, reject) => {
    request.open("POST", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = (event) => progress(event.loaded / event.total);
    request.onload = () => {
      if (request.status === 200) resolve(request.response);
      else reject(new ApiError(request.status, request.response?.error ?? {}));
    };
    request.onerror = () => reject(new Unreachable());
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
