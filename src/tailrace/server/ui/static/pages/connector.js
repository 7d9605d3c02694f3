/** One connector: its head and tabs; the first tab says where it is, what is wrong and what has happened. */
import { ActionButton, pendingOf } from "../actions.js";
import { connectorPath } from "../api.js";
import { actionsOf } from "../command.js";
import { bytes, count, seconds, time } from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { linkTo } from "../router.js";
import { sourceText, useKnown, useProgress, useSource } from "../shared.js";
import { useClock } from "../store.js";
import { CopyAs } from "../parts/copying.js";
import { Distance } from "../parts/distance.js";
import { Feed } from "../parts/feed.js";
import { Figures } from "../parts/figures.js";
import { Sentence } from "../parts/freshness.js";
import { Empty, Failure, Notice, Shown } from "../parts/notice.js";
import { Pinned } from "../parts/pins.js";
import { connectorState, State } from "../parts/state.js";
import { Copies } from "./copies/copies.js";
import { Cuts } from "./cuts.js";
import { Log } from "./log/log.js";
import { Messages } from "./messages.js";
import { Configuration } from "./config/config.js";
import { Offsets } from "./offsets/offsets.js";
import { Proof } from "./proof.js";
import { Tables } from "./tables/tables.js";
import { Query } from "./query.js";

/** Tabs: path, name, page. */
const TABS = [
  ["", "Now", Now],
  ["tables", "Tables", Tables],
  ["copies", "Copies", Copies],
  ["offsets", "Offsets", Offsets],
  ["cuts", "Cuts", Cuts],
  ["query", "Query", Query],
  ["log", "Log", Log],
  ["messages", "Messages", Messages],
  ["feed", "Feed", WholeFeed],
  ["config", "Configuration", Configuration],
  ["proof", "Proof", Proof],
];
const DISK_BYTES_MIN = 2e9;

export function ConnectorPage({ route }) {
  const progress = useProgress(route.name);
  const tab = TABS.find(([path]) => path === route.tab);
  if (progress.error?.status === 404) {
    return html`<h1 tabindex="-1">${route.name}</h1><${Empty} title="There is no connector of this name"><a href="/ui/">Overview</a><//>`;
  }
  return html`<${Head} name=${route.name} tab=${route.tab} progress=${progress} />
    ${tab ? html`<${tab[2]} key=${route.tab} name=${route.name} progress=${progress} route=${route} />` : html`<${Empty} title="There is no such page" />`}`;
}

function Head({ name, tab, progress }) {
  const { server } = useKnown();
  const [failed, fail] = useState(/** @type {any} */ (null));
  const data = progress.data;
  const asked = pendingOf(name);
  const actions = actionsOf(name);
  const shown = ["pause", "resume", "stop", "restart"];
  const tabs = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // Where there is no room for all, the one that is shown can be seen.
    const here = /** @type {HTMLElement | null} */ (tabs.current?.querySelector("[aria-current]"));
    if (here && tabs.current) tabs.current.scrollLeft = here.offsetLeft - (tabs.current.clientWidth - here.offsetWidth) / 2;
  }, [tab]);
  const done = () => {
    fail(null);
    progress.reload();
  };
  return html`<div>
    <div class="head">
      <div class="title"><h1 tabindex="-1">${name}</h1>
        <span aria-live="polite">${asked ? html`<span class="state tone-info"><span class="spin"></span>${asked.doing}</span>` : data && html`<${State} of=${connectorState(data)} />`}</span>
        <span class="soft break">${data && sourceText(data)}</span></div>
      <div class="row">${shown.map((id) => html`<${ActionButton} name=${name} action=${actions[id]} progress=${data} server=${server} done=${done} failed=${fail} />`)}
        <${Ways} actions=${actions} progress=${data} /></div>
    </div>
    ${failed && html`<${Failure} error=${failed} />`}
    <nav class="tabs" ref=${tabs} aria-label=${`Pages of ${name}`}>${TABS.map(([path, label]) => html`<a href=${linkTo(name, path)} aria-current=${path === tab ? "page" : undefined}>${label}</a>`)}</nav>
  </div>`;
}

/** The actions of the head, to be copied: the one that is possible now. */
function Ways({ actions, progress }) {
  const next = progress?.target === "RUNNING" ? actions.stop : actions.resume;
  return html`<${CopyAs} request=${next.request} label=${`Copy ${next.label.toLowerCase()} as …`} />`;
}

