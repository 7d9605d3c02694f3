/** A figure over time, drawn as SVG: gaps are gaps, and the same numbers are there as a table and by keyboard. */
import { html, useEffect, useRef, useState } from "../html.js";
import { time } from "../format.js";

const LEFT = 58;
const BOTTOM = 18;
const TOP = 8;
const ROWS_MAX = 200;

/** The width that an element has now. */
export function useWidth(start = 600) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, set] = useState(start);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => set(Math.max(160, Math.round(entry.contentRect.width))));
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return [place, width];
}

/**
 * @param {{label: string, times: number[], values: (number | null)[], show: (value: number | null) => string, height?: number,
 *   from: number, to: number, gap: number, children?: any}} props Times in seconds; a hole longer than `gap` is a gap.
 */
export function Chart({ label, times, values, show, height = 140, from, to, gap }) {
  const [place, width] = useWidth();
  const [at, point] = useState(/** @type {number | null} */ (null));
  const top = ceiling(values);
  const x = (t) => LEFT + ((t - from) / Math.max(1, to - from)) * (width - LEFT - 4);
  const y = (v) => TOP + (1 - v / top) * (height - TOP - BOTTOM);
  const runs = pieces(times, values, gap);
  const move = (event) => point(nearest(times, values, from + ((event.offsetX - LEFT) / (width - LEFT - 4)) * (to - from)));
  const key = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) point(stepped(values, at, step));
    if (event.key === "Escape") point(null);
  };
  const last = stepped(values, null, -1);
  const named = at ?? last;
  return html`<figure class="chart" ref=${place}>
    <figcaption class="row apart"><h3>${label}</h3>
      <span class="small soft" aria-live=${at === null ? "off" : "polite"}>${named === null ? "no figures yet" : `${show(values[named])} at ${time(times[named] * 1000)}`}</span></figcaption>
    <svg height=${height} viewBox="0 0 ${width} ${height}" role="img" tabindex="0" aria-label=${`${label}: ${named === null ? "no figures yet" : `now ${show(values[named])}`}. Left and right keys read single figures.`}
      onPointerMove=${move} onPointerLeave=${() => point(null)} onKeyDown=${key} onBlur=${() => point(null)}>
      ${[0, 0.5, 1].map((each) => html`<line class="rule" x1=${LEFT} x2=${width - 4} y1=${y(top * each)} y2=${y(top * each)} />
        <text class="axis" x=${LEFT - 6} y=${y(top * each) + 3.5} text-anchor="end">${show(top * each)}</text>`)}
      ${ticks(from, to, width).map((each, i, all) => html`<text class="axis" x=${x(each)} y=${height - 3} text-anchor="middle">${clock(each, all[1] - all[0] < 60)}</text>`)}
      ${runs.map((run) => html`<path class="area" d=${`${line(run, x, y)} L${x(run.at(-1)[0])},${y(0)} L${x(run[0][0])},${y(0)} Z`} />
        <path class="curve" d=${line(run, x, y)} />`)}
      ${at !== null && html`<line class="pointer" x1=${x(times[at])} x2=${x(times[at])} y1=${TOP} y2=${height - BOTTOM} />`}
    </svg>
    <${AsTable} label=${label} times=${times} values=${values} show=${show} />
  </figure>`;
}

function AsTable({ label, times, values, show }) {
  const [isOpen, open] = useState(false);
  const rows = isOpen ? times.map((each, i) => [each, values[i]]).slice(-ROWS_MAX).reverse() : [];
  return html`<details onToggle=${(event) => open(event.target.open)}><summary class="small">As a table</summary>
    ${isOpen && html`<div class="scroll chart-table" tabindex="0" role="group" aria-label=${label}><table><caption class="unseen">${label}</caption><thead><tr><th scope="col">Time</th><th scope="col" class="num">${label}</th></tr></thead>
      <tbody>${rows.map(([at, value]) => html`<tr><td>${time(at * 1000)}</td><td class="num">${value === null ? "not known" : show(value)}</td></tr>`)}</tbody></table></div>`}
  </details>`;
}

/** A small line without axes, for a row. @param {{values: (number | null)[], label: string}} props */
export function Spark({ values, label }) {
  const top = ceiling(values);
  const runs = pieces(values.map((_, i) => i), values, 1.5);
  const x = (i) => (i / Math.max(1, values.length - 1)) * 92;
  const y = (v) => 20 - (v / top) * 18;
  return html`<svg class="spark" viewBox="0 0 92 22" role="img" aria-label=${label}>${runs.map((run) => html`<path d=${line(run, x, y)} />`)}</svg>`;
}

/** A round number that no value exceeds. */
function ceiling(values) {
  const most = Math.max(0, ...values.filter((each) => each !== null));
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 5, 10].find((each) => each * power >= most) ?? 10);
}

/** Runs without a gap, each a list of [time, value]. */
function pieces(times, values, gap) {
  const runs = [];
  let run = [];
  for (let i = 0; i < times.length; i += 1) {
    const broken = values[i] === null || (run.length && times[i] - run.at(-1)[0] > gap);
    if (broken && run.length) {
      runs.push(run);
      run = [];
    }
    if (values[i] !== null) run.push([times[i], values[i]]);
  }
  if (run.length) runs.push(run);
  return runs;
}

function line(run, x, y) {
  if (run.length === 1) return `M${x(run[0][0]) - 0.5},${y(run[0][1])} h1`;
  return run.map(([t, v], i) => `${i ? "L" : "M"}${x(t).toFixed(1)},${y(v).toFixed(1)}`).join("");
}

function nearest(times, values, wanted) {
  let best = null;
  for (let i = 0; i < times.length; i += 1) {
    if (values[i] !== null && (best === null || Math.abs(times[i] - wanted) < Math.abs(times[best] - wanted))) best = i;
  }
  return best;
}

/** The next figure that is known, to one side of where we are; from the end where we are nowhere. */
function stepped(values, at, step) {
  for (let i = at === null ? values.length - 1 : at + step; i >= 0 && i < values.length; i += step) {
    if (values[i] !== null) return i;
  }
  return at;
}

export function ticks(from, to, width) {
  const steps = [1, 5, 15, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600];
  const step = steps.find((each) => ((to - from) / each) * 90 < width) ?? 86400 * Math.ceil((to - from) / 6e5);
  const found = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) found.push(t);
  return found.filter((t) => t - from > (to - from) * 0.03 && to - t > (to - from) * 0.03);
}

const clock = (t, withSeconds) => time(t * 1000, { date: false }).slice(0, withSeconds ? 8 : 5);
