/** The tables of a lake: their states with the reasons, however many there are. */
import { ask, connectorPath, part } from "../../api.js";
import { bytes, count, time } from "../../format.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../../html.js";
import { goWith } from "../../router.js";
import { useResource } from "../../store.js";
import { Grid, inOrder } from "../../parts/grid.js";
import { Empty, Shown } from "../../parts/notice.js";
import { State, wordOf } from "../../parts/state.js";
import { SentSignal } from "../copies/control.js";
import { StartCopy } from "../copies/start.js";
import { LeaveOut } from "./leaving_out.js";
import { TableDrawer } from "./drawer.js";

const PAGE = 100;
const AGAIN_MS = 15000;
const KINDS = ["TableChanged", "LifeChanged", "TablesLanded"];
const ORDER = ["errored", "resyncing", "snapshotting", "pending", "live", "removed"];
const FIGURES = ["behind", "rows", "bytes", "changed"];

export function Tables({ name, progress, route }) {
  const tables = useResource(connectorPath(name, "/tables"), { connector: name, kinds: KINDS, everySeconds: 60 });
  return html`<${Shown} of=${tables} what="Tables">${(all) => (all.length
    ? html`<${List} name=${name} all=${all} route=${route} progress=${progress.data} again=${tables.reload} />`
    : html`<div class="card"><${Empty} title="No tables yet"><p>They appear when the connector has looked at its source.</p><//></div>`)}<//>`;
}

