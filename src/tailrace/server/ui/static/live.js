/**
 * What the server tells as it happens, for this page: whether the stream is there and since when, and the events.
 *
 * State shown is always the last whole answer of the API. An event says only "look again", save progress, which comes
 * several times a second and is applied to what is shown.
 */
import { useEffect, useState } from "./html.js";

/** @typedef {{kind: string, connector: string} & Record<string, any>} Told */

/** `isNew`: not known yet, a page has just been opened. */
let status = { connected: false, since: Date.now(), isNew: true };
/** @type {Set<(events: Told[]) => void>} */
const hearers = new Set();
/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {MessagePort | null} */
let port = null;

export function startListening() {
  if (typeof SharedWorker === "undefined") return startAlone();
  const worker = new SharedWorker("/ui/static/worker.js", { name: "tailrace", type: "module" });
  port = worker.port;
  port.onmessage = ({ data }) => take(data);
  port.start();
  addEventListener("pagehide", () => port?.postMessage("bye"));
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

/** Where the browser has no shared workers: a stream of this page's own. */
function startAlone() {
  const fake = { postMessage: take, start() {}, onmessage: null };
  import("/ui/static/worker.js").then(() => self.onconnect?.({ ports: [fake] }));
}

function take(message) {
  if (message.kind === "state") {
    status = { connected: message.connected, since: message.since, isNew: false };
    for (const each of [...watchers]) each();
  } else {
    for (const each of [...hearers]) each(message.events);
  }
}

/** @returns {{connected: boolean, since: number, isNew: boolean}} */
export const liveStatus = () => status;

/** Shown again at every change of the stream's state. */
export function useLiveStatus() {
  const [, again] = useState(0);
  useEffect(() => onStatus(() => again((n) => n + 1)), []);
  return status;
}

/** @param {() => void} watcher @returns {() => void} What ends it. */
export function onStatus(watcher) {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/** @param {(events: Told[]) => void} hearer @returns {() => void} What ends it. */
export function onEvents(hearer) {
  hearers.add(hearer);
  return () => void hearers.delete(hearer);
}

/** Calls with the events of one connector, or of all where the name is null. */
export function useEvents(name, hear) {
  useEffect(() => onEvents((events) => {
    const mine = name === null ? events : events.filter((each) => each.connector === name || each.kind === "EventsMissed");
    if (mine.length) hear(mine);
  }), [name, hear]);
}
