/** Around every page: the way to all others, what the browser shows of the server being there, and who acts. */
import { setUserName, userName } from "./api.js";
import { ago, time } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { useLiveStatus } from "./live.js";
import { linkTo } from "./router.js";
import { useKnown } from "./shared.js";
import { useClock } from "./store.js";
import { Dialog } from "./parts/dialog.js";
import { connectorState, Shape, trouble, wordOf } from "./parts/state.js";

/** Pages beside those of connectors: path, name. */
export const PLACES = [["/ui/", "Overview"], ["/ui/work", "Work"], ["/ui/server", "Server"]];
const SHOWN_MAX = 60;
const GRACE_MS = 1500;

export function Frame({ route, children }) {
  const [isOpen, open] = useState(false);
  useEffect(() => open(false), [route.path]);
  const lost = useLost();
  useEffect(() => document.documentElement.classList.toggle("lost", !!lost), [!!lost]);
  return html`<a class="skip" href="#main">To the page</a>
    <header class="top">
      <a class="brand" href="/ui/"><img src="/ui/static/icon.svg" alt="" />Tailrace</a>
      <button type="button" class="button small" aria-expanded=${String(isOpen)} aria-controls="side" onClick=${() => open(!isOpen)}>Menu</button>
    </header>
    <div class="frame">
      <${Side} route=${route} isOpen=${isOpen} />
      <div>${lost && html`<${LostBanner} since=${lost} />`}<main id="main" tabindex="-1">${children}</main></div>
    </div>`;
}

/** Since when the server is not heard, as milliseconds; null while it is. */
function useLost() {
  const { connected, since, isNew } = useLiveStatus();
  const now = useClock(500);
  return !connected && !isNew && now - since > GRACE_MS ? since : null;
}

function LostBanner({ since }) {
  const now = useClock(1000);
  return html`<div class="banner" role="status">
    <${Shape} name="triangle" tone="warn" />
    <span>The server is not heard since ${time(since)} (${ago(since, now)}). Figures are from then; this page tries again by itself.</span>
  </div>`;
}

function Side({ route, isOpen }) {
  const { connectors, server } = useKnown();
  const entries = Object.entries(connectors.data ?? {});
  const sorted = entries.sort((a, b) => trouble(a[1].progress) - trouble(b[1].progress) || (a[0] < b[0] ? -1 : 1));
  return html`<div class="side ${isOpen ? "open" : ""}" id="side">
    <nav aria-label="Pages">
      <a class="brand" href="/ui/"><img src="/ui/static/icon.svg" alt="" />Tailrace</a>
      <ul>${PLACES.map(([path, name]) => html`<li><a href=${path} aria-current=${route.path === path || (path === "/ui/" && route.page === "overview") ? "page" : undefined}>${name}</a></li>`)}</ul>
      <div>
        <h2><span>Connectors</span><span>${entries.length || ""}</span></h2>
        <ul>${sorted.slice(0, SHOWN_MAX).map(([name, entry]) => html`<${Entry} key=${name} name=${name} progress=${entry.progress} isHere=${route.name === name} />`)}
        ${entries.length > SHOWN_MAX && html`<li><a href="/ui/">${entries.length - SHOWN_MAX} more …</a></li>`}</ul>
      </div>
    </nav>
    <${Foot} server=${server} />
  </div>`;
}

function Entry({ name, progress, isHere }) {
  const [word, shape, tone] = wordOf(connectorState(progress));
  return html`<li><a href=${linkTo(name)} aria-current=${isHere ? "page" : undefined} title=${`${name}: ${word}`}>
    <span class="tone-${tone}"><${Shape} name=${shape} /></span><span class="name">${name}</span><span class="unseen">${word}</span>
  </a></li>`;
}

function Foot({ server }) {
  const [isAsking, ask] = useState(false);
  return html`<footer class="foot small faint">
    <button type="button" class="linklike" onClick=${() => ask(true)}>${userName() ? `Acting as ${userName()}` : "Say who you are"}</button>
    <span>${server ? `Tailrace ${server.version}` : ""}</span>
    ${isAsking && html`<${WhoDialog} close=${() => ask(false)} />`}
  </footer>`;
}

/** Asks once for the name that histories show. @param {{close: () => void}} props */
export function WhoDialog({ close }) {
  const [name, set] = useState(userName());
  const keep = (event) => {
    event.preventDefault();
    setUserName(name);
    close();
  };
  return html`<${Dialog} title="Who is acting?" close=${close}>
    <form class="body" onSubmit=${keep}>
      <div class="field"><label for="who">Your name</label>
        <input id="who" maxlength="100" autocomplete="username" value=${name} onInput=${(event) => set(event.target.value)} />
        <span class="help">Histories of offsets and configurations show it, with your address. It stays in this browser.</span></div>
      <div class="row"><button class="button main">Keep it</button></div>
    </form>
  <//>`;
}
