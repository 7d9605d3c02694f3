/**
 * Answers of the API that a page shows, kept until a better one comes.
 *
 * The stream of events is there first, then the answer is fetched: nothing can happen between the two unseen. It is
 * fetched again when an event says so, when events were missed, and when the stream is back; no more than once a second.
 */
import { ask } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { liveStatus, onEvents, onStatus } from "./live.js";

const AGAIN_MS = 1000;
const PATIENCE_MS = 1500;
const KEPT_MAX = 200;

/** @type {Map<string, {data: any, etag: string | null, at: number}>} */
const kept = new Map();

/**
 * @typedef {{data: any, etag: string | null, error: any, at: number, isLoading: boolean, reload: () => void,
 *   set: (data: any) => void}} Resource
 */

/**
 * @param {string | null} path None is fetched where it is null.
 * @param {{connector?: string | null, kinds?: string[], everySeconds?: number, fastest?: number}} [when] Which events
 *   make it old: of this connector (of all, where null), of these kinds.
 * @returns {Resource}
 */
export function useResource(path, when = {}) {
  const [, show] = useState(0);
  const held = useRef(/** @type {any} */ ({}));
  const now = held.current;
  if (now.path !== path) Object.assign(now, { path, error: null, answer: path ? kept.get(path) : null, isLoading: !!path });
  const load = useCallback(() => _load(now, () => show((n) => n + 1)), []);
  useEffect(() => _keepFresh(now, path, load, when), [path, JSON.stringify(when)]);
  const set = useCallback((data) => {
    now.answer = { ...(now.answer ?? { etag: null }), data, at: Date.now() };
    show((n) => n + 1);
  }, []);
  const { data = null, etag = null, at = 0 } = now.answer ?? {};
  return { data, etag, at, error: now.error, isLoading: now.isLoading, reload: load, set };
}

async function _load(now, show) {
  const path = now.path;
  if (!path) return;
  now.control?.abort();
  const control = (now.control = new AbortController());
  try {
    const { data, etag } = await ask({ method: "GET", path }, control.signal);
    if (now.path !== path) return;
    now.answer = { data, etag, at: Date.now() };
    now.error = null;
    _keep(path, now.answer);
  } catch (error) {
    if (control.signal.aborted || now.path !== path) return;
    now.error = error;
  }
  now.isLoading = false;
  show();
}

function _keep(path, answer) {
  kept.delete(path);
  kept.set(path, answer);
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
}

function _keepFresh(now, path, load, when) {
  if (!path) return undefined;
  let timer = 0;
  let loadedAt = 0;
  let wanted = false;
  const run = () => {
    timer = 0;
    if (document.hidden) return void (wanted = true);
    wanted = false;
    loadedAt = Date.now();
    load();
  };
  const soon = () => {
    if (timer) return;
    timer = setTimeout(run, Math.max(0, loadedAt + (when.fastest ?? AGAIN_MS) - Date.now()));
  };
  // Connected first; where no stream comes, the answer is shown all the same.
  timer = liveStatus().isNew ? setTimeout(run, PATIENCE_MS) : 0;
  if (!liveStatus().isNew) run();
  const ends = [
    onEvents((events) => events.some((each) => _concerns(each, when)) && soon()),
    onStatus(() => {
      clearTimeout(timer);
      timer = 0;
      run();
    }),
  ];
  const shown = () => !document.hidden && wanted && run();
  document.addEventListener("visibilitychange", shown);
  const every = when.everySeconds ? setInterval(soon, when.everySeconds * 1000) : 0;
  return () => {
    clearTimeout(timer);
    clearInterval(every);
    document.removeEventListener("visibilitychange", shown);
    for (const end of ends) end();
    now.control?.abort();
  };
}

function _concerns(event, when) {
  if (event.kind === "EventsMissed") return true;
  if (!when.kinds || when.connector === undefined) return false;
  return (when.connector === null || event.connector === when.connector) && when.kinds.includes(event.kind);
}

/** Shown again every so many milliseconds: for ages that grow while nothing happens. @param {number} ms */
export function useClock(ms = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && set(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
