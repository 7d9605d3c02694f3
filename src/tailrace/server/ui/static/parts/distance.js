/**
 * The distance line: the end of the source, what its slot keeps, our log and the newest cut as four marks on one line,
 * with the bytes, transactions and seconds between them.
 */
import { html } from "../html.js";
import { bytes, count, counted, lsn, seconds } from "../format.js";

/**
 * @param {{progress: any, source: any, mark?: {position: string, label: string} | null}} props `mark` is a further place,
 *   such as the one that an edit of the offsets would set.
 */
export function Distance({ progress, source, mark = null }) {
  const lag = progress?.lag;
  const flows = progress?.state === "RUNNING" && (progress.log?.changes_per_second ?? 0) > 0;
  const unread = lag?.bytes ?? source?.bytes?.log_to_end ?? null;
  // The source is asked less often than the lake tells: by then it has at least what the lake has.
  const cut = progress?.cut?.position ?? source?.cut ?? null;
  const log = later(source?.log, source?.log && cut);
  const end = later(source?.end, source?.end && log);
  const places = { end: lsn(end), log: lsn(log), cut: lsn(cut), kept: lsn(source?.kept_from) };
  return html`<div class="distance figures" role="group" aria-label="How far source, log and lake are apart">
    <ol>
      <${Mark} name="Source" about="has written up to" at=${end} note=${source && !source.kept_from ? source.problem : null} />
      <${Gap} flows=${flows} far=${!!unread} words=${unread === null ? "not known" : unread ? bytes(unread) : "nothing between"} more=${unread ? "to be logged" : ""} />
      <${Mark} name="Log" about="holds every commit up to" at=${log} note=${progress?.log?.seq === undefined ? null : `transaction ${count(progress.log.seq)}`} />
      <${Gap} flows=${flows} far=${!!lag?.transactions} words=${betweenLogAndCut(lag)} more=${lag?.transactions ? "to be published; readable live" : ""} />
      <${Mark} name="Lake" about="newest cut" at=${cut} note=${progress?.cut?.seq === undefined ? null : `transaction ${count(progress.cut.seq)}`} strong />
    </ol>
    <${Slot} source=${source} places=${places} />
    ${mark && html`<${Edit} mark=${mark} places=${places} />`}
  </div>`;
}

/** The later one of two positions; null where there is none. */
const later = (one, other) => ((lsn(other) ?? -1) > (lsn(one) ?? -1) ? other : one) ?? null;

function betweenLogAndCut(lag) {
  if (!lag) return "not known";
  if (!lag.transactions) return "nothing between";
  return `${counted(lag.transactions, "transaction")}${lag.seconds ? `, ${seconds(lag.seconds)}` : ""}`;
}

function Mark({ name, about, at, note, strong = false }) {
  return html`<li class="mark ${strong ? "strong-mark" : ""}"><span class="pin" aria-hidden="true"></span>
    <span class="mark-name">${name}</span><span class="small soft">${about}</span>
    <code>${at ?? "not known"}</code>${note && html`<span class="small soft break">${note}</span>`}</li>`;
}

function Gap({ flows, far, words, more }) {
  return html`<li class="gap ${far ? "far" : ""} ${flows ? "flows" : ""}"><span class="channel" aria-hidden="true"></span>
    <span class=${words === "not known" || !far ? "soft" : "words"}>${words}</span><span class="small soft">${more}</span></li>`;
}

/** What the source must keep for us, and whether that is at risk. */
function Slot({ source, places }) {
  if (!source) return null;
  const facts = source.facts ?? {};
  const kept = source.bytes?.kept_to_end ?? (places.end !== null && places.kept !== null ? places.end - places.kept : null);
  const status = facts.wal_status;
  const tone = status === "lost" ? "bad" : status === "unreserved" ? "warn" : "soft";
  return html`<div class="slot"><span class="slot-bracket" aria-hidden="true"></span>
    <span>${source.kept_from ? html`The slot keeps WAL from <code>${source.kept_from}</code> on` : "No slot keeps WAL for this lake"}${kept === null ? "" : html`: <strong>${bytes(kept)}</strong>`}</span>
    ${status && html`<span class=${tone}>${WAL[status] ?? status}</span>`}
    ${facts.safe_wal_size !== undefined && facts.safe_wal_size !== null && html`<span class="soft">${bytes(Number(facts.safe_wal_size))} more until the limit</span>`}
  </div>`;
}

const WAL = {
  reserved: "within the server's limits", extended: "more than max_wal_size, still kept",
  unreserved: "may be lost at the next checkpoint", lost: "the server has deleted what the lake lacks",
};

/** Where an edit would set the lake, on the same line. */
function Edit({ mark, places }) {
  const at = lsn(mark.position);
  const from = places.cut;
  const way = at === null || from === null ? "" : at === from ? "where the lake is" : at > from ? `${bytes(at - from)} forward of the lake` : `${bytes(from - at)} before where the lake is`;
  const all = [places.kept, places.cut, places.log, places.end, at].filter((each) => each !== null);
  const least = Math.min(...all);
  const span = Math.max(1, Math.max(...all) - least);
  const place = (value) => 100 - ((value - least) / span) * 100;
  return html`<div class="edit-mark"><div class="scale" aria-hidden="true">
      ${[["end", "source"], ["log", "log"], ["cut", "lake"], ["kept", "kept from"]].map(([key]) => places[key] !== null && html`<i class=${key} style=${{ left: `${place(places[key])}%` }}></i>`)}
      ${at !== null && html`<b style=${{ left: `${place(at)}%` }}></b>`}
    </div><p class="small"><strong>${mark.label}</strong> <code>${mark.position}</code> <span class="soft">${way}</span></p></div>`;
}
