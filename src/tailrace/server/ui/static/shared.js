/** What several pages need of the server: progress of all connectors, kept up to date by events, and what it is. */
import { settle } from "./actions.js";
import { connectorPath } from "./api.js";
import { createContext, useCallback, useContext, useMemo } from "./html.js";
import { useEvents } from "./live.js";
import { useResource } from "./store.js";

/** Events after which a connector's state has to be asked for again. */
const STATES = ["LifeChanged", "StateChanged", "TroubleChanged", "TableChanged", "TablesLanded"];

/** @typedef {{connectors: import("./store.js").Resource, server: any}} Known */
export const Known = createContext(/** @type {Known} */ (/** @type {any} */ (null)));
export const useKnown = () => useContext(Known);

/** Every connector: `{name: {status, info, progress}}`. One request for all of them, then events. */
export function useConnectors() {
  const found = useResource("/connectors?expand=progress", { connector: null, kinds: STATES, everySeconds: 15 });
  const hear = useCallback((events) => {
    if (!found.data) return;
    const changed = {};
    for (const event of events) {
      const entry = changed[event.connector] ?? found.data[event.connector];
      if (entry?.progress) changed[event.connector] = { ...entry, progress: advanced(entry.progress, event) };
    }
    if (Object.keys(changed).length) found.set({ ...found.data, ...changed });
  }, [found.data]);
  useEvents(null, hear);
  const data = useMemo(() => found.data && Object.fromEntries(Object.entries(found.data).map(([name, entry]) => [name, { progress: flat(entry.progress) }])), [found.data]);
  for (const [name, entry] of Object.entries(data ?? {})) settle(name, entry.progress);
  return { ...found, data };
}

/** A progress whose parts are beside each other: `state`, `trace`, `tables` … are asked for in every row. */
function flat(progress) {
  return progress && { ...progress, ...progress.life, ...progress.lake };
}

/** One connector's progress. @param {string} name */
export function useProgress(name) {
  const kinds = [...STATES, "SnapshotProgressed", "CopyNotified"];
  const found = useResource(connectorPath(name, "/progress"), { connector: name, kinds, everySeconds: 10 });
  const hear = useCallback((events) => {
    if (!found.data) return;
    const next = events.reduce(advanced, found.data);
    if (next !== found.data) found.set(next);
  }, [found.data]);
  useEvents(name, hear);
  const data = useMemo(() => flat(found.data), [found.data]);
  settle(name, data);
  return { ...found, data };
}

/** A progress after an event that carries figures. @param {any} progress @param {any} event */
function advanced(progress, event) {
  if (event.kind === "StreamProgressed") {
    return {
      ...progress,
      log: { ...progress.log, seq: event.log_seq, changes_per_second: event.changes_per_second },
      lag: { seconds: event.lag_seconds, bytes: event.lag_bytes, transactions: Math.max(0, event.log_seq - event.cut_seq) },
      cut: progress.cut && event.cut_seq < progress.cut.seq ? progress.cut : { ...progress.cut, seq: event.cut_seq, position: event.text },
    };
  }
  if (event.kind === "CutPublished" && event.committed) {
    const { seq, position, committed, published, seconds } = event;
    const log = progress.log && { ...progress.log, seq: Math.max(progress.log.seq, seq) };
    const transactions = Math.max(0, (log?.seq ?? seq) - seq);
    const lag = progress.lag && { ...progress.lag, transactions, seconds: transactions ? progress.lag.seconds : 0 };
    return { ...progress, log, lag, cut: { ...progress.cut, seq, position, committed, published, seconds } };
  }
  return progress;
}

/** What the source keeps, once there is a lake and an address. @param {string} name @param {any} progress Data of `useProgress`. */
export function useSource(name, progress) {
  const isThere = progress?.cut && progress.source?.host;
  const found = useResource(isThere ? connectorPath(name, "/source") : null, { connector: name, kinds: ["LifeChanged", "StateChanged", "TroubleChanged"], everySeconds: 10 });
  return found.error ? { ...found, data: null } : found;
}

/** What this server is: version, what may not be done here. Null until it is known. */
export function useServer() {
  const { data } = useResource("/tailrace", { everySeconds: 60 });
  return data;
}

/** `Known` as one value. */
export function useKnownNow() {
  const connectors = useConnectors();
  const server = useServer();
  return useMemo(() => ({ connectors, server }), [connectors.data, connectors.error, server]);
}

/** `host/database`, without a user. @param {any} progress */
export function sourceText(progress) {
  const source = progress?.source;
  if (!source) return "source not known";
  const port = source.port && source.port !== "5432" ? `:${source.port}` : "";
  return `${source.host ?? source.kind}${port}/${source.database ?? ""}`;
}
