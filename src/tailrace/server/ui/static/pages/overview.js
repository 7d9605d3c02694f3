/** Every connector, the one in most trouble first: whether its lake is exact and fresh, and if not, why and what helps. */
import { ActionButton, pendingOf } from "../actions.js";
import { actionsOf, refusedHere } from "../command.js";
import { bytes, count, counted, seconds } from "../format.js";
import { html, useState } from "../html.js";
import { goWith, linkTo } from "../router.js";
import { sourceText, useKnown } from "../shared.js";
import { useClock, useResource } from "../store.js";
import { Spark } from "../parts/chart.js";
import { CopyButton } from "../parts/copying.js";
import { freshness, lagWords } from "../parts/freshness.js";
import { Empty, Failure, Hint, Shown } from "../parts/notice.js";
import { connectorState, State, trouble, urgency, wordOf } from "../parts/state.js";

const SPARK_SECONDS = 900;

export function Overview({ route }) {
  const { connectors, server } = useKnown();
  return html`<div class="head"><div class="title"><h1 tabindex="-1">Overview</h1></div>
      <div class="row"><${NewButton} server=${server} /></div></div>
    <${Shown} of=${connectors} what="Connectors">${(all) => html`<${All} all=${all} route=${route} server=${server} />`}<//>`;
}

function NewButton({ server }) {
  const rule = refusedHere(server, "create");
  return rule ? html`<span class="small soft">${rule}</span>` : html`<a class="button main" href="/ui/new">New connector</a>`;
}

