/** Cuts: every state of the lake that is kept, on a time axis; one to look into and to query, two to compare. */
import { connectorPath } from "../api.js";
import { bytes, count, counted, time } from "../format.js";
import { html, useMemo, useState } from "../html.js";
import { goWith, linkTo } from "../router.js";
import { useClock, useResource } from "../store.js";
import { ticks, useWidth } from "../parts/chart.js";
import { Shown } from "../parts/notice.js";

const LISTED_MAX = 10000;
const ROWS_MAX = 200;
const SPANS = [["15 min", 900], ["3 h", 10800], ["24 h", 86400], ["7 d", 604800]];
const TONES = { error: "bad", warning: "warn", trouble: "warn" };
const [LEFT, HEIGHT, BARS, CUTS, MARKS] = [46, 150, 86, 104, 118];
const BAR_PX = 9;

export function Cuts({ name, route }) {
  const found = useResource(connectorPath(name, `/cuts?tables=false&limit=${LISTED_MAX}`), { connector: name, kinds: ["CutPublished"], fastest: 5000 });
  return html`<${Shown} of=${found} what="Cuts">${(listed) => (listed.length ? html`<${Kept} name=${name} listed=${listed} query=${route.query} />`
    : html`<p class="soft">There is no cut yet: the first one comes when the first copy is done.</p>`)}<//>`;
}

function Kept({ name, listed, query }) {
  const now = useClock(1000) / 1000;
  const cuts = useMemo(() => [...listed].reverse().map((each) => ({ ...each, at: Date.parse(each.committed) / 1000 })), [listed]);
  // It begins with the newest quarter of an hour in which anything was committed.
  const [{ span, end }, view] = useState({ span: 900, end: now - cuts.at(-1).at > 600 ? cuts.at(-1).at + 60 : null });
  const [from, to] = [(end ?? now) - span, end ?? now];
  const chosen = (query.get("cuts") ?? "").split(",").filter(Boolean).map(Number);
  const isInside = (each) => each.at >= from && each.at <= to;
  const feed = useResource(connectorPath(name, `/feed?limit=${ROWS_MAX}`), { everySeconds: 10 });
  const marks = (feed.data?.entries ?? []).map((each) => ({ ...each, at: Date.parse(each.at) / 1000 })).filter(isInside);
  const choose = (seq) => goWith({ cuts: (chosen.includes(seq) ? chosen.filter((each) => each !== seq) : [...chosen, seq].slice(-2)).join() });
  const zoom = (middle, size) => view({ span: Math.max(5, Math.min(size, 4e6)), end: middle + size / 2 >= now ? null : middle + size / 2 });
  const middle = (from + to) / 2;
  const steps = [["+", "Zoom in", middle, span / 2], ["−", "Zoom out", middle, span * 2], ["◀", "Earlier", middle - span / 2, span], ["▶", "Later", middle + span / 2, span]];
  return html`<section class="card"><header><h2>${counted(cuts.length, "kept cut")}</h2>
      <div class="row">${[...SPANS, ["All", Math.ceil(now - cuts[0].at) + 1]].map(([label, size]) => html`<button type="button" class="chip" aria-pressed=${String(size === span && !end)} onClick=${() => view({ span: size, end: null })}>${label}</button>`)}
        ${steps.map(([sign, label, ...where]) => html`<button type="button" class="button small" aria-label=${label} onClick=${() => zoom(...where)}>${sign}</button>`)}</div></header>
    <div class="body stack"><${Timeline} cuts=${cuts} marks=${marks} from=${from} to=${to} chosen=${chosen} choose=${choose} />
      <p class="small soft">Select a cut to look into it, two to compare them. Transactions are spread evenly between two cuts.</p>
      <${AsTable} cuts=${cuts.filter(isInside)} marks=${marks} chosen=${chosen} choose=${choose} /></div></section>
  ${chosen.length === 2 && html`<${Comparison} name=${name} cuts=${[...chosen].sort((a, b) => a - b)} />`}
  ${chosen.map((seq) => html`<${Detail} key=${seq} name=${name} seq=${seq} unselect=${() => choose(seq)} />`)}`;
}

