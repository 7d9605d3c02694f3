/**
 * Asks the server's public API. Every error has the message and the hint of the answer's body, so that a page can show
 * both; nothing is tried twice here.
 */

/** @typedef {{method: string, path: string, body?: any, raw?: string | Blob, headers?: Record<string, string>, exact?: boolean}} Request */

export class ApiError extends Error {
  /** @param {number} status 0 where no answer came. @param {string} text @param {any} [body] */
  constructor(status, text, body) {
    const [message, ...rest] = String(text).split("\nhint: ");
    super(message);
    this.status = status;
    /** @type {string | null} */
    this.hint = rest.length ? rest.join("\nhint: ") : null;
    this.body = body;
  }
}

const USER = "tailrace-user";

/** Who acts, for histories. @returns {string} */
export function userName() {
  return localStorage.getItem(USER) ?? "";
}

/** @param {string} name */
export function setUserName(name) {
  localStorage.setItem(USER, name.trim().slice(0, 100));
}

/** One part of a path. @param {string} text */
export const part = encodeURIComponent;

/** @param {string} name A connector's. @param {string} [rest] */
export const connectorPath = (name, rest = "") => `/connectors/${part(name)}${rest}`;

/**
 * The answer's JSON, its ETag and its status. Throws ApiError.
 * @param {Request} request @param {AbortSignal} [signal]
 * @returns {Promise<{data: any, etag: string | null, status: number}>}
 */
export async function ask(request, signal) {
  const answer = await _send(request, signal);
  const text = await answer.text();
  const data = _parsed(text, request.exact);
  if (answer.status === 401 && !location.pathname.startsWith("/ui/login")) {
    location.assign(`/ui/login?then=${part(location.pathname + location.search)}`);
  }
  if (!answer.ok && !(request.path.startsWith("/health/ready") && answer.status === 503)) {
    throw new ApiError(answer.status, data?.message ?? text.slice(0, 500), data);
  }
  return { data, etag: answer.headers.get("etag"), status: answer.status };
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = async (path, signal) => (await ask({ method: "GET", path }, signal)).data;

async function _send(request, signal) {
  const headers = { accept: "application/json", ...request.headers };
  const changes = request.method !== "GET";
  if (changes && userName()) headers["tailrace-user"] = _headerText(userName());
  let body = request.raw;
  if (request.body !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(request.body);
  }
  try {
    return await fetch(request.path, { method: request.method, headers, body, signal, credentials: "same-origin" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "the server cannot be reached\nhint: see whether `tailrace serve` still runs");
  }
}

/** A whole number that is too large for JavaScript is kept as the text that was sent. */
function _exact(_, value, context) {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
}

/** A header holds Latin-1 alone. */
function _headerText(text) {
  return text.replace(/[^\x20-\x7e\xa0-\xff]/g, "?");
}

function _parsed(text, isExact = false) {
  if (!text) return null;
  try {
    return isExact ? JSON.parse(text, _exact) : JSON.parse(text);
  } catch {
    return null;
  }
}
