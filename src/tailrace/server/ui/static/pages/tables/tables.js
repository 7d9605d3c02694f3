/** The tables of a lake: their states with the reasons, however many there are. */
import { ask, connectorPath } from "../../api.js";
import { bytes, count, time } from "../../format.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../../html.js";
import { goWith, linkTo } from "../../router.js";
import { useResource } from "../../store.js";
import { Grid, inOrder } from "../../parts/grid.js";
import { Empty, Shown } from "../../parts/notice.js";
import { State, wordOf } from "../../parts/state.js";
import { LeaveOut } from "./leaving_out.js";
import { TableDrawer } from "./drawer.js";

const PAGE = 100;
const KINDS = ["TableChanged", "LifeChanged", "TablesLanded"];
const ORDER = ["errored", "resyncing", "snapshotting", "pending", "live", "removed"];

export function Tables({ name, progress, route }) {
  const tables = useResource(connectorPath(name, "/tables"), { connector: name, kinds: KINDS, everySeconds: 60 });
  return html`<${Shown} of=${tables} what="Tables">${(all) => (all.length
    ? html`<${List} name=${name} all=${all} route=${route} progress=${progress.data} again=${tables.reload} />`
    : html`<div class="card"><${Empty} title="No tables yet"><p>They appear when the connector has looked at its source.</p><//></div>`)}<//>`;
}

function List({ name, all, route, progress, again }) {
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const [sorted, setSorted] = useState(/** @type {[string, boolean]} */ (["state", false]));
  const [isLeaving, leave] = useState(false);
  const [figures, see] = useFigures(name, all);
  const state = route.query.get("state") ?? "";
  const search = route.query.get("search") ?? "";
  const opened = route.query.get("table");
  const columns = useMemo(() => columnsOf(chosen, setChosen), [chosen]);
  const shown = useMemo(() => {
    const fits = all.filter((each) => (!state || each.state === state) && each.table.toLowerCase().includes(search.toLowerCase()));
    return inOrder(fits.map((each) => ({ ...each, ...figures[each.table] })), columns, sorted);
  }, [all, state, search, sorted, figures, columns]);
  const toggle = (key) => setChosen(changedSet(chosen, key));
  return html`<div class="row apart"><${Chips} all=${all} state=${state} />
      <input type="search" class="search" aria-label="Find a table" placeholder="Find a table" value=${search} onInput=${(event) => goWith({ search: event.target.value })} /></div>
    ${chosen.size > 0 && html`<div class="row bulk" role="group" aria-label="Chosen tables"><span class="strong">${count(chosen.size)} chosen</span>
      <a class="button small" href=${linkTo(name, "copies", { start: [...chosen].join(",") })}>Copy again …</a>
      <button type="button" class="button small danger" onClick=${() => leave(true)}>Leave out …</button>
      <button type="button" class="button plain small" onClick=${() => setChosen(new Set())}>Choose none</button></div>`}
    <div class="card tables">${shown.length
      ? html`<${Grid} label="Tables" columns=${columns} rows=${shown} keyOf=${(row) => row.table} width=${1000} open=${(row) => goWith({ table: row.table })} chosen=${chosen} choose=${toggle}
          sorted=${sorted} sortBy=${(key) => setSorted([key, sorted[0] === key ? !sorted[1] : false])} seen=${(first, last) => see(shown.slice(first, last).map((each) => each.table))} />`
      : html`<${Empty} title="No table fits"><button type="button" class="button" onClick=${() => goWith({ state: null, search: null })}>Show all</button><//>`}</div>
    <p class="small faint">${count(shown.length)} of ${count(all.length)}. Enter opens a row, the space bar chooses it.</p>
    ${opened && html`<${TableDrawer} key=${opened} name=${name} table=${opened} figures=${figures[opened]} progress=${progress} close=${() => goWith({ table: null })} />`}
    ${isLeaving && html`<${LeaveOut} name=${name} tables=${[...chosen]} close=${() => leave(false)} done=${() => { setChosen(new Set()); again(); }} />`}`;
}

function changedSet(set, key) {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

function columnsOf(chosen, setChosen) {
  const toggle = (key) => setChosen(changedSet(chosen, key));
  const known = (value, show) => (value === undefined ? html`<span class="faint">…</span>` : value === null ? html`<span class="faint">not known</span>` : show(value));
  return [
    { key: "choose", label: "", width: "38px", cell: (row) => html`<input type="checkbox" tabindex="-1" aria-label=${`Choose ${row.table}`} checked=${chosen.has(row.table)} onChange=${() => toggle(row.table)} />` },
    { key: "table", label: "Table", width: "minmax(180px, 2fr)", sort: (row) => row.table, cell: (row) => html`<button type="button" tabindex="-1" class="linklike from-end" title=${row.table} onClick=${() => goWith({ table: row.table })}><bdi>${row.table}</bdi></button>` },
    { key: "state", label: "State", width: "minmax(130px, 1fr)", sort: (row) => ORDER.indexOf(row.state), cell: (row) => html`<${State} of=${row.state} quiet />` },
    { key: "behind", label: "Behind", width: "100px", isNumber: true, sort: (row) => row.changes_behind, cell: (row) => known(row.changes_behind, (n) => (n === 0 ? "caught up" : `${count(n)} changes`)) },
    { key: "rows", label: "Rows", width: "90px", isNumber: true, sort: (row) => row.rows, cell: (row) => known(row.rows, (n) => (n === 0 ? "none" : count(n))) },
    { key: "bytes", label: "In the lake", width: "104px", isNumber: true, sort: (row) => row.bytes, cell: (row) => known(row.bytes, bytes) },
    { key: "changed", label: "Last changed", width: "120px", sort: (row) => row.last_changed, cell: (row) => known(row.last_changed, (at) => time(at)) },
    { key: "copies", label: "Copies", width: "80px", isNumber: true, sort: (row) => row.copies, cell: (row) => count(row.copies) },
    { key: "reason", label: "Why", width: "minmax(120px, 2fr)", cell: (row) => (row.reason ? html`<span title=${row.reason}>${row.reason}</span>` : "") },
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
 * Rows, bytes and the like, which cost the server a look into each table: asked a page at a time, for what is on the screen.
 * @returns {[Record<string, any>, (tables: string[]) => void]}
 */
function useFigures(name, all) {
  const [found, set] = useState(/** @type {Record<string, any>} */ ({}));
  const asked = useRef(/** @type {Set<number>} */ (new Set()));
  const places = useMemo(() => new Map(all.map((each) => each.table).sort().map((table, i) => [table, i])), [all]);
  const names = useMemo(() => [...places.keys()], [places]);
  useEffect(() => {
    asked.current = new Set();
    const timer = setInterval(() => (asked.current = new Set()), 15000);
    return () => clearInterval(timer);
  }, [all.length]);
  const see = useCallback(async (tables) => {
    for (const page of new Set(tables.map((each) => Math.floor((places.get(each) ?? 0) / PAGE)))) {
      if (asked.current.has(page)) continue;
      asked.current.add(page);
      const after = page ? `&after=${encodeURIComponent(names[page * PAGE - 1])}` : "";
      const path = connectorPath(name, `/tables?figures=true&behind=true&limit=${PAGE}${after}`);
      await ask({ method: "GET", path }).then(({ data }) => set((now) => ({ ...now, ...Object.fromEntries(data.map((each) => [each.table, each])) })), () => asked.current.delete(page));
    }
  }, [names]);
  return [found, see];
}