/** Transactions a minute above, cuts on the line, other events below. By mouse, touch and keyboard. */
function Timeline({ cuts, marks, from, to, chosen, choose }) {
  const [place, width] = useWidth();
  const [at, point] = useState(null);
  const room = width - LEFT - 8;
  const x = (t) => LEFT + ((t - from) / (to - from)) * room;
  const inside = cuts.filter((each) => each.at >= from && each.at <= to);
  const here = inside.findIndex((each) => each.seq === at);
  const near = (event) => inside.reduce((best, each) => (best && Math.abs(x(best.at) - event.offsetX) < Math.abs(x(each.at) - event.offsetX) ? best : each), null);
  const key = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && inside.length) point(inside[here < 0 ? inside.length - 1 : Math.max(0, Math.min(inside.length - 1, here + step))].seq);
    else if (["Enter", " "].includes(event.key) && here >= 0) choose(at);
    else return;
    event.preventDefault();
  };
  const rates = ratesOf(cuts, from, to, Math.max(1, Math.floor(room / BAR_PX)));
  const most = Math.max(...rates);
  const isBig = (each) => each.seq === at || chosen.includes(each.seq);
  let drawn = -1;
  const seen = inside.filter((each) => isBig(each) || (x(each.at) - drawn > 3 && (drawn = x(each.at))));
  const digits = to - from > 86400 ? 10 : to - from < 300 ? 8 : 5;
  return html`<figure class="timeline" ref=${place}>
    <figcaption class="row apart small"><span class="soft">Transactions a minute, cuts, other events</span>
      <span aria-live="polite">${here >= 0 ? `${time(inside[here].at * 1000, { ms: true })} · ${inside[here].position}` : counted(inside.length, "cut")}</span></figcaption>
    <svg height=${HEIGHT} viewBox="0 0 ${width} ${HEIGHT}" role="application" tabindex="0" aria-label="Kept cuts. Left and right go from cut to cut, Enter selects."
      onClick=${(event) => inside.length && choose(near(event).seq)} onPointerMove=${(event) => point(near(event)?.seq)} onKeyDown=${key}>
      <text class="axis" x=${LEFT - 6} y="12" text-anchor="end">${most ? count(Math.round(most * 10) / 10) : ""}</text><text class="axis" x=${LEFT - 6} y=${BARS} text-anchor="end">0</text>
      ${rates.map((rate, i) => rate > 0 && html`<rect class="bar-of" x=${LEFT + (i * room) / rates.length} width=${room / rates.length - 1} y=${BARS - (rate / most) * 78} height=${(rate / most) * 78} />`)}
      <line class="strong-rule" x1=${LEFT} x2=${width - 8} y1=${CUTS} y2=${CUTS} />
      ${seen.map((each) => html`<circle class="cut ${chosen.includes(each.seq) ? "chosen" : ""}" cx=${x(each.at)} cy=${CUTS} r=${isBig(each) ? 6 : 3.5} />`)}
      ${marks.map((each) => html`<path class="tone-${TONES[each.kind] ?? "info"}" fill="currentColor" d=${`M${x(each.at)},${MARKS} l5,9 h-10 z`} />`)}
      ${ticks(from, to, room).map((each) => html`<text class="axis" x=${x(each)} y=${HEIGHT - 3} text-anchor="middle">${time(each * 1000, { date: digits === 10 }).slice(0, digits)}</text>`)}
    </svg></figure>`;
}

/** Transactions a minute: those between two cuts are spread evenly over the time between them. */
function ratesOf(cuts, from, to, buckets) {
  const size = (to - from) / buckets;
  const rates = Array(buckets).fill(0);
  for (let i = 1; i < cuts.length; i += 1) {
    const [begin, end] = [(cuts[i - 1].at - from) / size, (cuts[i].at - from) / size];
    for (let each = Math.max(0, Math.floor(begin)); each <= Math.min(buckets - 1, Math.floor(end)); each += 1) {
      const share = end > begin ? (Math.min(end, each + 1) - Math.max(begin, each)) / (end - begin) : 1;
      rates[each] += ((cuts[i].seq - cuts[i - 1].seq) * share * 60) / size;
    }
  }
  return rates;
}

