/** Copies of tables beside the stream: what is under way, and every copy that there was. */
import { connectorPath } from "../../api.js";
import { count, counted, seconds, time } from "../../format.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Empty, Shown } from "../../parts/notice.js";
import { State } from "../../parts/state.js";
import { Control, SentSignal } from "./control.js";
import { StartCopy } from "./start.js";

const KINDS = ["SnapshotProgressed", "CopyNotified", "TableChanged", "LifeChanged"];
const COPIES_MAX = 40;
const SENT_MAX = 4;

export function Copies({ name, progress }) {
  const copies = useResource(connectorPath(name, "/snapshots"), { connector: name, kinds: KINDS, everySeconds: 10, fastest: 700 });
  const [sent, setSent] = useState(/** @type {string[]} */ ([]));
  const [isStarting, start] = useState(false);
  const tell = (id) => {
    setSent((now) => [id, ...now.filter((each) => each !== id)].slice(0, SENT_MAX));
    copies.reload();
  };
  return html`<div class="row apart"><p class="soft">A copy reads a table in short windows beside the stream. Nothing is written to the source, and the lake stays exact meanwhile.</p>
      <button type="button" class="button main" onClick=${() => start(true)}>Start a copy …</button></div>
    ${sent.map((id) => html`<${SentSignal} key=${id} name=${name} id=${id} />`)}
    <${Shown} of=${copies} what="Copies">${(data) => html`<${UnderWay} name=${name} data=${data} tell=${tell} />`}<//>
    <${Runs} name=${name} />
    ${isStarting && html`<${StartCopy} name=${name} tables=${[]} close=${() => start(false)} tell=${tell} state=${progress.data?.state} />`}`;
}

function UnderWay({ name, data, tell }) {
  const [picked, pick] = useState(/** @type {string[]} */ ([]));
  const chosen = picked.filter((each) => data.copying.includes(each));
  const isAll = data.paused.includes("*");
  const waits = (table) => isAll || data.paused.includes(table);
  const known = new Map(data.progress.map((each) => [each.table, { ...each, isPart: data.partial.includes(each.table) }]));
  const ordered = [...data.copying].sort((a, b) => Number(known.has(b)) - Number(known.has(a)));
  const toggle = (table) => pick(chosen.includes(table) ? chosen.filter((each) => each !== table) : [...chosen, table]);
  const [tables, isPaused, label] = chosen.length ? [chosen, chosen.every(waits), counted(chosen.length, "chosen table")] : [[], data.copying.length ? data.copying.every(waits) : data.paused.length > 0, "all copies"];
  return html`<section class="card"><header><h2>Under way</h2>
      ${(data.copying.length > 0 || data.paused.length > 0) && html`<div class="row"><span class="soft small">${label}</span><${Control} name=${name} tables=${tables} isPaused=${isPaused} tell=${tell} label=${label} /></div>`}</header>
    ${data.paused.length > 0 && html`<div class="body"><p class="break"><${State} of="paused" word=${isAll ? "all copies are paused" : `paused: ${data.paused.join(", ")}`} /> <span class="soft">The tables still follow the stream; nobody waits for them.</span></p></div>`}
    ${data.copying.length
      ? html`<ul class="copies">${ordered.slice(0, COPIES_MAX).map((table) => html`<${Copy} key=${table} name=${name} table=${table} progress=${known.get(table)} isPaused=${waits(table)} tell=${tell} isChosen=${chosen.includes(table)} choose=${() => toggle(table)} />`)}</ul>
        ${ordered.length > COPIES_MAX && html`<footer>${counted(ordered.length - COPIES_MAX, "more table")} ${ordered.length - COPIES_MAX === 1 ? "waits" : "wait"} for their turn.</footer>`}`
      : html`<${Empty} title="No table is being copied"><p>A copy begins when a table is new, when its definition changed in a way that needs it, or when you ask for it.</p><//>`}
  </section>`;
}

function Copy({ name, table, progress, isPaused, tell, isChosen, choose }) {
  return html`<li><div class="row apart"><label class="check"><input type="checkbox" checked=${isChosen} onChange=${choose} /><h3 class="break"><code>${table}</code></h3></label>
      <div class="row">${isPaused && html`<${State} of="paused" quiet />`}<${Control} name=${name} tables=${[table]} isPaused=${isPaused} tell=${tell} label=${table} small /></div></div>
    <${Bar} each=${progress} isPaused=${isPaused} />
    <p class="small soft figures">${progress ? words(progress) : "waits for its turn"}</p></li>`;
}

/** A bar only where the whole is known: not of rows that a condition chooses, nor once there are more than estimated. */
const isKnown = (each) => each.is_estimated && !each.isPart;

function Bar({ each, isPaused }) {
  if (!each || (!isKnown(each) && isPaused)) return null;
  const percent = isKnown(each) ? Math.min(100, each.percent) : undefined;
  return html`<div class="bar ${percent === undefined ? "unknown" : ""}" role="progressbar" aria-label=${`Copy of ${each.table}`} aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${percent === undefined ? undefined : Math.round(percent)} aria-valuetext=${words(each)}><i style=${percent === undefined ? {} : { width: `${percent}%` }}></i></div>`;
}

function words(each) {
  const parts = [isKnown(each) ? `${count(each.rows)} of about ${count(each.rows_estimated)} rows` : `${counted(each.rows, "row")} so far`];
  if (each.rows_per_second) parts.push(`${count(Math.round(each.rows_per_second))} a second`);
  if (isKnown(each) && each.seconds_left !== null) parts.push(each.seconds_left < 1 ? "nearly done" : `about ${seconds(each.seconds_left)} left`);
  parts.push(counted(each.chunks, "chunk"));
  if (each.held_seconds_max) parts.push(`no state of the source held for longer than ${seconds(each.held_seconds_max)}`);
  return parts.join(" · ");
}

function Runs({ name }) {
  const path = connectorPath(name, "/snapshots/runs");
  const runs = useResource(`${path}?limit=50`, { connector: name, kinds: ["CopyNotified"], everySeconds: 15, fastest: 3000 });
  return html`<section class="card"><header><h2>Every copy so far</h2><${CopyAs} request=${{ method: "GET", path }} cli="tailrace signals LAKE" label="Copy reading as …" /></header>
    <${Shown} of=${runs} what="Runs">${(all) => (all.length ? html`<ul class="edits">${all.map((each) => html`<${Run} key=${each.signal ?? each.began} run=${each} />`)}</ul>` : html`<${Empty} title="No copy yet" />`)}<//></section>`;
}

