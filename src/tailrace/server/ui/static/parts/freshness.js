/** How fresh a lake is, in one sentence: which commit it shows, how long ago that was, and what it lacks. */
import { html } from "../html.js";
import { ago, bytes, count, counted, seconds, time } from "../format.js";

/** @param {any} progress @param {number} now */
export function freshness(progress, now) {
  const cut = progress?.cut;
  if (!cut?.committed) return html`<span class="soft">nothing yet</span>`;
  const at = Date.parse(cut.committed);
  return html`<span class="nowrap" title=${time(at, { ms: true, date: true })}>${time(at)}</span> <span class="soft nowrap">${ago(at, now)}</span>`;
}

/** Whether it lacks nothing, as far as anyone knows. */
export function isCaughtUp(progress) {
  return !!progress?.lag && progress.lag.seconds === 0 && !progress.lag.transactions && !progress.lag.bytes;
}

/** @param {any} progress */
export function lagWords(progress) {
  const lag = progress?.lag;
  if (!lag) return html`<span class="soft">${progress?.state === "STOPPED" ? "does not follow" : "not known"}</span>`;
  if (isCaughtUp(progress)) return html`<span class="good">caught up</span>`;
  const parts = [];
  if (lag.seconds) parts.push(seconds(lag.seconds));
  if (lag.bytes) parts.push(bytes(lag.bytes));
  if (!parts.length && lag.transactions) parts.push(counted(lag.transactions, "transaction"));
  return html`<span class="nowrap">${parts[0]}</span>${parts[1] && html` <span class="soft nowrap">${parts[1]}</span>`}`;
}

/** The sentence at the top of a connector's page. @param {{progress: any, now: number}} props */
export function Sentence({ progress, now }) {
  const cut = progress?.cut;
  if (!cut?.position) return html`<p class="sentence">The lake shows nothing yet${progress?.copying?.length ? ": the first copy is under way." : "."}</p>`;
  const at = cut.committed ? Date.parse(cut.committed) : null;
  const where = html`<code>${cut.position}</code>, transaction ${count(cut.seq)}`;
  if (isCaughtUp(progress)) {
    return html`<p class="sentence">The lake shows <strong>everything</strong>: the newest commit is of <strong>${time(at, { ms: true })}</strong>, ${ago(at, now)}. <span class="soft">${where}</span></p>`;
  }
  return html`<p class="sentence">The lake shows <strong>${time(at, { ms: true })}</strong>, ${at === null ? "" : `${ago(at, now)}. `}<span class="soft">${where}</span></p>`;
}
