/** What a connector, or the server, has said: the newest first, by level and text, and how much each logger says. */
import { Outcome, useOutcome } from "../actions.js";
import { ask, connectorPath, part } from "../api.js";
import { count, time, value } from "../format.js";
import { html } from "../html.js";
import { goWith } from "../router.js";
import { useResource } from "../store.js";
import { CopyAs } from "../parts/copying.js";
import { Empty, Shown } from "../parts/notice.js";
import { Pager, Sheet } from "../parts/sheet.js";
import { State } from "../parts/state.js";

const LEVELS = { "": "all", info: "info", warning: "warnings", error: "errors" };
const KINDS = ["StateChanged", "LifeChanged", "TroubleChanged", "TableChanged", "CopyNotified"];
const SHOWN_MAX = 300;

export function Messages({ name, route }) {
  return html`<${Said} path=${connectorPath(name, "/messages")} connector=${name} query=${route.query} /><${Loggers} />`;
}

/** @param {{path: string, connector: string | null, query: URLSearchParams}} props */
export function Said({ path, connector, query }) {
  const asked = new URLSearchParams();
  for (const key of ["level", "search", "before"]) if (query.get(key)) asked.set(key, query.get(key) ?? "");
  const isNewest = !query.get("before");
  const whole = asked.size ? `${path}?${asked}` : path;
  const found = useResource(whole, isNewest ? { connector, kinds: KINDS, everySeconds: 5 } : {});
  const level = query.get("level") ?? "";
  return html`<section class="card"><header><h2>Messages</h2>
      <div class="row"><div class="chips" role="group" aria-label="At least">${Object.entries(LEVELS).map(([key, word]) => html`<button type="button" class="chip" aria-pressed=${String(level === key)} onClick=${() => goWith({ level: key, before: null })}>${word}</button>`)}</div>
        <input type="search" class="search" aria-label="Find text in messages" placeholder="Find text" maxlength="200" value=${query.get("search") ?? ""} onInput=${(event) => goWith({ search: event.target.value, before: null })} />
        <${CopyAs} request=${{ method: "GET", path: whole }} /></div></header>
    <${Shown} of=${found} what="Messages">${({ messages, next }) => html`${messages.length
      ? html`<ul class="messages">${messages.map((each) => html`<${Message} key=${each.id} message=${each} />`)}</ul>`
      : html`<${Empty} title="No message fits"><p>${asked.size ? "Choose another level or text." : "Nothing has been said yet."}</p><//>`}
      <${Pager} before=${query.get("before")} next=${next} go=${(before) => goWith({ before })} text=${`${isNewest ? "The newest first; looked at again every five seconds." : "Older messages."} They never have values of rows.`} />`}<//>
  </section>`;
}

function Message({ message }) {
  const fields = flat(message.fields);
  const all = fields.map(([key, each]) => `${key} ${each}`).join(" · ");
  const isLong = all.length > SHOWN_MAX || message.traceback;
  return html`<li><span class="nowrap soft">${message.time ? time(message.time, { ms: true }) : "no time"}</span><span><${State} of=${message.level} quiet /></span>
    <div class="break"><span class="strong">${message.message}</span> <span class="soft">${isLong ? `${all.slice(0, SHOWN_MAX)}${all.length > SHOWN_MAX ? " …" : ""}` : all}</span> <span class="faint">${message.logger}</span>
      ${isLong && html`<details><summary>All of it</summary><pre class="paste" tabindex="0">${[...fields.map(([key, each]) => `${key}: ${each}`), message.traceback].filter(Boolean).join("\n")}</pre></details>`}</div></li>`;
}

/** Fields and those inside them, as words; what says nothing is left out. @returns {[string, string][]} */
function flat(fields) {
  return Object.entries(fields).flatMap(([key, each]) => {
    if (each === null || each === false || each === "") return [];
    if (each.namespace && each.name) return [[key, `${each.namespace}.${each.name}`]];
    if (typeof each === "object" && !Array.isArray(each)) return flat(each);
    return [[key, Number.isFinite(each) && !Number.isInteger(each) ? each.toFixed(3) : value(each)]];
  });
}

/** How much each logger says, until the server ends. */
export function Loggers() {
  const found = useResource("/admin/loggers");
  const { busy, outcome, run } = useOutcome();
  const set = (logger, level) => run(async () => {
    const { data } = await ask({ method: "PUT", path: `/admin/loggers/${part(logger)}`, body: { level } });
    found.reload();
    return `${count(data.length)} ${data.length === 1 ? "logger says" : "loggers say"} ${level} and worse until the server ends`;
  });
  return html`<section class="card"><header><h2>How much is said</h2><${Outcome} outcome=${outcome} busy=${busy} /></header>
    <div class="body"><details><summary>Levels of all loggers: they count for every connector of this server</summary>
    <${Shown} of=${found} what="Loggers">${(loggers) => html`<div class="loggers"><${Sheet} name="Loggers" head=${["~Logger", "Says"]} rows=${Object.entries(loggers).map(([logger, { level }]) => ({ key: logger, cells: [logger === "root" ? "all of them" : logger,
      html`<select aria-label=${`Level of ${logger}`} value=${level} disabled=${busy} onChange=${(event) => set(logger, event.target.value)}>${[...new Set(["DEBUG", "INFO", "WARN", "ERROR", "OFF", level])].map((each) => html`<option value=${each} selected=${each === level}>${each}</option>`)}</select>`] }))} /></div>`}<//></details></div>
  </section>`;
}