function All({ all, route, server }) {
  const entries = Object.entries(all);
  const figures = useResource(entries.length ? `/figures?figures=lag_seconds&since=${sinceText()}` : null, { everySeconds: 15 });
  if (!entries.length) return html`<${FirstSteps} server=${server} />`;
  const wanted = route.query.get("state") ?? "";
  const search = (route.query.get("search") ?? "").toLowerCase();
  const shown = entries
    .filter(([, entry]) => !wanted || connectorState(entry.progress) === wanted)
    .filter(([name, entry]) => !search || `${name} ${sourceText(entry.progress)}`.toLowerCase().includes(search))
    .sort((a, b) => trouble(a[1].progress) - trouble(b[1].progress) || lagOf(b[1]) - lagOf(a[1]) || (a[0] < b[0] ? -1 : 1));
  return html`<${Strip} entries=${entries} />
    <${Filters} entries=${entries} wanted=${wanted} search=${search} />
    <div class="card connectors">
      <div class="connector heading" aria-hidden="true"><span>Connector</span><span>State</span><span>Lake shows</span><span>Behind</span><span>Lag, 15 min</span><span>Tables</span><span></span></div>
      <ul>${shown.map(([name, entry]) => html`<${Row} key=${name} name=${name} progress=${entry.progress} server=${server} figures=${figures.data} />`)}</ul>
      ${!shown.length && html`<${Empty} title="No connector fits"><button type="button" class="button" onClick=${() => goWith({ state: null, search: null })}>Show all</button><//>`}
    </div>`;
}

const lagOf = (entry) => entry.progress?.lag?.seconds ?? -1;
let _since = "";
/** A moment that does not change with every look, so that one answer is kept. */
function sinceText() {
  _since ||= new Date(Date.now() - SPARK_SECONDS * 1000).toISOString().slice(0, 19) + "Z";
  return encodeURIComponent(_since);
}

function Strip({ entries }) {
  const all = entries.map(([, entry]) => entry.progress).filter(Boolean);
  const known = all.filter((each) => each.lag);
  const worst = known.reduce((found, each) => (each.lag.seconds > (found?.lag.seconds ?? -1) ? each : found), null);
  const errored = sum(all.map((each) => each.tables?.errored ?? 0));
  const bad = all.filter((each) => trouble(each) <= 2).length;
  const log = sum(all.map((each) => each.disk?.log_bytes ?? 0));
  const free = Math.min(...all.map((each) => each.disk?.free_bytes ?? Infinity));
  const changes = sum(all.map((each) => each.log?.changes_per_second ?? 0));
  return html`<div class="strip figures">
    <div><p class="label">Need attention</p><p class="figure ${bad ? "bad" : "good"}">${bad ? `${bad} of ${all.length}` : "none"}</p>
      <p class="more">${bad ? "listed first" : `${counted(all.length, "connector")}`}</p></div>
    <div><p class="label">Tables in error</p><p class="figure ${errored ? "bad" : ""}">${errored || "none"}</p>
      <p class="more">of ${count(sum(all.flatMap((each) => Object.values(each.tables ?? {}))))}</p></div>
    <div><p class="label">Furthest behind</p><p class="figure">${!worst ? "not known" : worst.lag.seconds === 0 ? "caught up" : seconds(worst.lag.seconds)}</p>
      <p class="more break">${worst && worst.lag.seconds ? worst.name : "\u00a0"}</p></div>
    <div><p class="label">Changes</p><p class="figure">${changes ? `${count(Math.round(changes))} a second` : "none now"}</p><p class="more">into all logs</p></div>
    <div><p class="label">Logs on disk</p><p class="figure">${bytes(log)}</p><p class="more">${Number.isFinite(free) ? `${bytes(free)} free` : "free space not known"}</p></div>
  </div>`;
}

const sum = (values) => values.reduce((total, each) => total + each, 0);

function Filters({ entries, wanted, search }) {
  const counts = {};
  for (const [, entry] of entries) counts[connectorState(entry.progress)] = (counts[connectorState(entry.progress)] ?? 0) + 1;
  if (entries.length < 2) return null;
  return html`<div class="row apart">
    <div class="chips" role="group" aria-label="Show only">
      <button type="button" class="chip" aria-pressed=${String(!wanted)} onClick=${() => goWith({ state: null })}>All ${entries.length}</button>
      ${Object.entries(counts).sort(([a], [b]) => urgency(a) - urgency(b)).map(([state, n]) => html`<button type="button" class="chip" aria-pressed=${String(wanted === state)} onClick=${() => goWith({ state: wanted === state ? null : state })}>
        <${State} of=${state} word=${`${wordOf(state)[0]} ${n}`} quiet /></button>`)}
    </div>
    <input type="search" class="search" aria-label="Find a connector" placeholder="Find a connector" value=${search} onInput=${(event) => goWith({ search: event.target.value })} />
  </div>`;
}

function Row({ name, progress, server, figures }) {
  const now = useClock(1000);
  const [error, fail] = useState(/** @type {any} */ (null));
  const asked = pendingOf(name);
  const state = connectorState(progress);
  const actions = actionsOf(name);
  const spark = figures?.connectors?.[name]?.lag_seconds ?? [];
  const button = (id) => html`<${ActionButton} icon name=${name} action=${actions[id]} progress=${progress} server=${server} done=${() => fail(null)} failed=${fail} />`;
  return html`<li class="connector">
    <div><h2 title=${name}><a class="rowlink" href=${linkTo(name)}>${name}</a></h2><p class="small soft break">${sourceText(progress)}</p></div>
    <div aria-live="polite">${asked ? html`<span class="state tone-info"><span class="spin"></span>${asked.doing}</span>` : html`<${State} of=${state} />`}</div>
    <div class="figures"><span class="narrow-label">Lake shows </span>${freshness(progress, now)}</div>
    <div class="figures"><span class="narrow-label">Behind </span>${lagWords(progress)}</div>
    <div class="figures wide-only"><${Spark} values=${spark} label=${`Lag of ${name} in the last 15 minutes`} /></div>
    <div class="small"><${TableCounts} name=${name} tables=${progress?.tables} /></div>
    <div class="row tight">${progress?.target === "RUNNING" ? button("pause") : button("resume")}${button("stop")}${button("restart")}</div>
    <${RowTrouble} name=${name} progress=${progress} error=${error} />
  </li>`;
}

function TableCounts({ name, tables }) {
  const found = Object.entries(tables ?? {});
  if (!found.length) return html`<span class="soft">no tables yet</span>`;
  const order = ["errored", "resyncing", "snapshotting", "pending", "live", "removed"];
  found.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
  return html`<span class="counts">${found.map(([state, n]) => html`<a class="tone-${wordOf(state)[2]}" href=${linkTo(name, "tables", { state })}>${count(n)} ${wordOf(state)[0]}</a>`)}</span>`;
}

/** Why it is where it is, and what helps: under the row that it is about. */
function RowTrouble({ name, progress, error }) {
  const [message, hint] = whyOf(progress);
  if (!message && !error) return null;
  return html`<div class="why">
    ${message && html`<p class=${connectorState(progress) === "failed" ? "bad" : "warn"}>${message}</p>${hint && html`<${Hint} text=${hint} />`}`}
    ${error && html`<${Failure} error=${error} what=${name} />`}
  </div>`;
}

/** @returns {[string | null, string | null]} */
function whyOf(progress) {
  if (!progress) return [null, null];
  const [trace, hint] = (progress.trace ?? "").split("\nhint: ");
  if (trace) return [trace, hint ?? null];
  if (progress.trouble) return [progress.trouble.message, progress.trouble.hint];
  const [why, help] = (progress.why_not ?? "").split("\nhint: ");
  return [why || null, help ?? null];
}

const FIRST = `{"name": "shop", "config": {"connector.class": "io.debezium.connector.postgresql.PostgresConnector",
  "database.hostname": "127.0.0.1", "database.user": "postgres", "database.dbname": "shop"}}`;

/** No connector yet: the ways to the first one. */
function FirstSteps() {
  const curl = `curl -X POST ${location.origin}/connectors -H 'content-type: application/json' \\\n  -d '${FIRST}'`;
  const sql = "CREATE SOURCE shop FROM POSTGRES\n  HOST '127.0.0.1'\n  DATABASE 'shop'\n  USER 'postgres';";
  return html`<div class="card"><${Empty} title="No connector yet">
      <p>A connector copies one database into one lake and keeps the copy exact. The next page says what the database still needs.</p><a class="button main" href="/ui/new">Make the first one</a><//></div>
    <div class="cols">
      <div class="card"><header><h2>Over HTTP</h2><${CopyButton} text=${curl} /></header><div class="body"><pre class="paste">${curl}</pre></div></div>
      <div class="card"><header><h2>In SQL, with <code>tailrace sql</code></h2><${CopyButton} text=${sql} /></header><div class="body"><pre class="paste">${sql}</pre></div></div>
    </div>`;
}
