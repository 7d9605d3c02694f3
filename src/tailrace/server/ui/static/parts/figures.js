/** A connector's figures over time, from the server's memory: no other program is needed. */
import { connectorPath } from "../api.js";
import { bytes, count, seconds, time } from "../format.js";
import { html, useMemo, useState } from "../html.js";
import { useClock, useResource } from "../store.js";
import { Chart } from "./chart.js";
import { Failure } from "./notice.js";

const SPANS = { "15 min": [900, 1, 2], "3 h": [10800, 15, 15], "24 h": [86400, 15, 30] };
const NAMES = ["lag_seconds", "lag_bytes", "changes_per_second", "published_per_second"];

/** @param {{name: string}} props */
export function Figures({ name }) {
  const [span, choose] = useState("15 min");
  const [length, step, every] = SPANS[span];
  const asked = NAMES.map((each) => `figures=${each}`).join("&");
  const since = useMemo(() => new Date(Date.now() - length * 1000).toISOString().slice(0, 19) + "Z", [span, Math.floor(Date.now() / 600000)]);
  const found = useResource(connectorPath(name, `/figures?${step === 1 ? "" : `step=${step}&`}${asked}&since=${encodeURIComponent(since)}`), { everySeconds: every, fastest: every * 900 });
  useClock(1000);
  const to = Math.floor(Date.now() / 1000);
  const series = found.data?.connectors?.[name] ?? {};
  const times = found.data?.times ?? [];
  const common = { times, from: to - length, to, gap: step * 3.5 };
  const chart = (key, label, show) => html`<div class="card"><div class="body"><${Chart} label=${label} values=${series[key] ?? times.map(() => null)} show=${show} ...${common} /></div></div>`;
  return html`<section class="stack" aria-labelledby="over-time"><h2 class="unseen" id="over-time">Figures over time</h2>
    <div class="row apart"><div class="chips" role="group" aria-label="Span of time">${Object.keys(SPANS).map((each) => html`<button type="button" class="chip" aria-pressed=${String(each === span)} onClick=${() => choose(each)}>${each}</button>`)}</div>
      ${found.data && html`<span class="small faint">kept in memory since ${time(found.data.began)}; a hole is a time without figures</span>`}</div>
    ${found.error && !found.data && html`<${Failure} error=${found.error} again=${found.reload} what="Figures" />`}
    <div class="cols figures">
      ${chart("lag_seconds", "Lag", (v) => (v === 0 ? "caught up" : seconds(v)))}
      ${chart("lag_bytes", "Not yet logged", (v) => (v === 0 ? "nothing" : bytes(v)))}
      ${chart("changes_per_second", "Changes a second", (v) => (v === 0 ? "none" : count(v)))}
      ${chart("published_per_second", "Transactions published a second", (v) => (v === 0 ? "none" : count(v)))}
    </div>
  </section>`;
}
