/**
 * Pinned queries: each answers one number, asked again at every new cut and drawn as a line on the connector's first page.
 * They are kept in the browser; an address with `?pin=NAME=SQL` pins one once.
 */
import { ask } from "../api.js";
import { count, counted, time } from "../format.js";
import { html, useCallback, useEffect, useRef, useState } from "../html.js";
import { useEvents } from "../live.js";
import { go, goWith, linkTo } from "../router.js";
import { Chart } from "./chart.js";

const AGAIN_MS = 1000;
const POINTS_MAX = 600;
const KINDS = ["CutPublished", "EventsMissed"];
const histories = new Map();

export const queryRequest = (connector, sql, more) => ({ method: "POST", path: "/query", body: { connector, sql, ...more }, exact: true });

const keyOf = (connector, more = "") => `tailrace-pins/${connector}${more}`;
const stored = (key) => JSON.parse(localStorage.getItem(key) ?? "[]");
const store = (key, found) => localStorage.setItem(key, JSON.stringify(found));
const without = (connector, name) => stored(keyOf(connector)).filter((each) => each.name !== name);
const add = (connector, name, sql) => store(keyOf(connector), [...without(connector, name), { name, sql }]);

/** What the address suggests is pinned on the first visit; what was removed stays away. */
function takeSuggested(connector, suggested) {
  const key = keyOf(connector, "/suggested");
  const known = stored(key);
  for (const each of suggested) {
    const [, name, sql] = /^([^=]+)=(.+)$/s.exec(each) ?? [];
    if (sql && !known.includes(each)) add(connector, name.trim(), sql);
  }
  store(key, [...new Set([...known, ...suggested])].slice(-100));
  goWith({ pin: null });
}

/** Runs at each cut while it is on and someone looks, and no sooner than a second after the last time. */
export function useAtCuts(connector, isOn, run) {
  const now = useRef({ at: 0 }).current;
  const soon = useCallback(() => {
    now.isWanted = isOn;
    if (isOn && !now.timer) now.timer = setTimeout(now.tick, Math.max(0, now.at + AGAIN_MS - Date.now()));
  }, [isOn]);
  const tick = async () => {
    if (!document.hidden) {
      Object.assign(now, { at: Date.now(), isWanted: false });
      await now.run();
    }
    now.timer = 0;
    if (now.isWanted && !document.hidden) now.soon();
  };
  Object.assign(now, { run, soon, tick });
  useEvents(connector, useCallback((events) => events.some((each) => KINDS.includes(each.kind)) && soon(), [soon]));
  useEffect(() => {
    soon();
    const look = () => now.isWanted && soon();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(now.timer);
      Object.assign(now, { isWanted: false, timer: 0 });
      document.removeEventListener("visibilitychange", look);
    };
  }, [soon]);
}

/** The place for them on a page. */
export function Pinned({ name, route }) {
  const [pins, set] = useState(() => stored(keyOf(name)));
  const [, show] = useState(0);
  const suggested = route.query.getAll("pin");
  useEffect(() => {
    if (suggested.length) takeSuggested(name, suggested);
    set(stored(keyOf(name)));
  }, [suggested.join()]);
  useAtCuts(name, pins.length > 0, async () => {
    for (const pin of pins) {
      await askOnce(name, pin);
      show((n) => n + 1);
    }
  });
  const remove = (pin) => {
    store(keyOf(name), without(name, pin.name));
    set(without(name, pin.name));
  };
  return pins.length > 0 && html`<section class="cols" aria-label="Pinned queries">${pins.map((pin) => html`<${Card} key=${pin.name} connector=${name} pin=${pin} remove=${() => remove(pin)} />`)}</section>`;
}

function historyOf(connector, { name, sql }) {
  const key = [connector, name, sql].join("\n");
  if (!histories.has(key)) histories.set(key, { points: [], cuts: 0 });
  return histories.get(key);
}

async function askOnce(connector, pin) {
  const history = historyOf(connector, pin);
  try {
    const { data } = await ask(queryRequest(connector, pin.sql, { rows_max: 2, seconds_max: 10 }));
    const value = numberIn(data);
    if (value === null) throw new Error("It does not answer one number.");
    const last = history.points.at(-1);
    const point = { at: Math.max(Date.parse(data.committed) / 1000, last?.at ?? 0), seq: data.seq, value };
    if (last?.seq === data.seq) history.points.pop();
    else history.cuts += 1;
    history.points = [...history.points, point].slice(-POINTS_MAX);
    history.error = null;
  } catch (error) {
    history.error = error;
  }
}

/** The one number of an answer; null where it is anything else. */
function numberIn({ rows, columns }) {
  const found = rows.length === 1 && columns.length === 1 ? rows[0][0] : null;
  return ["number", "string"].includes(typeof found) && found !== "" && Number.isFinite(+found) ? +found : null;
}

const shown = (value) => (Number.isInteger(value) ? count(value) : String(Math.round(value * 1e4) / 1e4));

function Card({ connector, pin: { name, sql }, remove }) {
  const { points, cuts, error } = historyOf(connector, { name, sql });
  const values = points.map((each) => each.value);
  const last = points.at(-1);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return html`<article class="card"><header><h2 class="break">${name}</h2><span class="row"><a class="button plain small" href=${linkTo(connector, "query", { sql })}>Open</a>
      <button type="button" class="button plain small" aria-label=${`Remove ${name}`} onClick=${remove}>✕</button></span></header>
    <div class="body stack"><div class="row"><span class="pinned-value">${last ? shown(last.value) : "–"}</span>
        ${last && html`<span class="soft"><span class="strong">${least === most ? "always" : `${shown(least)} to`} ${shown(most)} at ${counted(cuts, "cut")}</span><br />as of ${time(last.at * 1000, { ms: true })}</span>`}</div>
      ${error && html`<p class="bad break" role="status">${error.message}</p>`}
      ${points.length > 1 && least >= 0 && html`<${Chart} label="At each cut" times=${points.map((each) => each.at)} values=${values} show=${shown} height=${84} from=${points[0].at} to=${Math.max(last.at, points[0].at + 60)} gap=${Infinity} />`}
    </div></article>`;
}

/** Pins a query under a name. Of one that answers no single number, the rows are counted. */
export function Pinning({ name, sql, answer }) {
  const [called, call] = useState("");
  const pin = (event) => {
    event.preventDefault();
    const text = sql.trim().replace(/[;\s]+$/, "");
    add(name, called.trim(), numberIn(answer) === null ? `select count(*) from (\n${text}\n)` : text);
    go(linkTo(name));
  };
  return html`<form class="row nowrap-row" onSubmit=${pin}><input aria-label="Pin as" placeholder="Pin as …" required maxlength="80" value=${called} onInput=${(event) => call(event.target.value)} />
    <button class="button" disabled=${!answer}>Pin</button></form>`;
}