function Now({ name, progress, route }) {
  const now = useClock(500);
  const source = useSource(name, progress.data);
  return html`<${Shown} of=${progress} what="Progress">${(data) => html`
    <section class="card hero"><div class="body stack">
      <${Sentence} progress=${data} now=${now} />
      <${Distance} progress=${data} source=${source.data} />
    </div></section>
    <${Notices} name=${name} progress=${data} source=${source} />
    ${data.copying?.length ? html`<${CopyingNow} name=${name} copying=${data.copying} />` : null}
    <${Pinned} name=${name} route=${route} />
    <${Figures} name=${name} />
    <${Feed} name=${name} tabs=${TABS.map(([path]) => path)} />
    <${Facts} progress=${data} />`}<//>`;
}

function WholeFeed({ name }) {
  return html`<${Feed} name=${name} limit=${100} isAll tabs=${TABS.map(([path]) => path)} />`;
}

/** Everything that needs a person, what is worst first. */
function Notices({ name, progress, source }) {
  const found = [];
  const [trace, hint] = (progress.trace ?? "").split("\nhint: ");
  if (trace) found.push(["FAILED" === progress.state ? "bad" : "warn", trace, hint ?? null]);
  if (progress.retry_due) found.push(["info", `It is started again at ${time(progress.retry_due)}, after ${count(progress.failures)} failed runs in a row.`, null]);
  if (progress.trouble) found.push(["warn", `${progress.trouble.message} (since ${time(progress.trouble.since)})`, progress.trouble.hint]);
  if (progress.why_not && !trace && !progress.trouble) found.push(["warn", ...progress.why_not.split("\nhint: ")]);
  if (source.error && source.error.status !== 409 && !progress.trouble) found.push(["warn", `The source cannot be asked: ${source.error.message}`, source.error.hint]);
  else if (source.data?.risk) found.push([source.data.kept_from ? "warn" : "bad", source.data.risk, source.data.hint]);
  const free = progress.disk?.free_bytes;
  if (free !== undefined && free !== null && free < DISK_BYTES_MIN) found.push(["warn", `Only ${bytes(free)} are free where the log lies.`, null]);
  const errored = progress.tables?.errored ?? 0;
  return html`${errored > 0 && html`<${Notice} tone="bad" text=${`${count(errored)} ${errored === 1 ? "table is" : "tables are"} in error. The others follow on; each keeps its last good version.`}
      action=${TABS.some(([path]) => path === "tables") && html`<a class="button small" href=${linkTo(name, "tables", { state: "errored" })}>Show ${errored === 1 ? "it" : "them"}</a>`} />`}
    ${found.map(([tone, text, help]) => html`<${Notice} tone=${tone} text=${text} hint=${help} />`)}`;
}

function CopyingNow({ name, copying }) {
  const done = copying.reduce((total, each) => total + each.rows, 0);
  return html`<${Notice} tone="info" text=${`${count(copying.length)} ${copying.length === 1 ? "table is" : "tables are"} being copied: ${count(done)} rows so far.`}
    action=${TABS.some(([path]) => path === "copies") && html`<a class="button small" href=${linkTo(name, "copies")}>Watch</a>`} />`;
}

function Facts({ progress }) {
  const { log, cut, disk, work, tables } = progress;
  const states = Object.entries(tables ?? {});
  return html`<section class="card"><header><h2>In figures</h2></header><div class="body"><dl class="facts figures">
    <dt>Changes</dt><dd>${log?.changes_per_second ? `${count(Math.round(log.changes_per_second * 10) / 10)} a second` : "none now"}</dd>
    <dt>Last publish</dt><dd>${cut?.published ? `${time(cut.published)}${cut.seconds ? `, took ${seconds(cut.seconds)}` : ""}` : "none yet"}</dd>
    <dt>Tables</dt><dd>${states.length ? states.map(([state, n]) => html`<span class="inline-state">${count(n)} <${State} of=${state} quiet /></span>`) : "none yet"}</dd>
    <dt>Log on disk</dt><dd>${disk ? `${bytes(disk.log_bytes)}, ${bytes(disk.free_bytes)} free` : "not known"}</dd>
    <dt>Spark</dt><dd>${work?.spark_jobs ? `${count(work.spark_jobs)} jobs, ${count(work.spark_tasks)} tasks in this run` : "not needed in this run"}</dd>
  </dl></div></section>`;
}
