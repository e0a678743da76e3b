/** Requests to the service: the same `/v1` that programs use. The browser adds the cookie of the session. */

/** An answer that is an error, with the fields that the service gave: code, message, position, end, field ... */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    Object.assign(this, error);
  }
}

/**
 * @param {string} method
 * @param {string} path such as /v1/sets
 * @param {{query?: Record<string, any>, json?: any, body?: BodyInit, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<any>} the answer's JSON; null if it has none
 */
export async function request(method, path, { query = {}, json, body, headers = {}, signal } = {}) {
  const own = { "X-Vedette-Console": "1", ...headers };
  if (json !== undefined) own["Content-Type"] = "application/json";
  const answer = await fetch(withQuery(path, query), {
    method, headers: own, signal, body: json === undefined ? body : JSON.stringify(json), credentials: "same-origin",
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "unreachable", message: "The service does not answer. Is it still running?" });
  });
  const text = await answer.text();
  const read = text && answer.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : null;
  if (answer.ok) return read;
  const error = new ApiError(answer.status, read?.error ?? { code: "unknown", message: `${answer.status} ${answer.statusText}` });
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("signed-out", { detail: error }));
  throw error;
}

export const get = (path, query, signal) => request("GET", path, { query, signal });
export const post = (path, json, query) => request("POST", path, { json, query });
export const put = (path, json) => request("PUT", path, { json });
export const patch = (path, json, query) => request("PATCH", path, { json, query });
export const remove = (path, query) => request("DELETE", path, { query });

/** The path of a set, or of something in it: setPath("a b", "queries", id). */
export function setPath(name, ...parts) {
  return ["/v1/sets", name, ...parts].map((part, place) => (place ? encodeURIComponent(part) : part)).join("/");
}

/** The answer, or null if the service has no such route or the caller may not use it. */
export async function getIfAny(path, query, signal) {
  try {
    return await get(path, query, signal);
  } catch (error) {
    if ([403, 404, 405, 409].includes(error.status)) return null;
    throw error;
  }
}

function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}
