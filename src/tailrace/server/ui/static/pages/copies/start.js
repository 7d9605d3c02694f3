/** Starting a copy: which tables, how, which rows; and before it begins, the server's own answer of what it would be. */
import { ask, connectorPath } from "../../api.js";
import { count, counted } from "../../format.js";
import { html, useEffect, useId, useMemo, useState } from "../../html.js";
import { useResource } from "../../store.js";
import { Outcome, useOutcome } from "../../actions.js";
import { CopyAs, quoted } from "../../parts/copying.js";
import { Dialog } from "../../parts/dialog.js";
import { Failure, Notice } from "../../parts/notice.js";
import { Grid } from "../../parts/grid.js";
import { State } from "../../parts/state.js";

const PAUSE_MS = 400;
const SHOWN_MAX = 40;

/** What names a table in a signal: its name, unless that may be no regular expression. @param {string} table */
export const patternOf = (table) => (/[()[\]{}*+?\\|^]/.test(table) ? table.replace(/[^A-Za-z0-9_]/g, (each) => (each > "\x7f" ? each : `\\${each}`)) : table);

/** @param {any} body Of `POST …/snapshots`. */
export function cliFor(body) {
  if (body["additional-conditions"] || body["surrogate-key"]) return `tailrace signal LAKE execute-snapshot --data ${quoted(JSON.stringify(body))}`;
  return `tailrace signal LAKE execute-snapshot${body["data-collections"].map((each) => ` --table ${quoted(each)}`).join("")}${body.type ? ` --type ${body.type}` : ""}`;
}

/** @param {{name: string, tables: string[], close: () => void, tell: (id: string) => void, state: string}} props */
export function StartCopy({ name, tables, close, tell, state }) {
  const [form, setForm] = useState({ tables, pattern: "", byPattern: false, type: "incremental", filter: "", key: "" });
  const change = (changes) => setForm({ ...form, ...changes });
  const body = useMemo(() => bodyOf(form), [form]);
  const dry = useDryRun(name, body);
  const { busy, outcome, run } = useOutcome();
  const request = { method: "POST", path: connectorPath(name, "/snapshots"), body };
  const begin = () => run(async () => {
    tell((await ask(request)).data.id);
    close();
  });
  return html`<${Dialog} title=${`Copy tables of ${name} again`} close=${close} broad>
    <div class="body">
      <${Choice} name=${name} form=${form} change=${change} />
      <${How} form=${form} change=${change} />
      <${DryRun} dry=${dry} body=${body} />
      ${state === "STOPPED" && html`<${Notice} tone="info" text="The connector is stopped: the copy begins when it runs again." />`}
    </div>
    <footer><${Outcome} outcome=${outcome} busy=${busy} doing="asking …" />
      ${body["data-collections"].length > 0 && html`<${CopyAs} request=${request} cli=${cliFor(body)} />`}
      <button type="button" class="button" onClick=${close}>Cancel</button>
      <button type="button" class="button main" disabled=${busy || !dry.answer?.possible} onClick=${begin}>Start the copy</button></footer><//>`;
}

function bodyOf({ tables, pattern, byPattern, type, filter, key }) {
  const chosen = byPattern ? (pattern ? [pattern] : []) : tables.map(patternOf);
  return {
    "data-collections": chosen,
    type,
    ...(filter.trim() ? { "additional-conditions": chosen.map((each) => ({ "data-collection": each, filter: filter.trim() })) } : {}),
    ...(key.trim() ? { "surrogate-key": key.trim() } : {}),
  };
}

