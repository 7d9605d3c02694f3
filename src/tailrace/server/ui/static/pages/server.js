/** This server: what it is, how this browser shows it, what it has said, and every route of its API. */
import { ago, isUtc, setUtc, time } from "../format.js";
import { html, useState } from "../html.js";
import { useClock, useResource } from "../store.js";
import { Shown } from "../parts/notice.js";
import { Loggers, Said } from "./messages.js";

const THEME = "tailrace-theme";

/** The theme that was chosen; without one, the browser's own. */
export function applyTheme() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export function ServerPage({ route }) {
  const found = useResource("/tailrace", { everySeconds: 60 });
  const now = useClock(1000);
  return html`<div class="head"><div class="title"><h1 tabindex="-1">Server</h1></div></div>
    <div class="cols"><section class="card"><header><h2>What it is</h2></header><div class="body"><${Shown} of=${found} what="The server">${(server) => html`<dl class="facts figures">
      <dt>Tailrace</dt><dd>${server.version}</dd><dt>Listens at</dt><dd><code>${server.address}</code></dd>
      <dt>Began</dt><dd>${time(server.began, { date: true })}, ${ago(Date.parse(server.began), now)}</dd>
      ${server.home && html`<dt>Home</dt><dd><code>${server.home}</code></dd>`}${server.state && html`<dt>State</dt><dd><code>${server.state}</code></dd>`}</dl>`}<//></div></section>
      <${Choices} /></div>
    ${found.data?.home && html`<${Said} path="/messages" connector=${null} query=${route.query} />`}
    <${Loggers} /><${Api} />`;
}

/** How this browser shows it; kept in the browser. */
function Choices() {
  const [, again] = useState(0);
  const choose = (change) => () => {
    change();
    applyTheme();
    again((n) => n + 1);
    // All that is shown is shown again.
    dispatchEvent(new Event("tailrace:route"));
  };
  const chip = (word, isChosen, change) => html`<button type="button" class="chip" aria-pressed=${String(isChosen)} onClick=${choose(change)}>${word}</button>`;
  const theme = localStorage.getItem(THEME) ?? "";
  return html`<section class="card"><header><h2>In this browser</h2></header><div class="body stack">
    <div class="chips" role="group" aria-label="Theme">${chip("as the system", !theme, () => localStorage.removeItem(THEME))}${["light", "dark"].map((each) => chip(each, theme === each, () => localStorage.setItem(THEME, each)))}</div>
    <div class="chips" role="group" aria-label="Times">${chip("UTC", isUtc(), () => setUtc(true))}${chip("local time", !isUtc(), () => setUtc(false))}</div></div></section>`;
}

/** Every route by its area, from the document that clients are generated from. */
function Api() {
  const found = useResource("/openapi.json");
  return html`<section class="card"><header><h2>API</h2><span class="small soft">docs/server.md explains them; <a href="/openapi.json" target="_blank" rel="noopener">openapi.json</a></span></header>
    <${Shown} of=${found} what="The API">${({ paths }) => html`<div class="body stack">${areas(paths).map(([area, routes]) => html`<details key=${area}><summary>${area}, ${routes.length}</summary>
      <dl class="routes">${routes.map((each) => html`<dt><code>${each.method} ${each.path}</code></dt><dd class="small soft">${each.text}</dd>`)}</dl></details>`)}</div>`}<//></section>`;
}

function areas(paths) {
  const found = {};
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, each] of Object.entries(methods)) {
      (found[each.tags?.[0] ?? "others"] ??= []).push({ method: method.toUpperCase(), path, text: each.description ?? each.summary ?? "" });
    }
  }
  return Object.entries(found).sort();
}