function List({ name, all, route, progress, again }) {
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const [sorted, setSorted] = useState(/** @type {[string, boolean]} */ (["state", false]));
  const [doing, begin] = useState("");
  const [sent, setSent] = useState(/** @type {string | null} */ (null));
  const [figures, see] = useFigures(name, all);
  const state = route.query.get("state") ?? "";
  const search = route.query.get("search") ?? "";
  const opened = route.query.get("table");
  const toggle = useCallback((key) => setChosen((now) => changedSet(now, key)), []);
  const columns = useMemo(() => columnsOf(chosen, toggle), [chosen]);
  const shown = useMemo(() => {
    const fits = all.filter((each) => (!state || each.state === state) && each.table.toLowerCase().includes(search.toLowerCase()));
    return inOrder(fits.map((each) => ({ ...UNKNOWN, ...figures[each.table], ...kept(each) })), columns, sorted);
  }, [all, state, search, sorted, figures, columns]);
  const sortBy = (key) => {
    setSorted([key, sorted[0] === key ? !sorted[1] : key !== "table" && key !== "state"]);
    // To order by a figure is to know it of every table.
    if (FIGURES.includes(key)) see(all.map((each) => each.table));
  };
  const done = () => {
    setChosen(new Set());
    begin("");
    again();
  };
  return html`<div class="row apart"><${Chips} all=${all} state=${state} />
      <input type="search" class="search" aria-label="Find a table" placeholder="Find a table" value=${search} onInput=${(event) => goWith({ search: event.target.value })} /></div>
    ${sent && html`<${SentSignal} key=${sent} name=${name} id=${sent} />`}
    ${chosen.size > 0 && html`<div class="row bulk" role="group" aria-label="Chosen tables"><span class="strong">${count(chosen.size)} chosen</span>
      <button type="button" class="button small" onClick=${() => begin("copy")}>Copy again …</button>
      <button type="button" class="button small danger" onClick=${() => begin("leave")}>Leave out …</button>
      <button type="button" class="button plain small" onClick=${() => setChosen(new Set())}>Choose none</button></div>`}
    <div class="card tables">${shown.length
      ? html`<${Grid} label="Tables" columns=${columns} rows=${shown} keyOf=${keyOf} open=${(row) => goWith({ table: row.table })} chosen=${chosen} choose=${toggle}
          sorted=${sorted} sortBy=${sortBy} seen=${(first, last) => see(shown.slice(first, last).map(keyOf), true)} />`
      : html`<${Empty} title="No table fits"><button type="button" class="button" onClick=${() => goWith({ state: null, search: null })}>Show all</button><//>`}</div>
    <p class="row small faint"><span>${count(shown.length)} of ${count(all.length)}. Enter opens a row, the space bar chooses it.</span>
      ${shown.length > 0 && html`<button type="button" class="linklike" onClick=${() => setChosen(new Set(shown.map(keyOf)))}>Choose all ${count(shown.length)}</button>`}</p>
    ${opened && html`<${TableDrawer} key=${opened} name=${name} table=${opened} tell=${setSent} close=${() => goWith({ table: null })} />`}
    ${doing === "copy" && html`<${StartCopy} name=${name} tables=${[...chosen]} state=${progress?.state} tell=${setSent} close=${() => begin("")} />`}
    ${doing === "leave" && html`<${LeaveOut} name=${name} tables=${[...chosen]} close=${() => begin("")} done=${done} />`}`;
}

const UNKNOWN = { rows: undefined, bytes: undefined, last_changed: undefined, changes_behind: undefined };
const kept = ({ table, state, reason, hint, copies }) => ({ table, state, reason, hint, copies });
const keyOf = (row) => row.table;

function changedSet(set, key) {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

function columnsOf(chosen, toggle) {
  const known = (value, show, none = "not known") => (value === undefined ? html`<span class="faint">…</span>` : value === null ? html`<span class="faint">${none}</span>` : show(value));
  const whole = (n) => (n === 0 ? "none" : count(n));
  return [
    { key: "choose", label: html`<span class="unseen">Chosen</span>`, width: "38px", cell: (row) => html`<input type="checkbox" tabindex="-1" aria-label=${`Choose ${row.table}`} checked=${chosen.has(row.table)} onChange=${() => toggle(row.table)} />` },
    { key: "table", label: "Table", width: "minmax(170px, 2fr)", sort: (row) => row.table, cell: (row) => html`<button type="button" tabindex="-1" class="linklike from-end" title=${row.table} onClick=${() => goWith({ table: row.table })}><bdi>${row.table}</bdi></button>` },
    { key: "state", label: "State", width: "minmax(122px, 0.7fr)", sort: (row) => ORDER.indexOf(row.state), cell: (row) => html`<${State} of=${row.state} quiet />` },
    { key: "behind", label: "Behind", width: "100px", isNumber: true, sort: (row) => row.changes_behind, cell: (row) => known(row.changes_behind, (n) => (n === 0 ? "caught up" : `${count(n)} changes`)) },
    { key: "rows", label: "Rows", width: "92px", isNumber: true, sort: (row) => row.rows, cell: (row) => known(row.rows, whole) },
    { key: "bytes", label: "In the lake", width: "94px", isNumber: true, sort: (row) => row.bytes, cell: (row) => known(row.bytes, bytes) },
    { key: "changed", label: "Last changed", width: "118px", sort: (row) => row.last_changed, cell: (row) => known(row.last_changed, (at) => html`<span title=${time(at, { date: true })}>${time(at)}</span>`, row.rows === null ? "not known" : "unchanged") },
    { key: "copies", label: "Copies", width: "70px", isNumber: true, sort: (row) => row.copies, cell: (row) => count(row.copies) },
    { key: "reason", label: "Why and what helps", width: "minmax(130px, 2fr)", cell: (row) => (row.reason ? html`<span title=${[row.reason, row.hint].filter(Boolean).join("\n")}>${row.reason}${row.hint ? html` <span class="faint">· ${row.hint}</span>` : ""}</span>` : "") },
  ];
}

function Chips({ all, state }) {
  const counts = {};
  for (const each of all) counts[each.state] = (counts[each.state] ?? 0) + 1;
  const found = Object.keys(counts).sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  return html`<div class="chips" role="group" aria-label="Show only">
    <button type="button" class="chip" aria-pressed=${String(!state)} onClick=${() => goWith({ state: null })}>All ${count(all.length)}</button>
    ${found.map((each) => html`<button type="button" class="chip" aria-pressed=${String(state === each)} onClick=${() => goWith({ state: state === each ? null : each })}>
      <${State} of=${each} word=${`${wordOf(each)[0]} ${count(counts[each])}`} quiet /></button>`)}</div>`;
}

/**
 * Rows, bytes and the like, which cost the server a look into each table: asked a page at a time, for what is on the
 * screen, and again while it stays there.
 * @returns {[Record<string, any>, (tables: string[], isScreen?: boolean) => void]}
 */
function useFigures(name, all) {
  const [found, set] = useState(/** @type {Record<string, any>} */ ({}));
  const held = useRef(/** @type {any} */ ({ asked: new Set(), screen: [] })).current;
  held.names = useMemo(() => all.map((each) => each.table), [all]);
  held.places = useMemo(() => new Map(held.names.map((table, i) => [table, i])), [held.names]);
  const see = useCallback(async (tables, isScreen = false) => {
    if (isScreen) held.screen = tables;
    for (const page of new Set(tables.map((each) => Math.floor((held.places.get(each) ?? 0) / PAGE)))) {
      if (held.asked.has(page)) continue;
      held.asked.add(page);
      const after = page ? `&after=${part(held.names[page * PAGE - 1])}` : "";
      const path = connectorPath(name, `/tables?figures=true&behind=true&limit=${PAGE}${after}`);
      await ask({ method: "GET", path }).then(({ data }) => set((now) => ({ ...now, ...Object.fromEntries(data.map((each) => [each.table, each])) })), () => held.asked.delete(page));
    }
  }, [name]);
  useEffect(() => {
    const again = () => {
      held.asked = new Set();
      if (!document.hidden) see(held.screen);
    };
    const timer = setInterval(again, AGAIN_MS);
    return () => clearInterval(timer);
  }, [see]);
  return [found, see];
}