/** Asked again whenever the form changes; only the newest answer counts. */
function useDryRun(name, body) {
  const [state, set] = useState(/** @type {any} */ ({}));
  const text = JSON.stringify(body);
  useEffect(() => {
    set({ isAsking: body["data-collections"].length > 0 });
    if (!body["data-collections"].length) return undefined;
    const control = new AbortController();
    const timer = setTimeout(() => ask({ method: "POST", path: connectorPath(name, "/snapshots?dry_run=true"), body }, control.signal).then(
      ({ data }) => set({ answer: data }),
      (error) => !control.signal.aborted && set({ error }),
    ), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [name, text]);
  return state;
}

function Choice({ name, form, change }) {
  const all = useResource(connectorPath(name, "/tables"));
  const [search, find] = useState("");
  const id = useId();
  const shown = (all.data ?? []).filter((each) => each.state !== "removed" && each.table.toLowerCase().includes(search.toLowerCase()));
  const chosen = new Set(form.tables);
  const toggle = (table) => change({ tables: chosen.has(table) ? form.tables.filter((each) => each !== table) : [...form.tables, table] });
  const columns = [
    { key: "c", label: html`<span class="unseen">Chosen</span>`, width: "36px", cell: (row) => html`<input type="checkbox" tabindex="-1" aria-label=${row.table} checked=${chosen.has(row.table)} onChange=${() => toggle(row.table)} />` },
    { key: "table", label: "Table", width: "1fr", cell: (row) => html`<span title=${row.table}>${row.table}</span>` },
    { key: "state", label: "State", width: "150px", cell: (row) => html`<${State} of=${row.state} quiet />` },
  ];
  const way = (byPattern, label) => html`<button type="button" class="chip" aria-pressed=${String(form.byPattern === byPattern)} onClick=${() => change({ byPattern })}>${label}</button>`;
  return html`<fieldset class="stack"><legend>Tables</legend>
    <div class="chips">${way(false, "From the list")}${way(true, "By a regular expression")}</div>
    ${form.byPattern
      ? html`<div class="field"><label for=${id}>Regular expression for whole names</label><input id=${id} class="mono" spellcheck=${false} placeholder="public\\.order_.*" value=${form.pattern} onInput=${(event) => change({ pattern: event.target.value })} /><span class="help">What it matches now is listed below.</span></div>`
      : html`<div class="row apart"><input type="search" class="search" aria-label="Find a table to copy" placeholder="Find a table" value=${search} onInput=${(event) => find(event.target.value)} />
          <div class="row"><span class="small soft">${counted(form.tables.length, "table")} chosen</span><button type="button" class="button small" onClick=${() => change({ tables: shown.map((each) => each.table) })}>Choose ${search ? "these" : "all"}</button><button type="button" class="button small" onClick=${() => change({ tables: [] })}>None</button></div></div>
        ${all.error ? html`<${Failure} error=${all.error} again=${all.reload} />` : html`<div class="card"><${Grid} label="Tables to choose from" columns=${columns} rows=${shown} keyOf=${(row) => row.table} height=${180} chosen=${chosen} choose=${toggle} open=${(row) => toggle(row.table)} /></div>`}`}
  </fieldset>`;
}

function How({ form, change }) {
  const id = useId();
  const kind = (value, label, about) => html`<label class="check"><input type="radio" name=${`${id}-type`} checked=${form.type === value} onChange=${() => change({ type: value })} /><span><span class="strong">${label}</span> <span class="soft small">${about}</span></span></label>`;
  const field = (key, label, placeholder) => html`<div class="field"><label for=${`${id}-${key}`}>${label}</label>
    <input id=${`${id}-${key}`} class="mono" spellcheck=${false} placeholder=${placeholder} value=${form[key]} onInput=${(event) => change({ [key]: event.target.value })} /></div>`;
  return html`<div class="cols">
    <fieldset class="stack"><legend>Kind</legend>
      ${kind("incremental", "Incremental", "by short windows; can be paused, survives a restart")}
      ${kind("blocking", "Blocking", "all at once, from one state of the source")}</fieldset>
    <div class="stack">${field("filter", "Only rows for which this SQL is true (empty: all)", "created_at > now() - interval '7 days'")}
      ${field("key", "Order rows by this column (empty: the key)", "id")}</div></div>`;
}

function DryRun({ dry, body }) {
  if (!body["data-collections"].length) return html`<p class="soft">Choose a table: what the copy would be is then said here.</p>`;
  const { answer, error, isAsking } = dry;
  const tables = [...(answer?.tables ?? [])].sort((a, b) => Number(!!b.problem) - Number(!!a.problem));
  return html`<section class="stack" aria-live="polite" aria-busy=${String(!!isAsking)}><h3>What it would be ${isAsking && html`<span class="spin"></span>`}</h3>
    ${error && html`<${Failure} error=${error} />`}
    ${answer && html`<${Notice} tone=${answer.possible ? "good" : "bad"} text=${answer.possible ? `${counted(tables.length, "table")}, ${answer.rows_estimated === null ? "rows not known" : `about ${counted(answer.rows_estimated, "row")}`}${answer.missing ? `; ${answer.missing}` : ""}.` : `It would be rejected: ${answer.problem}`} />`}
    ${answer?.source_error && html`<${Notice} tone="warn" text=${`The source could not be asked: ${answer.source_error}`} />`}
    ${tables.length > 0 && html`<div class="scroll" tabindex="0" role="group" aria-label="Tables"><table><thead><tr><th scope="col">Table</th><th scope="col">State</th><th scope="col" class="num">Rows, about</th><th scope="col">Reads</th></tr></thead>
      <tbody>${tables.slice(0, SHOWN_MAX).map((each) => html`<tr><td class="break"><code>${each.table}</code></td><td><${State} of=${each.state} quiet /></td><td class="num">${count(each.rows_estimated)}</td>
        <td class="break"><code>${each.sql}</code>${each.notes.map((note) => html`<div class="small soft">${note}</div>`)}${each.problem && html`<div class="bad">${each.problem}</div>`}</td></tr>`)}</tbody></table></div>`}
    ${tables.length > SHOWN_MAX && html`<p class="small soft">and ${counted(tables.length - SHOWN_MAX, "more table")}</p>`}
  </section>`;
}