function Run({ run }) {
  const took = run.seconds === null ? "" : ` · took ${seconds(run.seconds)}`;
  const who = run.signal ? html`signal <code>${run.signal}</code>${run.channel ? ` by ${run.channel}` : ""}` : "begun by the connector";
  const rows = run.rows === null ? "rows not counted" : counted(run.rows, "row");
  return html`<li><details><summary><${State} of=${run.state} /> <span class="soft nowrap">${time(run.began, { date: true })}</span> · <span class="break">${who}</span> ${run.type && html`<span class="tag">${run.type}</span> `}
      <span class="soft">${` · ${rows}${took}`}</span>${run.result ? html`<span class="consequence break">${run.result}</span>` : ""}</summary>
    ${run.tables.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Tables of this copy"><table><thead><tr><th scope="col">Table</th><th scope="col">State</th><th scope="col" class="num">Rows</th><th scope="col" class="num">Chunks</th><th scope="col" class="num">Longest state held</th></tr></thead>
      <tbody>${run.tables.map((each) => html`<tr><td class="break"><code>${each.table}</code>${each.text && html`<div class="small soft">${each.text}</div>`}</td><td><${State} of=${each.step} quiet /></td><td class="num">${each.rows === null ? "not counted" : count(each.rows)}</td><td class="num">${count(each.chunks)}</td><td class="num">${each.held_seconds_max ? seconds(each.held_seconds_max) : "none"}</td></tr>`)}</tbody></table></div>
      ${run.tables_total > run.tables.length && html`<p class="small soft">and ${counted(run.tables_total - run.tables.length, "more table")}</p>`}` : html`<p class="small soft">No step of a table was told yet, or the journal no longer has it.</p>`}</details></li>`;
}
