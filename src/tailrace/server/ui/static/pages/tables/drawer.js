/** One table: its state and what helps, its columns, the shapes that it has had, and ten of its rows when asked for. */
import { connectorPath, part } from "../../api.js";
import { ask } from "../../api.js";
import { bytes, count, time } from "../../format.js";
import { html, useState } from "../../html.js";
import { linkTo } from "../../router.js";
import { useResource } from "../../store.js";
import { Outcome, useOutcome } from "../../actions.js";
import { CopyAs } from "../../parts/copying.js";
import { Dialog } from "../../parts/dialog.js";
import { Failure, Notice, Shown } from "../../parts/notice.js";
import { Rows } from "../../parts/rows.js";
import { State } from "../../parts/state.js";

/** @param {{name: string, table: string, figures: any, progress: any, close: () => void}} props */
export function TableDrawer({ name, table, figures, close }) {
  const found = useResource(connectorPath(name, `/tables/${part(table)}`), { connector: name, kinds: ["TableChanged"] });
  return html`<${Dialog} title=${table} close=${close} broad><div class="body">
    <${Shown} of=${found} what="The table">${(detail) => html`
      <div class="row apart"><${State} of=${detail.state} /><${Again} name=${name} table=${table} state=${detail.state} /></div>
      ${detail.reason && html`<${Notice} tone=${detail.state === "errored" ? "bad" : "info"} text=${detail.reason} hint=${detail.hint}>
        ${detail.state === "errored" && html`<p class="small">Its last good version stays readable: <a href=${linkTo(name, "query", { table })}>ask it</a>.</p>`}<//>`}
      <dl class="facts"><dt>Rows</dt><dd>${count(figures?.rows)}</dd><dt>In the lake</dt><dd>${bytes(figures?.bytes)}</dd><dt>Last changed</dt><dd>${figures?.last_changed ? time(figures.last_changed) : "not known"}</dd>
        <dt>Copies begun</dt><dd>${count(detail.copies)}</dd><dt>Version in the newest cut</dt><dd>${detail.versions.version === undefined ? "in no cut yet" : count(detail.versions.version)}</dd></dl>
      <${Shapes} schemas=${detail.schemas} />
      <${Sample} name=${name} table=${table} />`}<//>
  </div><footer><a class="button" href=${linkTo(name, "query", { table })}>Ask it in Query</a><button type="button" class="button" onClick=${close}>Close</button></footer><//>`;
}

function Again({ name, table, state }) {
  const { busy, outcome, run } = useOutcome();
  const request = { method: "POST", path: connectorPath(name, `/tables/${part(table)}/resync`) };
  const rule = state === "removed" ? "it is left out of this lake" : null;
  const send = () => run(async () => {
    await ask(request);
    return "asked for; Copies shows what becomes of it";
  });
  return html`<div class="row"><${Outcome} outcome=${outcome} busy=${busy} />
    <button type="button" class="button small" disabled=${busy || !!rule} title=${rule ?? ""} onClick=${send}>Copy again</button>
    <${CopyAs} request=${request} cli=${`tailrace tables resync LAKE ${table}`} /></div>`;
}

/** The newest shape as a table; what each one changed of the one before. */
function Shapes({ schemas }) {
  const newest = schemas.at(-1);
  if (!newest) return html`<p class="soft">Its shape is not known before the first change or copy.</p>`;
  return html`<section class="stack"><h3>Columns</h3><div class="scroll"><table><thead><tr><th scope="col">Column</th><th scope="col">At the source</th><th scope="col">In the lake</th></tr></thead>
      <tbody>${newest.columns.map((each) => html`<tr><td><code>${each.name}</code>${newest.key.includes(each.name) ? html` <span class="tag">key</span>` : ""}</td><td>${each.source_type}</td><td>${each.type}</td></tr>`)}</tbody></table></div>
    <h3>Shapes over time</h3>
    <ol class="stack">${schemas.map((each, i) => html`<li><p class="small soft">from ${each.from ?? `place ${count(each.position)} of the log`} on${each.committed ? `, ${time(each.committed, { date: true })}` : ""}</p>
      <${ShapeChange} before=${schemas[i - 1]} after=${each} /></li>`)}</ol></section>`;
}

function ShapeChange({ before, after }) {
  if (!before) return html`<p>${count(after.columns.length)} columns, key ${after.key.length ? after.key.join(", ") : "none"}</p>`;
  const text = (each) => `${each.name} ${each.source_type}`;
  const old = new Map(before.columns.map((each) => [each.name, each]));
  const now = new Map(after.columns.map((each) => [each.name, each]));
  const lines = [
    ...before.columns.filter((each) => !now.has(each.name) || text(now.get(each.name)) !== text(each)).map((each) => ["gone", "−", text(each)]),
    ...after.columns.filter((each) => !old.has(each.name) || text(old.get(each.name)) !== text(each)).map((each) => ["come", "+", text(each)]),
  ];
  if (before.key.join() !== after.key.join()) lines.push(["gone", "−", `key ${before.key.join(", ") || "none"}`], ["come", "+", `key ${after.key.join(", ") || "none"}`]);
  return html`<div class="diff">${lines.map(([kind, sign, words]) => html`<div class=${kind}><span class="sign">${sign}</span><span class="whole">${words}</span></div>`)}</div>`;
}

/** @param {string} table `namespace.name`. */
export const quotedTable = (table) => {
  const dot = table.indexOf(".");
  return [table.slice(0, dot), table.slice(dot + 1)].map((each) => `"${each.replaceAll('"', '""')}"`).join(".");
};

function Sample({ name, table }) {
  const [answer, set] = useState(/** @type {any} */ (null));
  const [error, fail] = useState(/** @type {any} */ (null));
  const request = { method: "POST", path: "/query", body: { connector: name, sql: `select * from ${quotedTable(table)} limit 10`, rows_max: 10 } };
  const show = () => ask(request).then(({ data }) => set(data), fail);
  return html`<section class="stack"><div class="row apart"><h3>Rows</h3><button type="button" class="button small" onClick=${show}>${answer ? "Show again" : "Show ten rows"}</button></div>
    ${error && html`<${Failure} error=${error} />`}${answer && html`<${Rows} answer=${answer} height=${380} />`}</section>`;
}
