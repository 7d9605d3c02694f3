/** One table: its state and what helps, its columns, the shapes that it has had, and ten of its rows when asked for. */
import { ask, connectorPath, part } from "../../api.js";
import { bytes, count, counted, time } from "../../format.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../store.js";
import { Outcome, useOutcome } from "../../actions.js";
import { CopyAs } from "../../parts/copying.js";
import { Dialog } from "../../parts/dialog.js";
import { Failure, Notice, Shown } from "../../parts/notice.js";
import { Rows } from "../../parts/rows.js";
import { State } from "../../parts/state.js";
import { cliFor, patternOf } from "../copies/start.js";

/** @param {{name: string, table: string, tell: (id: string) => void, close: () => void}} props */
export function TableDrawer({ name, table, tell, close }) {
  const found = useResource(connectorPath(name, `/tables/${part(table)}`), { connector: name, kinds: ["TableChanged", "TablesLanded"], everySeconds: 15 });
  return html`<${Dialog} title=${table} close=${close} broad><div class="body">
    <${Shown} of=${found} what="The table">${(detail) => html`
      <div class="row apart"><${State} of=${detail.state} /><${Again} name=${name} table=${table} state=${detail.state} tell=${tell} close=${close} /></div>
      ${detail.reason && html`<${Notice} tone=${detail.state === "errored" ? "bad" : "info"} text=${detail.reason} hint=${detail.hint} />`}
      <dl class="facts"><dt>Rows</dt><dd>${detail.rows === 0 ? "none" : detail.rows === null ? "not known" : `about ${count(detail.rows)}`}</dd><dt>In the lake</dt><dd>${bytes(detail.bytes)}</dd>
        <dt>Last changed</dt><dd>${detail.last_changed ? time(detail.last_changed, { date: true }) : "not since its copy, or not known"}</dd>
        <dt>Behind</dt><dd>${detail.changes_behind === null ? "not known" : detail.changes_behind === 0 ? "caught up" : counted(detail.changes_behind, "change")}</dd>
        <dt>Copies begun</dt><dd>${count(detail.copies)}</dd><dt>Version in the newest cut</dt><dd>${detail.versions.version === undefined ? "not in it" : count(detail.versions.version)}</dd>
        <dt>Last good state</dt><dd>${detail.last_good ? html`<code>${detail.last_good.position}</code>, committed ${time(detail.last_good.committed, { date: true })}${detail.last_good.is_newest ? ": the newest cut" : ""}` : "in no cut that is kept"}</dd></dl>
      <${Sample} name=${name} detail=${detail} />
      <${Shapes} schemas=${detail.schemas} />`}<//>
  </div><footer><button type="button" class="button" onClick=${close}>Close</button></footer><//>`;
}

/** Copies it again with all its rows; the signal is then followed where the table was opened. */
function Again({ name, table, state, tell, close }) {
  const { busy, outcome, run } = useOutcome();
  const body = { "data-collections": [patternOf(table)] };
  const request = { method: "POST", path: connectorPath(name, "/snapshots"), body };
  const rule = state === "removed" ? "it is left out of this lake" : null;
  const send = () => run(async () => {
    const { data } = await ask(request);
    tell(data.id);
    close();
  });
  return html`<div class="row"><${Outcome} outcome=${rule ? { tone: "", text: rule } : outcome} busy=${busy} />
    <button type="button" class="button small" disabled=${busy || !!rule} onClick=${send}>Copy again</button><${CopyAs} request=${request} cli=${cliFor(body)} /></div>`;
}

/** The newest shape as a table; what each one changed of the one before. */
function Shapes({ schemas }) {
  const newest = schemas.at(-1);
  if (!newest) return html`<p class="soft">Its shape is not known before the first change or copy.</p>`;
  return html`<section class="stack"><h3>Columns</h3><div class="scroll" tabindex="0" role="group" aria-label="Columns"><table><thead><tr><th scope="col">Column</th><th scope="col">At the source</th><th scope="col">In the lake</th></tr></thead>
      <tbody>${newest.columns.map((each) => html`<tr><td><code>${each.name}</code>${newest.key.includes(each.name) ? html` <span class="tag">key</span>` : ""}</td><td>${each.source_type}</td><td>${each.type}</td></tr>`)}</tbody></table></div>
    <h3>Shapes over time</h3>
    <ol class="stack">${schemas.map((each, i) => html`<li><p class="small soft">${each.commit ? html`from <code>${each.commit}</code> on` : "since before the log begins"}${each.committed ? `, committed ${time(each.committed, { date: true })}` : ""}</p>
      <${ShapeChange} before=${schemas[i - 1]} after=${each} /></li>`)}</ol></section>`;
}

function ShapeChange({ before, after }) {
  if (!before) return html`<p>${counted(after.columns.length, "column")}, key ${after.key.join(", ") || "none"}</p>`;
  const text = (each) => `column ${each.name} ${each.source_type}`;
  const other = (each, columns) => !columns.some((one) => text(one) === text(each));
  const lines = [
    ...before.columns.filter((each) => other(each, after.columns)).map((each) => ["gone", "−", text(each)]),
    ...after.columns.filter((each) => other(each, before.columns)).map((each) => ["come", "+", text(each)]),
  ];
  if (before.key.join() !== after.key.join()) lines.push(["gone", "−", `key ${before.key.join(", ") || "none"}`], ["come", "+", `key ${after.key.join(", ") || "none"}`]);
  if (!lines.length) lines.push(["", "~", "its columns are in another order, or have other types in the lake"]);
  return html`<div class="diff">${lines.map(([kind, sign, words]) => html`<div class=${kind}><span class="sign">${sign}</span><span class="whole">${words}</span></div>`)}</div>`;
}

/** A table's text form, each part between quotes. @param {string} table `namespace.name`. */
export function quotedTable(table) {
  const parts = table.match(/"(?:[^"]|"")+"|[^."]+/g) ?? [table];
  return parts.map((each) => (each.startsWith('"') ? each : `"${each}"`)).join(".");
}

/** Values of rows are shown only when someone asks for them: of the newest cut that has the table. */
function Sample({ name, detail }) {
  const [answer, set] = useState(/** @type {any} */ (null));
  const { busy, outcome, run } = useOutcome();
  const good = detail.last_good;
  const as_of = good && !good.is_newest ? { as_of: good.position } : { published: true };
  const request = { method: "POST", path: "/query", body: { connector: name, sql: `select * from ${quotedTable(detail.table)} limit 10`, rows_max: 10, ...as_of } };
  const show = () => run(async () => void set((await ask(request)).data));
  return html`<section class="stack"><div class="row apart"><h3>Rows</h3><div class="row"><${CopyAs} request=${request} cli=${`tailrace query LAKE '${request.body.sql.replaceAll("'", `'\\''`)}'`} />
      <button type="button" class="button small" disabled=${busy || !good} onClick=${show}>${answer ? "Show rows again" : "Show rows"}</button></div></div>
    ${outcome && html`<${Failure} error=${{ message: outcome.text, hint: outcome.hint }} />`}${answer ? html`<${Rows} answer=${answer} height=${380} />` : html`<p class="small soft">${good ? "Ten of them, as of its last good state, once you ask for them." : "No cut has the table, so there are no rows to show."}</p>`}</section>`;
}