function Table({ label, head, children }) {
  return html`<div class="scroll chart-table"><table aria-label=${label}><thead><tr>${head.map((each, i) => html`<th scope="col" class=${i ? "num" : ""}>${each}</th>`)}</tr></thead><tbody>${children}</tbody></table></div>`;
}

function AsTable({ cuts, marks, chosen, choose }) {
  const rows = [...cuts, ...marks].sort((a, b) => b.at - a.at).slice(0, ROWS_MAX);
  return html`<details><summary class="small">As a table: ${counted(cuts.length, "cut")} and ${counted(marks.length, "other event")} in view</summary>
    <${Table} label="Cuts and events" head=${["Cut or event", "Transaction", "Time"]}>${rows.map((each) => html`<tr>${each.kind ? html`<td colspan="2" class="break">▲ ${each.kind} ${each.table} ${each.text}</td>`
      : html`<td><label class="check"><input type="checkbox" checked=${chosen.includes(each.seq)} onChange=${() => choose(each.seq)} /><code>${each.position}</code></label></td><td class="num">${count(each.seq)}</td>`}<td class="num">${time(each.at * 1000, { ms: true })}</td></tr>`)}<//></details>`;
}

function Panel({ path, title, more, children }) {
  const found = useResource(path);
  return html`<section class="card"><header><h2>${title}</h2><span class="row">${found.data && more?.(found.data)}</span></header><div class="body stack"><${Shown} of=${found} what=${title}>${children}<//></div></section>`;
}

function Detail({ name, seq, unselect }) {
  const more = ({ position }) => html`<a class="button main small" href=${linkTo(name, "query", { as_of: position })}>Query at this cut</a><button type="button" class="button plain small" aria-label="Unselect" onClick=${unselect}>✕</button>`;
  return html`<${Panel} path=${connectorPath(name, `/cuts/${seq}`)} title=${`Cut of transaction ${count(seq)}`} more=${more}>${(cut) => html`<p><code>${cut.position}</code>, committed ${time(cut.committed, { ms: true, date: true })}, with ${counted(cut.tables.length, "table")}.
    ${cut.since ? ` Since the kept cut before it, of transaction ${count(cut.before)}:` : " It is the oldest cut that is kept."}</p>${cut.since && html`<${Changes} of=${cut.since} />`}`}<//>`;
}

function Comparison({ name, cuts: [older, newer] }) {
  return html`<${Panel} path=${connectorPath(name, `/cuts/difference?from=${older}&to=${newer}`)} title=${`From transaction ${count(older)} to ${count(newer)}`}>${({ tables, same, between }) => html`<p class="sentence">${tables.length} tables differ, ${same} stayed the same.</p>
    <ul>${tables.slice(0, ROWS_MAX).map((each) => html`<li class="break"><code>${each.table}</code> ${each.how}</li>`)}</ul><${Changes} of=${between} />`}<//>`;
}

function Changes({ of: { transactions, changes, bytes: size, note, tables } }) {
  const cell = (value) => html`<td class="num">${value === null ? "?" : value || "–"}</td>`;
  return html`<p>${counted(transactions, "transaction")}${changes === null ? "" : `, ${counted(changes, "change")}, ${bytes(size)} in the log`}.</p>${note && html`<p class="soft">${note}</p>`}
    ${tables.length > 0 && html`<${Table} label="Changes by table" head=${["Table", "Transactions", "Changes", "Rows came", "changed", "went"]}>${tables.slice(0, 5 * ROWS_MAX).map((each) => html`<tr><td class="break">${each.table}</td>${[each.transactions, each.changes, each.inserts, each.updates, each.deletes].map(cell)}</tr>`)}<//>`}`;
}
