/**
 * One stream of events for the whole browser. Every open page is a port; what the stream tells is passed on to all of
 * them, at most ten times a second, and each is told whether the stream is there.
 */

const KINDS = [
  "LifeChanged", "StateChanged", "SourcePrepared", "SparkStarting", "SparkShown", "SparkWorked", "TableChanged",
  "SnapshotProgressed", "TablesLanded", "CutPublished", "CopyNotified", "TroubleChanged", "StreamProgressed",
  "EventsMissed",
];
const BATCH_MS = 100;
const RETRY_MS = 2000;

/** @type {Set<MessagePort>} */
const ports = new Set();
/** @type {EventSource | null} */
let source = null;
let state = { connected: false, since: Date.now() };
let batch = [];
let timer = 0;

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === "bye") ports.delete(port);
    if (data === "bye" && !ports.size) close();
    if (data === "again") connect();
  };
  port.start();
  if (source) port.postMessage({ kind: "state", ...state });
  else connect();
};

function close() {
  source?.close();
  source = null;
  state = { connected: false, since: Date.now() };
}

function connect() {
  source?.close();
  source = new EventSource("/events");
  source.onopen = () => set(true);
  source.onerror = () => {
    set(false);
    if (source?.readyState !== EventSource.CLOSED) return;
    // An answer that is no stream, such as 401 or 429, ends it for good: ask again later.
    source = null;
    setTimeout(() => ports.size && !source && connect(), RETRY_MS);
  };
  for (const kind of KINDS) source.addEventListener(kind, (event) => hear(kind, event.data));
}

function set(connected) {
  if (connected !== state.connected) state = { connected, since: Date.now() };
  tell({ kind: "state", ...state });
}

function hear(kind, data) {
  batch.push({ ...JSON.parse(data), kind });
  if (!timer) timer = setTimeout(pass, BATCH_MS);
}

function pass() {
  timer = 0;
  tell({ kind: "events", events: batch });
  batch = [];
}

function tell(message) {
  for (const port of ports) port.postMessage(message);
}
