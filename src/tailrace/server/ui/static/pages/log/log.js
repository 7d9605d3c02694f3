/** The log of a connector: how large it is, who keeps it, and its transactions. */
import { connectorPath } from "../../api.js";
import { bytes, count, counted, time } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { goWith, linkTo } from "../../router.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Empty, Shown } from "../../parts/notice.js";
import { Pager, Sheet } from "../../parts/sheet.js";
import { State } from "../../parts/state.js";
import { Transaction } from "./transaction.js";

const PAGE = 25;
const PIECES_MAX = 120;

export function Log({ name, route }) {
  const seq = route.query.get("seq");
  const when = { connector: name, kinds: ["CutPublished"], fastest: 5000 };
  const log = useResource(connectorPath(name, "/log"), when);
  if (log.error?.status === 404) return html`<div class="card"><${Empty} title="Nothing has been logged yet"><p>The log begins when the connector has reached its source.</p><//></div>`;
  return html`<${Held} name=${name} log=${log} when=${when} />
    ${seq && html`<${Transaction} key=${seq} name=${name} seq=${seq} />`}
    <${Transactions} name=${name} query=${route.query} />`;
}

/** What it takes, and who needs it. */
function Held({ name, log, when }) {
  const segments = useResource(connectorPath(name, "/log/segments"), when);
  const totals = useResource(connectorPath(name, "/log?totals=true")).data?.totals;
  return html`<section class="card"><header><h2>What the log holds</h2>
      <${CopyAs} request=${{ method: "GET", path: connectorPath(name, "/log") }} cli="tailrace log stats LAKE/_tailrace/log" /></header>
    <${Shown} of=${log} what="The log">${(data) => html`<div class="body stack">
      <${Bar} segments=${segments.data?.segments ?? []} isAll=${segments.data?.next === null} />
      <dl class="facts figures">
        <dt>On disk</dt><dd>${bytes(data.bytes)} in ${counted(data.segments, "segment")}</dd>
        <dt>Transactions</dt><dd>${range(data)}</dd>
        <dt>Changes</dt><dd>${totals ? `${count(totals.changes)} in ${counted(totals.tables, "table")}` : "…"}</dd>
        ${totals?.first_commit && html`<dt>Committed</dt><dd>${time(totals.first_commit)} to ${time(totals.last_commit)}</dd>`}
        <dt>Source position</dt><dd><code>${data.source_position}</code></dd>
      </dl></div>
      <${Holders} holders=${data.holders} />`}<//>
  </section>`;
}

/** Segments, the oldest first, each as wide as it is large; those that someone needs are darker. */
function Bar({ segments, isAll }) {
  if (!segments.length) return null;
  const shown = [...segments].reverse().slice(-PIECES_MAX);
  const needed = segments.filter((each) => each.needed_by.length || each.is_written).length;
  const words = `${counted(segments.length, "segment")}${isAll ? "" : " (the newest)"}: ${needed === segments.length ? "all are needed" : `${needed} needed, ${segments.length - needed} kept for their time`}`;
  return html`<div class="stack"><div class="segments" role="img" aria-label=${words}>${shown.map((each) => html`<i key=${each.position} class=${each.needed_by.length || each.is_written ? "needed" : ""}
      style=${{ flexGrow: Math.max(1, each.bytes) }} title=${`${each.name}\n${bytes(each.bytes)}, transactions ${count(each.after + 1)} to ${count(each.upto)}\nneeded by ${each.needed_by.join(", ") || (each.is_written ? "the writer" : "no one any more")}`}></i>`)}</div>
    <p class="small soft">${words}. The last one is being written.</p></div>`;
}

function Holders({ holders }) {
  if (!holders.length) return html`<div class="body"><p class="soft">No one reads it yet, so nothing of it is deleted.</p></div>`;
  const rows = holders.map((each) => ({ key: each.kind + each.name, cells: [html`${each.name} ${each.kind === "pin" && html`<span class="tag">for one read</span>`}`, count(each.seq),
    each.transactions < 0 ? "ahead: of another log" : each.transactions ? count(each.transactions) : "none", each.transactions > 0 ? bytes(each.bytes) : "nothing"] }));
  return html`<${Sheet} name="Who keeps the log" head=${["~Who keeps it", "#Has read up to", "#Transactions left", "#About"]} rows=${rows} />`;
}

function Transactions({ name, query }) {
  const asked = new URLSearchParams({ limit: String(PAGE) });
  for (const key of ["table", "before"]) if (query.get(key)) asked.set(key, query.get(key) ?? "");
  const path = connectorPath(name, `/log/transactions?${asked}`);
  const found = useResource(path, { connector: name, kinds: query.get("before") ? [] : ["CutPublished"], fastest: 2000 });
  const tables = useResource(connectorPath(name, "/tables"));
  return html`<section class="card"><header><h2>Transactions</h2>
      <div class="row"><${TableFilter} tables=${tables.data} table=${query.get("table") ?? ""} /><${CopyAs} request=${{ method: "GET", path }} /></div></header>
    <${Shown} of=${found} what="Transactions">${(data) => html`${data.transactions.length ? html`<${List} name=${name} transactions=${data.transactions} query=${query} />`
      : html`<${Empty} title=${query.get("table") ? "None of these touched the table" : "No transaction"}><p>${data.next ? "Older ones have not been looked at yet." : "The log holds none, or none that fits."}</p><//>`}
      <${Pager} before=${query.get("before")} next=${data.next} go=${(before) => goWith({ before })} text=${`The log holds ${range(data)}.`} />`}<//>
  </section>`;
}

function TableFilter({ tables, table }) {
  const [text, type] = useState(table);
  useEffect(() => type(table), [table]);
  const choose = (value) => {
    type(value);
    if (!value || (tables ?? []).some((each) => each.table === value)) goWith({ table: value || null, before: null });
  };
  return html`<input type="search" class="search" aria-label="Only of this table" list="log-tables" placeholder="All tables" value=${text} onInput=${(event) => choose(event.target.value)}
      onChange=${(event) => goWith({ table: event.target.value.trim(), before: null })} />
    <datalist id="log-tables">${(tables ?? []).map((each) => html`<option value=${each.table}></option>`)}</datalist>`;
}

function List({ name, transactions, query }) {
  const kept = Object.fromEntries([...query].filter(([key]) => key !== "seq"));
  const rows = transactions.map((each) => ({ key: each.seq, isHere: String(each.seq) === query.get("seq"), cells: [
    html`<a href=${linkTo(name, "log", { ...kept, seq: each.seq })}>${count(each.seq)}</a>`, time(each.committed, { ms: true }), html`<code>${each.position}</code>`, count(each.changes), bytes(each.bytes),
    `${each.tables.join(", ")}${each.tables_total > each.tables.length ? ` and ${count(each.tables_total - each.tables.length)} more` : ""}`,
    html`<${State} of=${each.is_published ? "published" : "logged"} quiet />`] }));
  return html`<${Sheet} name="Transactions, the newest first" head=${["#Number", "Committed", "Position", "#Changes", "#Size", "~Tables", "Lake"]} rows=${rows} />`;
}

const range = ({ oldest, newest }) => (newest < oldest ? "none" : `${count(oldest)} to ${count(newest)}`);
